package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/schema"
)

// newOffering returns a tool of the upstream "lab" with this schema.
func newOffering(name, input string) *Item {
	i := &Item{Kind: Tools, Name: name, Address: name, Upstream: "lab", Schemas: Schemas{PolicySchema: json.RawMessage(input)}, Key: sha256.Sum256([]byte(name + input))}
	i.Input, _ = schema.Compile(json.RawMessage(input), diag.Range{}, nil)
	i.Finalize()
	return i
}

// buildOverlay builds valid files, and adds offers.
func buildOverlay(t *testing.T, b *Builder, change Change, offers Offers) *Catalog {
	t.Helper()
	built := b.Build(change, nil)
	if built.Problems.HasErrors() {
		t.Fatal(built.Problems)
	}
	c, warnings := b.Overlay(built.Base, offers)
	if warnings.HasErrors() {
		t.Fatal(warnings)
	}
	return c
}

// acceptedFrom returns a lock file that accepts tools.
func acceptedFrom(accepted *Accepted) func([]definition.Upstream, LockFile) Accepted {
	return func([]definition.Upstream, LockFile) Accepted { return *accepted }
}

const (
	numbered = `{"type":"object","properties":{"n":{"type":"number"}}}`
	lettered = `{"type":"object","properties":{"m":{"type":"number"}},"additionalProperties":false}`
)

const small = "policy \"small\" {\n  tools  = [\"read\"]\n  deny   = \"args.n > 5\"\n  reason = \"no\"\n}\n"

// Files are always loaded, whatever a server offers, and no item is served without its policies.
func TestOverlay_localNamesWin(t *testing.T) {
	config := files(map[string]string{"mcpd.hcl": "upstream \"lab\" {\n  url = \"https://lab.test/mcp\"\n  prefix = \"\"\n}\n" + small})
	tools := files(map[string]string{"t.hcl": "tool \"own\" { run = \"return 1;\" }"})
	b := New(Options{Tools: tools, Config: config, ConfigPath: "mcpd.hcl"})
	for _, step := range []struct {
		what, own string
		offered   []*Item
		served    []string
		left      []string
	}{
		{"what fits", "own", []*Item{newOffering("read", numbered)}, []string{"own", "read"}, nil},
		{"a tool that the rule does not fit", "mine", []*Item{newOffering("read", lettered)}, []string{"mine"}, []string{"read unruled"}},
		{"a name of a file", "yours", []*Item{newOffering("read", numbered), newOffering("yours", numbered)}, []string{"read", "yours"}, []string{"yours taken"}},
		{"a file that takes a name which serves", "read", []*Item{newOffering("read", numbered)}, []string{"read"}, []string{"read taken"}},
		{"nothing", "ours", nil, []string{"ours"}, nil},
	} {
		tools["t.hcl"].Data = []byte("tool \"" + step.own + "\" {\n  input \"n\" { type = integer }\n  run = \"return 1;\"\n}")
		c := buildOverlay(t, b, Change{All: true}, Offers{Items: step.offered})
		b.MarkServed(c)
		var served, left []string
		for _, e := range c.Entries[Tools] {
			if served = append(served, e.Name); e.Name == "read" && len(e.Rules) != 1 {
				t.Errorf("%s: read has the policies %v", step.what, e.Rules)
			}
		}
		for _, l := range c.LeftOut {
			left = append(left, l.Address+map[bool]string{true: " unruled"}[l.PolicyMismatch]+map[bool]string{true: " taken"}[l.NameConflict])
		}
		if diff := cmp.Diff([][]string{step.served, step.left}, [][]string{served, left}); diff != "" {
			t.Errorf("%s (-want +got)\n%s", step.what, diff)
		}
		if e := c.Entry(Tools, step.own); e == nil || e.Upstream != "" {
			t.Errorf("%s: the file's tool is not served", step.what)
		}
	}
}

