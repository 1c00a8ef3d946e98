package hclfile

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

var update = flag.Bool("update", false, "write what is printed into the golden files")

// TestDiagnostics compares the diagnostics of each archive in testdata/diagnostics with its
// file "want". mcpd.hcl is the config file; the other files are in one tools directory.
func TestDiagnostics(t *testing.T) {
	archives, err := filepath.Glob("../../../testdata/diagnostics/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
			if want < 0 {
				archive.Files = append(archive.Files, txtar.File{Name: "want"})
				want = len(archive.Files) - 1
			}
			got := printed(t, archive.Files[:want])
			if *update {
				archive.Files[want].Data = got
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[want].Data), string(got)); diff != "" {
				t.Errorf("printed differs from want (-want +got):\n%s", diff)
			}
		})
	}
}

// printed loads the files and returns the printed diagnostics.
func printed(t *testing.T, files []txtar.File) []byte {
	t.Helper()
	sources := map[string][]byte{}
	for _, f := range files {
		sources[f.Name] = f.Data
	}
	config := &definition.Config{}
	var problems diag.List
	if data, ok := sources["mcpd.hcl"]; ok {
		file, l := Parse(Source{Path: "mcpd.hcl", Bytes: data}, ConfigKind)
		problems = append(problems, l...)
		if config = (&definition.Config{Incomplete: true}); file != nil {
			config, l = file.DecodeConfig(definition.VarValues{})
			problems = append(problems, l...)
		}
	}
	problems = append(problems, loadTools(files, sources, config)...)
	for _, p := range problems {
		if p.Detail == "" {
			t.Errorf("%s: %s: no detail", p.Range, p.Summary)
		}
	}
	for name, content := range sources {
		sources[name] = RedactSecrets(name, content)
	}
	var out bytes.Buffer
	if err := (diag.Printer{Sources: sources}).Print(&out, problems.Sort()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// loadTools parses and decodes the tool files.
func loadTools(files []txtar.File, sources map[string][]byte, config *definition.Config) diag.List {
	var problems diag.List
	var parsed []*File
	incomplete := config.Incomplete
	for _, f := range files {
		if f.Name == "mcpd.hcl" || !strings.HasSuffix(f.Name, ".hcl") && !strings.HasSuffix(f.Name, ".hcl.json") {
			continue
		}
		file, l := Parse(Source{Path: f.Name, RelDir: strings.TrimPrefix(path.Dir(f.Name), "."), Bytes: f.Data}, ToolsKind)
		problems = append(problems, l...)
		incomplete = incomplete || file == nil || file.Incomplete()
		if file != nil {
			parsed = append(parsed, file)
		}
	}
	var secrets []string
	for _, s := range config.Secrets {
		secrets = append(secrets, s.Name)
	}
	locals, l := JoinLocals(parsed, config.Variables, incomplete)
	problems = append(problems, l...)
	for _, file := range parsed {
		_, l := file.Decode(Scope{
			Incomplete: incomplete, Vars: config.Variables, Locals: locals, Secrets: secrets,
			ReadFile: func(name string) ([]byte, error) {
				if content, ok := sources[name]; ok {
					return content, nil
				}
				return nil, errors.New("there is no such file")
			},
		})
		problems = append(problems, l...)
	}
	return problems
}
