package privdiff

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

var update = flag.Bool("update", false, "write the changes into the golden files")

// Each archive of testdata/diff holds two versions, below old/ and new/, and the expected
// changes.
func TestCompare_edits(t *testing.T) {
	archives, err := filepath.Glob("../../../testdata/diff/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want := len(archive.Files) - 1
			if want < 0 || archive.Files[want].Name != "want" {
				archive.Files, want = append(archive.Files, txtar.File{Name: "want"}), want+1
			}
			got := told(Compare(sideOf(t, archive, "old"), sideOf(t, archive, "new")))
			if *update {
				archive.Files[want].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[want].Data), got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func told(changes []Change) string {
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%s %s\n", c.Effect.Symbol(), c)
	}
	return b.String()
}

// sideOf reads one version, which must have no errors.
func sideOf(t testing.TB, archive *txtar.Archive, side string) Snapshot {
	t.Helper()
	s := Snapshot{ToolsDir: "/" + side + "/tools.d", ConfigDir: "/" + side, Config: configOf(t, nil, side)}
	for _, f := range archive.Files {
		if f.Name == side+"/mcpd.hcl" {
			s.Config = configOf(t, f.Data, side)
		}
	}
	scope := hclfile.Scope{Vars: s.Config.Variables}
	for _, secret := range s.Config.Secrets {
		scope.Secrets = append(scope.Secrets, secret.Name)
	}
	for _, f := range archive.Files {
		name, ok := strings.CutPrefix(f.Name, side+"/tools.d/")
		if !ok {
			continue
		}
		src := hclfile.Source{Path: "tools.d/" + name, RelDir: strings.Trim(path.Dir(name), "."), AbsDir: path.Join(s.ToolsDir, path.Dir(name)), Bytes: f.Data}
		file, problems := hclfile.Parse(src, hclfile.ToolsKind)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		defined, problems := file.Decode(scope)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		s.Files = append(s.Files, &defined)
	}
	return s
}

func configOf(t testing.TB, text []byte, side string) *definition.Config {
	t.Helper()
	file, problems := hclfile.Parse(hclfile.Source{Path: "mcpd.hcl", AbsDir: "/" + side, Bytes: text}, hclfile.ConfigKind)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	config, problems := file.DecodeConfig(nil)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return config
}

// The link of a root changes without a change to the tool files.
func TestCompare_changedLinks(t *testing.T) {
	const tool = "tool \"t\" {\n  allow {\n    fs \"f\" { root = \"data\" }\n  }\n  run = \"return 1;\"\n}\n"
	archive := &txtar.Archive{Files: []txtar.File{{Name: "old/tools.d/a.hcl", Data: []byte(tool)}, {Name: "new/tools.d/a.hcl", Data: []byte(tool)}}}
	leads := func(to map[string]string) func(string) (string, error) {
		return func(name string) (string, error) {
			if real, ok := to[name]; ok {
				return real, nil
			}
			return name, nil
		}
	}
	old, new := sideOf(t, archive, "old"), sideOf(t, archive, "new")
	for _, c := range []struct {
		name     string
		old, new map[string]string
		want     string
	}{
		{"nothing leads elsewhere", nil, nil, ""},
		{"the whole copy stands behind a link", map[string]string{"/old/tools.d": "/x/tools.d", "/old/tools.d/data": "/x/tools.d/data"}, nil, ""},
		{"the root is a link now", nil, map[string]string{"/new/tools.d/data": "/srv/secrets"},
			"+ tools.d/a.hcl:3:21: tool \"t\": fs.f links of its path: changed: review it\n"},
	} {
		old.ResolvePath, new.ResolvePath = leads(c.old), leads(c.new)
		if diff := cmp.Diff(c.want, told(Compare(old, new))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Repeated comparisons return the same order.
func TestCompare_stableOrder(t *testing.T) {
	old, new := Snapshot{Config: configOf(t, nil, "old")}, manyTools(t, 30, "b.internal:443")
	new.FileHashes = map[string][32]byte{"a.js": {}, "b.js": {}, "c.js": {}, "d.js": {}}
	first := told(Compare(old, new))
	for range 20 {
		if again := told(Compare(old, new)); again != first {
			t.Fatalf("the second comparison differs (-first +second)\n%s", cmp.Diff(first, again))
		}
	}
}

// manyTools returns a snapshot with n tools and one host.
func manyTools(t testing.TB, n int, host string) Snapshot {
	t.Helper()
	var archive txtar.Archive
	for i := range n {
		text := fmt.Sprintf(`tool "t%d" {
  input "a" {
    type    = string
    pattern = "^x$"
  }
  output "b" { type = string }
  allow {
    http "crm" { hosts = ["a.internal:443", %q] }
  }
  run = "return 1;"
}
`, i, host)
		archive.Files = append(archive.Files, txtar.File{Name: fmt.Sprintf("new/tools.d/%d.hcl", i), Data: []byte(text)})
	}
	return sideOf(t, &archive, "new")
}

// BenchmarkCompare compares 1,000 tools with different hosts.
func BenchmarkCompare(b *testing.B) {
	old, new := manyTools(b, 1000, "b.internal:443"), manyTools(b, 1000, "c.internal:443")
	b.ResetTimer()
	for b.Loop() {
		if n := len(Compare(old, new)); n != 2000 {
			b.Fatal(n)
		}
	}
}

// Random patterns and names: if one pattern covers another, it matches everything that the
// other matches.
func TestCovers_allNames(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	word := func(letters string) string {
		b := make([]byte, random.IntN(6))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	covered, matched := 0, 0
	for range 200_000 {
		wide, narrow, name := word("ab.*"), word("ab.*"), word("ab.")
		if !covers(fact{Fact: grant.Fact{Value: wide}}, fact{Fact: grant.Fact{Value: narrow}}) {
			continue
		}
		covered++
		if !(definition.Name{Text: narrow}).Matches(name) {
			continue
		}
		matched++
		if !(definition.Name{Text: wide}).Matches(name) {
			t.Fatalf("%q covers %q, which matches %q", wide, narrow, name)
		}
	}
	if covered < 1000 || matched < 100 {
		t.Errorf("too few cases: %d covered, %d matched", covered, matched)
	}
}

// FuzzSchemas compares two schemas: a schema equals itself, the reverse comparison has as many
// changes, and it restores removed privileges.
func FuzzSchemas(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"enum":["*",1]}},"additionalProperties":false}`, `{"properties":{"a":{}}}`)
	f.Add(`{"items":{"items":{"pattern":"x"}}}`, `{"items":[{"maxLength":1e400}]}`)
	f.Add(`{"required":["a",1],"properties":{"a.b":true,"":{}}}`, `true`)
	f.Fuzz(func(t *testing.T, old, new string) {
		if !json.Valid([]byte(old)) || !json.Valid([]byte(new)) {
			return
		}
		was, is := withInput(old), withInput(new)
		if changes := Compare(was, was); len(changes) > 0 {
			t.Errorf("%s differs from itself: %v", old, changes)
		}
		there, back := Compare(was, is), Compare(is, was)
		if (len(there) == 0) != (len(back) == 0) {
			t.Errorf("%s and %s: %v forward, %v backward", old, new, there, back)
		}
		if Count(there, Removes) > 0 && Count(there, Adds) == 0 && Count(back, Adds) == 0 {
			t.Errorf("from %s to %s privilege is removed, but not added backward", old, new)
		}
	})
}

// withInput returns a snapshot with one tool with this input schema.
func withInput(schema string) Snapshot {
	tool := definition.Tool{Name: "t", Input: json.RawMessage(schema), Call: definition.Call{Grant: grant.Set{}}}
	return Snapshot{Config: &definition.Config{}, Files: []*definition.Definitions{{Tools: []definition.Tool{tool}}}}
}

// The grants of a definition are those that a new one adds.
func TestGrants_words(t *testing.T) {
	archive := txtar.Parse([]byte(`
-- new/tools.d/t.hcl --
tool "a" {
  allow {
    http "crm" {
      hosts = ["crm.example.com:443"]
      header "X-Key" { value = "hunter2" }
    }
    env { names = ["LANG", "TZ"] }
    kv "seen" {}
  }
  run = "return 1;"
}
tool "b" {
  run = "return 1;"
}
`))
	s := sideOf(t, archive, "new")
	tools := s.Files[0].Tools
	want := []string{`http.crm (hosts "crm.example.com:443", methods "GET" "HEAD", paths "*")`, `http.crm header "x-key"`, `env (names "LANG" "TZ")`, `kv.seen (scope "tool")`}
	if diff := cmp.Diff(want, s.Grants(tools[0].NameRange)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := s.Grants(tools[1].NameRange); got != nil {
		t.Errorf("got %v", got)
	}
	if got := s.Grants(tools[0].Call.GrantRanges["http.crm"]); got != nil {
		t.Errorf("a range that is no name: %v", got)
	}
}