// The revision equals that of the base without offers, and depends on served and left-out items.
func TestOverlay_revision(t *testing.T) {
	b := New(Options{Config: files(map[string]string{"mcpd.hcl": "upstream \"lab\" { url = \"https://lab.test/mcp\" }\n"}), ConfigPath: "mcpd.hcl"})
	base := b.Build(Change{All: true}, nil).Base
	of := func(o Offers) string {
		c, _ := b.Overlay(base, o)
		return c.Revision
	}
	read := Offers{Items: []*Item{newOffering("lab_read", numbered)}}
	left := Offers{LeftOut: []LeftOut{NewLeftOut(Tools, "lab_read", "lab", "no")}}
	served, again := of(read), of(read)
	if of(Offers{}) != base.Revision || served == base.Revision || of(left) == base.Revision || of(left) == served || served != again {
		t.Error("the revision is wrong")
	}
}

func TestOverlay_foreignPrefix(t *testing.T) {
	config := files(map[string]string{"mcpd.hcl": "upstream \"lab\" {\n  url = \"https://lab.test/mcp\"\n  prefix = \"\"\n  rename = { theirs = \"crm_ours\" }\n}\n" +
		"upstream \"crm\" {\n  url = \"https://crm.test/mcp\"\n  rename = { delete = \"erase\" }\n}\nupstream \"crm_eu\" { url = \"https://eu.test/mcp\" }\n"})
	of := func(upstream string, kind Kind, name string) *Item {
		i := newOffering(name, `{"type":"object"}`)
		i.Upstream, i.Kind = upstream, kind
		return i
	}
	offered := []*Item{
		of("lab", Tools, "get"), of("lab", Tools, "crm_get"), of("lab", Prompts, "crm_plan"), of("lab", Resources, "crm_note"), of("lab", Tools, "crm_ours"),
		of("lab", Tools, "erase"), of("lab", Prompts, "erase"), of("lab", Resources, "erase"), of("lab", Resources, "crm_ours"),
		of("crm", Tools, "crm_list"), of("crm", Tools, "crm_eu_list"), of("crm_eu", Tools, "crm_eu_get"),
	}
	c := buildOverlay(t, New(Options{Config: config, ConfigPath: "mcpd.hcl"}), Change{All: true}, Offers{Items: offered, Known: []ToolName{{"lab", "get"}}})
	var served, left []string
	for _, entries := range c.Entries {
		for _, e := range entries {
			served = append(served, e.Name)
		}
	}
	for _, l := range c.LeftOut {
		left = append(left, l.Upstream+" "+l.Address+": "+l.Reason)
	}
	if diff := cmp.Diff([]string{"crm_eu_get", "crm_list", "crm_ours", "get", "erase"}, served); diff != "" {
		t.Errorf("served (-want +got)\n%s", diff)
	}
	want := []string{
		`lab crm_get: names with the prefix "crm_" are reserved for the upstream "crm"`,
		`lab crm_plan: names with the prefix "crm_" are reserved for the upstream "crm"`,
		`lab crm_note: names with the prefix "crm_" are reserved for the upstream "crm"`,
		`lab erase: the upstream "crm" renames one of its items to that name`,
		`lab erase: the upstream "crm" renames one of its items to that name`,
		`lab crm_ours: names with the prefix "crm_" are reserved for the upstream "crm"`,
		`crm crm_eu_list: names with the prefix "crm_eu_" are reserved for the upstream "crm_eu"`,
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left out (-want +got)\n%s", diff)
	}
}

// An item with a name that another block assigns by a rename is left out, in any order.
func TestOverlay_renameTakesName(t *testing.T) {
	config := files(map[string]string{"mcpd.hcl": "upstream \"lab\" { url = \"https://lab.test/mcp\" }\nupstream \"crm\" {\n  url = \"https://crm.test/mcp\"\n  rename = { find = \"lab_get\" }\n}\n"})
	c := buildOverlay(t, New(Options{Config: config, ConfigPath: "mcpd.hcl"}), Change{All: true}, Offers{Items: []*Item{newOffering("lab_get", `{"type":"object"}`)}, Known: []ToolName{{"lab", "lab_get"}}})
	if len(c.LeftOut) != 1 || !c.LeftOut[0].NameConflict || c.LeftOut[0].Reason != `the upstream "crm" renames one of its items to that name` {
		t.Errorf("left out are %+v", c.LeftOut)
	}
}

