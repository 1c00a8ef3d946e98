package compiler

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/esbuild"
	"github.com/mcpd/mcpd/scripting/source"
)

// tool returns the source of a tool with one grant and two variables, at line 5, column 1 of
// tools.d/t.hcl.
func tool(body string) source.Source {
	return source.Source{
		Name: "t", Text: diag.NewText("tools.d/t.hcl", body, diag.Pos{Line: 5, Column: 1, Byte: 100}),
		Objects: []source.Object{{Kind: "http", Name: "crm"}}, Transpiler: esbuild.New(),
		Vars: json.RawMessage(`{"stage":"dev","nested":{"list":[1]}}`),
	}
}

// codeOf returns the source of agent code with a few tools.
func codeOf(text string) source.Source {
	src := source.Source{
		Name: "run_code", Kind: source.Code, Text: diag.WholeFile("code", text), Transpiler: esbuild.New(),
		Members: []source.Member{{Group: "crm", Name: "list", Tool: "crm_list"}},
	}
	for _, name := range []string{"search_web", "crm_list", "print", "crm"} {
		src.Objects = append(src.Objects, source.Object{Kind: "tools", Name: name})
	}
	return src
}

// formatDiagnostics formats diagnostics, with the underlined text.
func formatDiagnostics(src source.Source, list diag.List) (lines []string) {
	for _, d := range list {
		where := d.Range.String()
		if d.Range.File == src.Text.File() {
			body, first := src.Text.Body(), src.Text.Pos(0).Byte
			where += fmt.Sprintf(" %q", body[d.Range.Start.Byte-first:d.Range.End.Byte-first])
		}
		lines = append(lines, fmt.Sprintf("%s: %s: %s", where, d.Severity, d.Summary))
	}
	return lines
}

func importing(files map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
}
