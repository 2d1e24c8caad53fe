package docs_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/cases.md anew from the comments of the tests")

var (
	caseMark = regexp.MustCompile(`Cases? ([A-Z]\d+(?:(?:, | and )[A-Z]\d+)*)[:,]?\s+`)
	caseID   = regexp.MustCompile(`[A-Z]\d+`)
)

const casesHead = `# Cases

How others failed, and the test that would fail if we did the same. The stories are the comments of the tests; after a change of one,
` + "`go test ./internal/docs -update`" + ` writes this page anew.

| case | story | test |
|---|---|---|
`

// docs/cases.md has a row for each case that a test names, and no other.
func TestCases(t *testing.T) {
	t.Parallel()

	var rows []string
	for _, file := range goFiles(t, func(path string) bool { return strings.HasSuffix(path, "_test.go") }) {
		rows = append(rows, casesOf(t, file)...)
	}
	slices.Sort(rows)
	require.NotEmpty(t, rows)
	page := casesHead
	for _, row := range rows {
		_, row, _ = strings.Cut(row, "\x00")
		page += row + "\n"
	}
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(root, "docs/cases.md"), []byte(page), 0o644))
	}
	require.Equal(t, page, read(t, "docs/cases.md"), "run: go test ./internal/docs -update")
}

// casesOf returns the rows of a file, each behind what it is sorted by.
func casesOf(t *testing.T, file string) []string {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, filepath.Join(root, file), nil, parser.ParseComments)
	require.NoError(t, err)
	var rows []string
	for _, comment := range parsed.Comments {
		text := strings.Join(strings.Fields(comment.Text()), " ") + " "
		marks := caseMark.FindAllStringSubmatchIndex(text, -1)
		if len(marks) == 0 {
			continue
		}
		test := testAt(parsed, comment)
		if test == "" {
			t.Errorf("%s: a case stands outside of a test: %s", fset.Position(comment.Pos()), text)
			continue
		}
		for i, mark := range marks {
			end := len(text)
			if i+1 < len(marks) {
				end = marks[i+1][0]
			}
			story := strings.TrimSpace(text[mark[1]:end])
			story = strings.ReplaceAll(strings.ToUpper(story[:1])+story[1:], "|", `\|`)
			for _, id := range caseID.FindAllString(text[mark[2]:mark[3]], -1) {
				order := fmt.Sprintf("%s%03s %s %s", id[:1], id[1:], file, test)
				rows = append(rows, fmt.Sprintf("%s\x00| %s | %s | [%s](../%s) |", order, id, story, test, file))
			}
		}
	}
	return rows
}

// testAt returns the test that a comment stands above or in.
func testAt(file *ast.File, comment *ast.CommentGroup) string {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "Test") && !strings.HasPrefix(f.Name.Name, "Fuzz") {
			continue
		}
		if f.Doc == comment || f.Pos() <= comment.Pos() && comment.End() <= f.End() {
			return f.Name.Name
		}
	}
	return ""
}