// The upstream with the accepted tool owns the name, even while its tool is not served; otherwise
// the first block does.
func TestOverlay_oneNameOfTwoUpstreams(t *testing.T) {
	config := files(map[string]string{"mcpd.hcl": "upstream \"evil\" {\n  url = \"https://evil.test/mcp\"\n  prefix = \"\"\n}\nupstream \"lab\" {\n  url = \"https://lab.test/mcp\"\n  prefix = \"\"\n}\n"})
	good, evil := newOffering("x", `{"type":"object"}`), newOffering("x", `{"type":"object"}`)
	evil.Upstream, evil.Key = "evil", sha256.Sum256([]byte("evil"))
	b := New(Options{Config: config, ConfigPath: "mcpd.hcl"})
	accepted := []ToolName{{"lab", "x"}}
	quarantined := NewLeftOut(Tools, "x", "lab", "it is not accepted yet")
	for _, step := range []struct {
		what   string
		offers Offers
		want   string
	}{
		{"nothing accepted", Offers{Items: []*Item{evil, good}}, "evil"},
		{"the second alone", Offers{Items: []*Item{good}}, "lab"},
		{"accepted", Offers{Items: []*Item{evil, good}, Known: accepted}, "lab"},
		{"in quarantine", Offers{Items: []*Item{evil}, LeftOut: []LeftOut{quarantined}, Known: accepted}, ""},
		{"not reached", Offers{Items: []*Item{evil}, Unreachable: []string{"lab"}, Known: accepted}, ""},
		{"offered no more", Offers{Items: []*Item{evil}, Known: accepted}, ""},
		{"both accepted", Offers{Items: []*Item{evil, good}, Known: []ToolName{{"evil", "x"}, {"lab", "x"}}}, "evil"},
	} {
		c := buildOverlay(t, b, Change{}, step.offers)
		got := ""
		if e := c.Entry(Tools, "x"); e != nil {
			got = e.Upstream
		}
		if got != step.want {
			t.Errorf("%s: it is served by %q, want %q", step.what, got, step.want)
		}
	}
}

