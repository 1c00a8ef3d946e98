package policylang

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcpd/mcpd/diag"
)

var update = flag.Bool("update", false, "write what is printed into the scenarios")

// TestDiagnostics compiles the policies of each scenario in testdata/diagnostics and compares
// the printed diagnostics.
func TestDiagnostics(t *testing.T) {
	files, err := filepath.Glob("testdata/diagnostics/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := printed(t, archive)
			if *update {
				archive.Files[len(archive.Files)-1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(archive.Files[len(archive.Files)-1].Data), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// printed compiles the policies of policies.hcl against each *.json, an argument schema, and
// prints the diagnostics.
func printed(t *testing.T, archive *txtar.Archive) string {
	e := newEnv(t)
	sources := map[string][]byte{}
	var policies []Source
	var tools []Tool
	for _, f := range archive.Files {
		sources[f.Name] = f.Data
		if f.Name == "policies.hcl" {
			policies = readPolicies(t, f.Name, string(f.Data))
		}
		if name, ok := strings.CutSuffix(f.Name, ".json"); ok {
			whole := diag.WholeFile("tools.d/"+name+".hcl", "tool").All()
			tools = append(tools, Tool{Name: name, Schema: f.Data, Range: whole})
		}
	}
	var all diag.List
	for _, src := range policies {
		for _, tool := range tools {
			p, diags := e.Compile(src, tool)
			if (p == nil) != diags.HasErrors() {
				t.Errorf("policy %q: compiled %v beside %v", src.Name, p != nil, diags)
			}
			all = append(all, diags...)
		}
		if len(tools) == 0 {
			all = append(all, e.CompileAny(src)...)
		}
	}
	for _, d := range all {
		if d.Detail == "" {
			t.Errorf("%s: %s: no detail", d.Range, d.Summary)
		}
	}
	var b bytes.Buffer
	if err := (diag.Printer{Sources: sources}).Print(&b, all.Sort()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// readPolicies parses the subset of HCL that the scenarios use.
func readPolicies(t *testing.T, file, text string) []Source {
	var out []Source
	lines := strings.SplitAfter(text, "\n")
	offset := 0
	for i := 0; i < len(lines); i++ {
		line, start := lines[i], offset
		offset += len(line)
		if name, ok := strings.CutPrefix(line, "policy \""); ok {
			whole := diag.WholeFile(file, text)
			end := strings.IndexByte(line, '{') - 1
			out = append(out, Source{Name: name[:strings.IndexByte(name, '"')], Range: whole.Range(start, start+end)})
			continue
		}
		name, value, ok := strings.Cut(line, "= ")
		if !ok || len(out) == 0 {
			continue
		}
		at := diag.Advance(diag.Pos{Line: 1, Column: 1}, text[:start+len(name)+2])
		var body diag.Text
		if strings.HasPrefix(value, "<<CEL") {
			from := offset
			for i++; strings.TrimSpace(lines[i]) != "CEL"; i++ {
				offset += len(lines[i])
			}
			body = diag.NewText(file, text[from:offset], diag.Advance(diag.Pos{Line: 1, Column: 1}, text[:from]))
			offset += len(lines[i])
		} else {
			body = quotedText(file, strings.TrimSpace(value), at)
		}
		setText(t, &out[len(out)-1], strings.TrimSpace(name), body)
	}
	return out
}

// quotedText parses an HCL string that may hold escaped quotes.
func quotedText(file, value string, at diag.Pos) diag.Text {
	b := diag.TextBuilder{File: file}
	at = diag.Advance(at, `"`)
	for rest := value[1 : len(value)-1]; rest != ""; {
		i := strings.Index(rest+`\"`, `\"`)
		b.Add(rest[:i], at)
		at = diag.Advance(at, rest[:i])
		if rest = rest[i:]; rest != "" {
			b.Add(`"`, at)
			at = diag.Advance(at, `\"`)
			rest = rest[2:]
		}
	}
	return b.Text()
}

func setText(t *testing.T, src *Source, name string, body diag.Text) {
	switch name {
	case "when":
		src.When = &body
	case "allow":
		src.Allow = &body
	case "deny":
		src.Deny = &body
	case "reason":
		src.ReasonExpr = &body
	default:
		t.Fatalf("unknown argument %q", name)
	}
}

// Arguments of prompts and variables of templates have no defaults.
func TestLint_defaultAdviceOnlyForTools(t *testing.T) {
	const text = "policy \"p\" {\n  deny = \"args.q == 'a'\"\n}\n"
	schema := []byte(`{"type":"object","properties":{"q":{"type":"string"}}}`)
	for kind, want := range map[string]string{
		"tool":   "test for it first, as in has(args.q) && ..., or give the argument a default",
		"prompt": "test for it first, as in has(args.q) && ...",
	} {
		_, problems := newEnv(t).Compile(readPolicies(t, "policies.hcl", text)[0], Tool{Name: "x", Kind: kind, Schema: schema})
		if len(problems) != 1 || problems[0].Detail != want {
			t.Errorf("%s: got %v", kind, problems)
		}
	}
}
