package campaign

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

const childPackage = "github.com/semel-go/semel/internal/chaos/child"

// build builds the children's program into dir, with a planted bug or without.
func build(ctx context.Context, dir, plant string) (binary string, err error) {
	tag := ""
	if plant != "" {
		tag = "plant_" + strings.ReplaceAll(plant, "-", "_")
		if err := planted(ctx, tag); err != nil {
			return "", fmt.Errorf("plant %q: %w", plant, err)
		}
	}
	binary = filepath.Join(dir, "child")
	_, err = goTool(ctx, "build", "-tags="+tag, "-o", binary, childPackage)
	return binary, err
}

// planted makes sure that the tag changes something: a mistyped plant would
// prove that all is well.
func planted(ctx context.Context, tag string) error {
	const files = `{{range .GoFiles}}{{$.ImportPath}}/{{.}}{{"\n"}}{{end}}`
	plain, err := goTool(ctx, "list", "-deps", "-f", files, childPackage)
	if err != nil {
		return err
	}
	tagged, err := goTool(ctx, "list", "-deps", "-tags="+tag, "-f", files, childPackage)
	if err != nil {
		return err
	}
	if plain == tagged {
		return fmt.Errorf("no file that a consumer is built from has the build tag %s", tag)
	}
	return nil
}

func goTool(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, stderr.String())
	}
	return stdout.String(), nil
}
