package compose

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

const (
	program   = "github.com/mcpd/mcpd/cmd/mcpd"
	goVersion = "1.26" // of go.mod
)

//go:embed Dockerfile.tmpl
var recipeText string

// recipe returns the Dockerfile of mcpd.
func recipe(d *Deployment) (File, error) {
	return filled(dockerFile, recipeText, map[string]any{
		"Written": written, "Go": goVersion, "Module": program, "Version": d.Version, "User": DefaultUser, "Port": d.Port,
	})
}

// filled returns a file that is made of a template. All that is put into it has
// been checked, or is escaped for the file.
func filled(name, text string, data map[string]any) (File, error) {
	t, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return File{}, fmt.Errorf("%s: read its template: %w", name, err)
	}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return File{}, fmt.Errorf("%s: fill its template: %w", name, err)
	}
	return File{name, []byte(b.String())}, nil
}