// A missing name is an error if mcpd.lock has the tools of its upstream, and a warning otherwise.
func TestBuild_namesOfUpstreams(t *testing.T) {
	const upstreams = "upstream \"lab\" { url = \"https://lab.test/mcp\" }\nupstream \"crm\" {\n  url    = \"https://crm.test/mcp\"\n  prefix = \"\"\n}\n"
	config := files(map[string]string{"mcpd.hcl": ""})
	tools := files(map[string]string{"t.hcl": "tool \"wipe_disk\" { run = \"return 1;\" }"})
	get, drop, bare := newOffering("lab_get", `{"type":"object"}`), newOffering("lab_drop", `{"type":"object"}`), newOffering("bare", `{"type":"object"}`)
	bare.Upstream = "crm"
	all := Offers{Items: []*Item{get, drop, bare}}
	both := Accepted{Known: []ToolName{{"lab", "lab_get"}, {"lab", "lab_drop"}, {"crm", "bare"}}, Upstreams: []string{"lab", "crm"}}
	for _, row := range []struct {
		what, tool string
		accepted   Accepted
		offers     Offers
		want       []string
	}{
		{"nothing is known", "lab_dorp", Accepted{}, Offers{Unreachable: []string{"lab", "crm"}}, nil},
		{"nothing is accepted", "lab_dorp", Accepted{}, all, []string{`mcpd.hcl:7:13: warning: the upstream "lab" provides no tool "lab_dorp"; did you mean "lab_drop"?`}},
		{"nothing is accepted of a server without a prefix", "wipe_dsik", Accepted{Upstreams: []string{"lab"}}, Offers{Unreachable: []string{"crm"}}, []string{`mcpd.hcl:7:13: warning: there is no tool named "wipe_dsik"; the upstream "crm" has not listed its items yet; did you mean "wipe_disk"?`}},
		{"it offers none", "wipe_dsik", Accepted{Upstreams: []string{"lab"}}, all, []string{`mcpd.hcl:7:13: warning: there is no tool named "wipe_dsik", and the upstream "crm" provides none; did you mean "wipe_disk"?`}},
		{"accepted", "lab_drop", both, all, nil},
		{"not accepted", "lab_dorp", both, all, []string{`mcpd.hcl:7:13: error: mcpd.lock has no tool "lab_dorp" of the upstream "lab"; did you mean "lab_drop"?`}},
		{"not accepted of a server that is not reached", "lab_other", both, Offers{Unreachable: []string{"lab"}}, []string{`mcpd.hcl:7:13: error: mcpd.lock has no tool "lab_other" of the upstream "lab"; correct the name, or accept the tool: mcpd lock accept lab`}},
		{"not accepted without a prefix", "wipe_dsik", both, all, []string{`mcpd.hcl:7:13: error: there is no tool named "wipe_dsik", and mcpd.lock has none of the upstream "crm"; did you mean "wipe_disk"?`}},
		{"accepted, and gone", "lab_drop", both, Offers{Items: []*Item{get, bare}}, []string{`mcpd.hcl:7:13: warning: the upstream "lab" provides no tool "lab_drop"`}},
		{"accepted, and not reached", "lab_drop", both, Offers{Unreachable: []string{"lab"}}, nil},
		{"a pattern for which nothing is accepted", "lab_x*", both, all, []string{`mcpd.hcl:7:13: warning: no tool matches the pattern "lab_x*" of policy "no"; it may match tools that are added later; remove it if there will be none`}},
		{"a pattern for which nothing is offered", "lab_x*", Accepted{}, all, []string{`mcpd.hcl:7:13: warning: no tool matches the pattern "lab_x*" of policy "no"; it may match tools that are added later; remove it if there will be none`}},
		{"a pattern of a server that is not reached", "lab_x*", Accepted{}, Offers{Unreachable: []string{"lab"}}, nil},
		{"a pattern for what is offered", "lab_d*", Accepted{}, all, nil},
	} {
		config["mcpd.hcl"].Data = []byte(upstreams + "policy \"no\" {\n  tools  = [\"" + row.tool + "\"]\n  deny   = \"call.via == 'code'\"\n  reason = \"no\"\n}\n")
		b := New(Options{Tools: tools, Config: config, ConfigPath: "mcpd.hcl", Accepted: acceptedFrom(&row.accepted)})
		built := b.Build(Change{All: true}, nil)
		problems := built.Problems
		if !problems.HasErrors() {
			_, warnings := b.Overlay(built.Base, row.offers)
			problems = append(problems, warnings...)
		}
		if diff := cmp.Diff(row.want, diagnosticLines(problems)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", row.what, diff)
		}
	}
}

// Policies and limit keys are checked against the tools in mcpd.lock, whatever their server offers.
func TestBuild_rulesFitTheLock(t *testing.T) {
	const upstream = "upstream \"lab\" { url = \"https://lab.test/mcp\" }\n"
	accepted := Accepted{Items: []*Item{newOffering("lab_read", lettered)}, Known: []ToolName{{"lab", "lab_read"}}, Upstreams: []string{"lab"}}
	for rule, want := range map[string]string{
		"policy \"p\" {\n  tools  = [\"lab_*\"]\n  deny   = \"args.n > 5\"\n  reason = \"no\"\n}\n":     `mcpd.hcl:4:18: error: tool "lab_read" has no argument "n"`,
		"limit \"l\" {\n  tools = [\"lab_read\"]\n  key   = \"string(args.n)\"\n  rate  = \"1/s\"\n}\n": `mcpd.hcl:4:24: error: tool "lab_read" has no argument "n"`,
	} {
		b := New(Options{Config: files(map[string]string{"mcpd.hcl": upstream + rule}), ConfigPath: "mcpd.hcl", Accepted: acceptedFrom(&accepted)})
		if got := diagnosticLines(b.Build(Change{All: true}, nil).Problems); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("got %q, want %s", got, want)
		}
	}
	fits := "policy \"p\" {\n  tools  = [\"lab_*\"]\n  deny   = \"has(args.m) && args.m > 5\"\n  reason = \"no\"\n}\n"
	b := New(Options{Config: files(map[string]string{"mcpd.hcl": upstream + fits}), ConfigPath: "mcpd.hcl", Accepted: acceptedFrom(&accepted)})
	c := buildOverlay(t, b, Change{All: true}, Offers{Items: []*Item{newOffering("lab_read", lettered)}})
	compiled := c.Entry(Tools, "lab_read").Rules[0].Compiled
	if again := buildOverlay(t, b, Change{All: true}, Offers{Items: []*Item{newOffering("lab_read", lettered)}}); again.Entry(Tools, "lab_read").Rules[0].Compiled != compiled {
		t.Error("a policy was compiled twice")
	}
}

