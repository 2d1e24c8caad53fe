package main

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/doctor"
)

// tell prints findings, worst first, and returns what they come to.
func (d *doctorCall) tell(findings []doctor.Finding) error {
	if d.asJSON {
		if err := writeJSON(d.stdout, findingObjects(findings)); err != nil {
			return err
		}
	} else {
		d.print(findings)
	}
	if doctor.Count(findings, doctor.Problem) > 0 {
		return errProblem
	}
	for i := range findings {
		if findings[i].Failed {
			return errUnlooked
		}
	}
	return nil
}

func findingObjects(findings []doctor.Finding) []object {
	objects := make([]object, 0, len(findings))
	for i := range findings {
		f := &findings[i]
		o := object{"check": f.Check, "level": strings.ReplaceAll(f.Level.String(), " ", "_")}
		o.putText("object", f.Object)
		o.putText("consumer", f.Consumer)
		o.putText("found", f.Found)
		o.putText("why", f.Why)
		o.putText("do", f.Do)
		objects = append(objects, o)
	}
	return objects
}

// Where texts begin, and where their lines end.
const (
	findingIndent = 13 // behind "not checked"
	adviceIndent  = findingIndent + 5
	findingWidth  = 100
)

func (d *doctorCall) print(findings []doctor.Finding) {
	for i := range findings {
		f := &findings[i]
		head := f.Check
		if f.Object != "" {
			head += " " + f.Object
		}
		if f.Consumer != "" {
			head += ", consumer " + f.Consumer
		}
		fmt.Fprint(d.stdout, wrapped(fmt.Sprintf("%-*s", findingIndent, f.Level), head+": "+f.Found))
		if f.Why != "" {
			fmt.Fprint(d.stdout, wrapped(fmt.Sprintf("%*s", adviceIndent, "why: "), f.Why))
		}
		if f.Do != "" {
			fmt.Fprint(d.stdout, wrapped(fmt.Sprintf("%*s", adviceIndent, "do:  "), f.Do))
		}
	}
	fmt.Fprintf(d.stdout, "\n%s, %s, %d not checked, %d ok\n", counted(doctor.Count(findings, doctor.Problem), "problem"),
		counted(doctor.Count(findings, doctor.Warning), "warning"), doctor.Count(findings, doctor.NotChecked), doctor.Count(findings, doctor.OK))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// wrapped is a text behind its first words, on lines that begin below it.
func wrapped(first, text string) string {
	var b strings.Builder
	indent := strings.Repeat(" ", len(first))
	line := first
	for word := range strings.FieldsSeq(printable(text)) {
		if line != first && line != indent && len([]rune(line))+1+len([]rune(word)) > findingWidth {
			b.WriteString(line + "\n")
			line = indent
		}
		if line != first && line != indent {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}
