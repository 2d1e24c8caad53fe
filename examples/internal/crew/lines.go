package crew

import "bytes"

// lines tells what is written to it line by line, without the ends.
type lines struct {
	told func(line string)
	rest []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, ended := bytes.Cut(l.rest, []byte("\n"))
		if !ended {
			return len(b), nil
		}
		l.told(string(line))
		l.rest = bytes.Clone(rest)
	}
}