// A new server is not accepted while policies do not match its tools, as mcpd.lock would then not
// match the files.
func TestOverlay_firstUse(t *testing.T) {
	const upstream = "upstream \"lab\" { url = \"https://lab.test/mcp\" }\n"
	rule := func(tools, deny string) string {
		return fmt.Sprintf("policy \"p\" {\n  tools  = [%q]\n  deny   = %q\n  reason = \"no\"\n}\n", tools, deny)
	}
	for _, row := range []struct {
		what, rules string
		served      int
		withheld    bool
	}{
		{"no rule", "", 2, false},
		{"a rule that fits", rule("lab_write", "args.n > 5"), 2, false},
		{"a rule that does not fit", rule("lab_write", "args.m > 5"), 0, true},
		{"a pattern that does not fit one", rule("lab_*", "args.n > 5"), 0, true},
		{"a name that is not offered", rule("lab_wirte", "call.via == 'code'"), 0, true},
		{"a pattern that matches nothing", rule("lab_x*", "call.via == 'code'"), 2, false},
		{"a name of another server", rule("crm_write", "call.via == 'code'"), 2, false},
	} {
		config := files(map[string]string{"mcpd.hcl": upstream + "upstream \"crm\" { url = \"https://crm.test/mcp\" }\n" + row.rules})
		c := buildOverlay(t, New(Options{Config: config, ConfigPath: "mcpd.hcl"}), Change{All: true}, Offers{
			Items: []*Item{newOffering("lab_read", lettered), newOffering("lab_write", numbered)}, FirstUse: map[string][]string{"lab": {"lab_read", "lab_write"}}, Unreachable: []string{"crm"},
		})
		unruled := 0
		for _, l := range c.LeftOut {
			if l.PolicyMismatch {
				unruled++
			}
		}
		if n := len(c.Entries[Tools]); n != row.served || unruled != 2-row.served || c.Withheld("lab") != row.withheld {
			t.Errorf("%s: %d tools are served, left out are %v", row.what, n, c.LeftOut)
		}
	}
}

// diagnosticLines returns the diagnostics as lines.
func diagnosticLines(problems diag.List) (lines []string) {
	for _, p := range problems.Sort() {
		lines = append(lines, p.String())
	}
	return lines
}

func TestUpstream_relativeProgram(t *testing.T) {
	for config, want := range map[string]string{"mcpd.hcl": "./srv", "etc/mcpd.hcl": "etc/srv"} {
		placed := New(Options{ConfigPath: config}).resolveUpstreams([]definition.Upstream{{Command: []string{"./srv"}}})
		if got := filepath.ToSlash(placed[0].Command[0]); got != want {
			t.Errorf("%s resolves to %s", config, got)
		}
	}
}

func TestTruncateName_characters(t *testing.T) {
	left := NewLeftOut(Resources, "lab:"+strings.Repeat("€", 100), "lab", "no")
	if !utf8.ValidString(left.Address) || !strings.HasSuffix(left.Address, "€…") || len(left.Address) > 140 {
		t.Errorf("the name is %q", left.Address)
	}
}
