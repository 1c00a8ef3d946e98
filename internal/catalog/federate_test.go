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
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/schema"
)

// offering is a tool of the upstream "lab" whose schema is this.
func offering(name, input string) *Item {
	i := &Item{Kind: Tools, Name: name, Address: name, Upstream: "lab", PolicySchema: json.RawMessage(input), Key: sha256.Sum256([]byte(name + input))}
	i.Input, _ = schema.Compile(json.RawMessage(input), diag.Range{}, nil)
	i.Settle()
	return i
}

// TestAnUpstreamThatOffersSomethingElseAllTheTimeKeepsNoFileFromBeingLoaded, such as one
// that forbids what it does: whatever it offers anew is left out where it does not fit.
func TestAnUpstreamThatOffersSomethingElseAllTheTimeKeepsNoFileFromBeingLoaded(t *testing.T) {
	const fits, not = `{"type":"object","properties":{"n":{"type":"number"}}}`, `{"type":"object","properties":{"m":{"type":"number"}},"additionalProperties":false}`
	config := files(map[string]string{"mcpd.hcl": "upstream \"lab\" {\n  url = \"https://lab.test/mcp\"\n  prefix = \"\"\n}\n" +
		"policy \"small\" {\n  tools  = [\"read\"]\n  deny   = \"args.n > 5\"\n  reason = \"no\"\n}\n"})
	tools := files(map[string]string{"t.hcl": "tool \"own\" { run = \"return 1;\" }"})
	var offered []*Item
	b := New(Options{Tools: tools, Config: config, ConfigPath: "mcpd.hcl", Federate: func([]hclfile.Upstream, map[string]string, LockFile) Federated { return Federated{Items: offered} }})
	for _, step := range []struct {
		what, tools string
		offered     []*Item
		bad         bool
	}{
		{"what serves first", "own", []*Item{offering("read", fits)}, false},
		{"a tool that the rule does not fit any more", "mine", []*Item{offering("read", not)}, false},
		{"a name that is taken", "yours", []*Item{offering("read", fits), offering("yours", fits)}, false},
		{"a file that takes a name which serves", "read", []*Item{offering("read", fits)}, true},
		{"nothing", "ours", nil, false},
		{"another name that is taken", "theirs", []*Item{offering("theirs", fits)}, false},
	} {
		offered = step.offered
		tools["t.hcl"].Data = []byte("tool \"" + step.tools + "\" { run = \"return 1;\" }")
		built := b.Build(Change{All: true}, nil)
		if built.Problems.HasErrors() != step.bad {
			t.Errorf("%s: %v", step.what, built.Problems)
		}
		if !built.Problems.HasErrors() {
			b.Served()
		}
	}
}

func TestNoUpstreamTakesNamesThatBeginAsThoseOfAnother(t *testing.T) {
	config := files(map[string]string{"mcpd.hcl": "upstream \"lab\" {\n  url = \"https://lab.test/mcp\"\n  prefix = \"\"\n  rename = { theirs = \"crm_ours\" }\n}\n" +
		"upstream \"crm\" {\n  url = \"https://crm.test/mcp\"\n  rename = { delete = \"erase\" }\n}\nupstream \"crm_eu\" { url = \"https://eu.test/mcp\" }\n"})
	of := func(upstream string, kind Kind, name string) *Item {
		i := offering(name, `{"type":"object"}`)
		i.Upstream, i.Kind = upstream, kind
		return i
	}
	offered := []*Item{
		of("lab", Tools, "get"), of("lab", Tools, "crm_get"), of("lab", Prompts, "crm_plan"), of("lab", Resources, "crm_note"), of("lab", Tools, "crm_ours"),
		of("lab", Tools, "erase"), of("lab", Prompts, "erase"), of("lab", Resources, "erase"), of("lab", Resources, "crm_ours"),
		of("crm", Tools, "crm_list"), of("crm", Tools, "crm_eu_list"), of("crm_eu", Tools, "crm_eu_get"),
	}
	b := New(Options{Config: config, ConfigPath: "mcpd.hcl", Federate: func([]hclfile.Upstream, map[string]string, LockFile) Federated {
		return Federated{Items: offered, Known: []ToolName{{"lab", "get"}}}
	}})
	built := b.Build(Change{Start: true}, nil)
	if built.Problems.HasErrors() {
		t.Fatal(built.Problems)
	}
	var served, left []string
	for _, entries := range built.Catalog.Entries {
		for _, e := range entries {
			served = append(served, e.Name)
		}
	}
	for _, l := range built.Catalog.LeftOut {
		left = append(left, l.Upstream+" "+l.Address+": "+l.Why)
	}
	if diff := cmp.Diff([]string{"crm_eu_get", "crm_list", "crm_ours", "get", "erase"}, served); diff != "" {
		t.Errorf("served (-want +got)\n%s", diff)
	}
	want := []string{
		`lab crm_get: names that begin with "crm_" are those of the upstream "crm"`,
		`lab crm_plan: names that begin with "crm_" are those of the upstream "crm"`,
		`lab crm_note: names that begin with "crm_" are those of the upstream "crm"`,
		`lab erase: the upstream "crm" gives one of its own that name`,
		`lab erase: the upstream "crm" gives one of its own that name`,
		`lab crm_ours: names that begin with "crm_" are those of the upstream "crm"`,
		`crm crm_eu_list: names that begin with "crm_eu_" are those of the upstream "crm_eu"`,
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left out (-want +got)\n%s", diff)
	}
}

// TestARenameThatTakesANameOfAnotherUpstreamIsAMistake of the file that an edit makes. What
// servers come to offer by themselves is none, and keeps no server from starting.
func TestARenameThatTakesANameOfAnotherUpstreamIsAMistake(t *testing.T) {
	const renames = "upstream \"lab\" { url = \"https://lab.test/mcp\" }\nupstream \"crm\" {\n  url = \"https://crm.test/mcp\"\n  rename = { find = %q }\n}\n"
	config := files(map[string]string{"mcpd.hcl": fmt.Sprintf(renames, "find")})
	offered := []*Item{offering("lab_get", `{"type":"object"}`)}
	accepted := []ToolName{{"lab", "lab_get"}}
	b := New(Options{Config: config, ConfigPath: "mcpd.hcl", Federate: func([]hclfile.Upstream, map[string]string, LockFile) Federated {
		return Federated{Items: offered, Known: accepted}
	}})
	if built := b.Build(Change{All: true}, nil); built.Problems.HasErrors() {
		t.Fatal(built.Problems)
	}
	b.Served()
	config["mcpd.hcl"].Data = fmt.Appendf(nil, renames, "lab_get")
	built := b.Build(Change{Config: true}, nil)
	want := []string{`mcpd.hcl:4:14: error: the upstream "lab" offers a tool "lab_get", which is no name for one of another upstream; give it another name`}
	if diff := cmp.Diff(want, told(built.Problems)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, c := range []struct {
		what   string
		change Change
	}{{"at the start", Change{Start: true}}, {"of upstreams alone", Change{Upstreams: true}}} {
		if built := b.Build(c.change, nil); built.Problems.HasErrors() || len(built.Catalog.LeftOut) != 1 || !built.Catalog.LeftOut[0].Taken {
			t.Errorf("a change %s: %v", c.what, built.Problems)
		}
	}
	offered = append(offered, offering("lab_more", `{"type":"object"}`))
	config["mcpd.hcl"].Data = fmt.Appendf(nil, renames, "lab_more")
	if built := b.Build(Change{Config: true}, nil); built.Problems.HasErrors() {
		t.Errorf("a name that the other has come to offer meanwhile: %v", built.Problems)
	}
}

// TestANameInQuarantineIsTakenByNoOther, however often what servers offer is looked at.
func TestANameInQuarantineIsTakenByNoOther(t *testing.T) {
	config := files(map[string]string{"mcpd.hcl": "upstream \"evil\" {\n  url = \"https://evil.test/mcp\"\n  prefix = \"\"\n}\nupstream \"lab\" {\n  url = \"https://lab.test/mcp\"\n  prefix = \"\"\n}\n"})
	good, evil := offering("x", `{"type":"object"}`), offering("x", `{"type":"object"}`)
	evil.Upstream, evil.Key = "evil", sha256.Sum256([]byte("evil"))
	var offered Federated
	b := New(Options{Config: config, ConfigPath: "mcpd.hcl", Federate: func([]hclfile.Upstream, map[string]string, LockFile) Federated { return offered }})
	quarantined := NewLeftOut(Tools, "x", "lab", "nobody has accepted it")
	for _, step := range []struct {
		what    string
		offered Federated
		want    string
	}{
		{"its owner alone", Federated{Items: []*Item{good}}, "lab"},
		{"another, too", Federated{Items: []*Item{evil, good}}, "lab"},
		{"in quarantine", Federated{Items: []*Item{evil}, LeftOut: []LeftOut{quarantined}}, ""},
		{"in quarantine still", Federated{Items: []*Item{evil}, LeftOut: []LeftOut{quarantined}}, ""},
		{"not reached", Federated{Items: []*Item{evil}, Silent: []string{"lab"}}, ""},
		{"accepted", Federated{Items: []*Item{evil, good}}, "lab"},
		{"offered no more", Federated{Items: []*Item{evil}}, "evil"},
	} {
		offered = step.offered
		built := b.Build(Change{Upstreams: b.built != nil, All: b.built == nil}, nil)
		if built.Problems.HasErrors() {
			t.Fatal(built.Problems)
		}
		b.Served()
		got := ""
		if e := built.Catalog.Entry(Tools, "x"); e != nil {
			got = e.Upstream
		}
		if got != step.want {
			t.Errorf("%s: it is served by %q, want %q", step.what, got, step.want)
		}
	}
}

// TestANameOfNoToolIsAMistakeWhereAnEditBringsItIn: a rule would silently not apply. What a
// server took away itself is told, and keeps no file from being loaded.
func TestANameOfNoToolIsAMistakeWhereAnEditBringsItIn(t *testing.T) {
	const upstreams = "upstream \"lab\" { url = \"https://lab.test/mcp\" }\nupstream \"crm\" {\n  url    = \"https://crm.test/mcp\"\n  prefix = \"\"\n}\n"
	config := files(map[string]string{"mcpd.hcl": ""})
	tools := files(map[string]string{"t.hcl": "tool \"wipe_disk\" { run = \"return 1;\" }"})
	about := func(tool string) {
		config["mcpd.hcl"].Data = []byte(upstreams + "policy \"no\" {\n  tools  = [\"" + tool + "\"]\n  deny   = \"call.via == 'code'\"\n  reason = \"no\"\n}\n")
	}
	get, drop, bare := offering("lab_get", `{"type":"object"}`), offering("lab_drop", `{"type":"object"}`), offering("bare", `{"type":"object"}`)
	bare.Upstream = "crm"
	var offered []*Item
	var accepted []ToolName
	b := New(Options{Tools: tools, Config: config, ConfigPath: "mcpd.hcl", Federate: func([]hclfile.Upstream, map[string]string, LockFile) Federated {
		return Federated{Items: offered, Known: accepted}
	}})
	for _, step := range []struct {
		what, tool string
		change     Change
		offered    []*Item
		want       []string
	}{
		{"before anything is known", "lab_dorp", Change{All: true}, nil, nil},
		{"at the start", "lab_dorp", Change{Start: true}, []*Item{get, drop, bare}, []string{`mcpd.hcl:7:13: warning: the upstream "lab" offers no tool "lab_dorp" now; did you mean "lab_drop"?`}},
		{"the same later", "lab_dorp", Change{All: true}, []*Item{get, drop, bare}, []string{`mcpd.hcl:7:13: warning: the upstream "lab" offers no tool "lab_dorp" now; did you mean "lab_drop"?`}},
		{"a good name", "lab_drop", Change{Config: true}, []*Item{get, drop, bare}, nil},
		{"a bad one", "lab_dorp", Change{Config: true}, []*Item{get, drop, bare}, []string{`mcpd.hcl:7:13: error: the upstream "lab" offers no tool "lab_dorp"; did you mean "lab_drop"?`}},
		{"one of a file", "wipe_dsik", Change{Config: true}, []*Item{get, drop, bare}, []string{`mcpd.hcl:7:13: error: there is no tool named "wipe_dsik", and the upstream "crm" offers none; did you mean "wipe_disk"?`}},
		{"the same with what servers change", "wipe_dsik", Change{Upstreams: true, Refused: true}, []*Item{get, drop, bare}, []string{`mcpd.hcl:7:13: error: there is no tool named "wipe_dsik", and the upstream "crm" offers none; did you mean "wipe_disk"?`}},
		{"the good one again", "lab_drop", Change{Config: true}, []*Item{get, drop, bare}, nil},
		{"a server that takes it away", "lab_drop", Change{Upstreams: true}, []*Item{get, bare}, []string{`mcpd.hcl:7:13: warning: the upstream "lab" offers no tool "lab_drop" now`}},
		{"a file that says what it said", "lab_drop", Change{All: true}, []*Item{get, bare}, []string{`mcpd.hcl:7:13: warning: the upstream "lab" offers no tool "lab_drop" now`}},
		{"another name that was accepted", "lab_old", Change{All: true}, []*Item{get, bare}, []string{`mcpd.hcl:7:13: warning: the upstream "lab" offers no tool "lab_old" now`}},
	} {
		about(step.tool)
		if offered = step.offered; step.tool == "lab_old" {
			accepted = []ToolName{{"lab", "lab_old"}}
		}
		built := b.Build(step.change, nil)
		if diff := cmp.Diff(step.want, told(built.Problems)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", step.what, diff)
		}
		if !built.Problems.HasErrors() {
			b.Served()
		}
	}
}

// told returns diagnostics in order.
func told(problems diag.List) (lines []string) {
	for _, p := range problems.Sort() {
		lines = append(lines, p.String())
	}
	return lines
}

func TestAProgramBesideTheFileOfTheOperatorIsNoneOfThePath(t *testing.T) {
	for config, want := range map[string]string{"mcpd.hcl": "./srv", "etc/mcpd.hcl": "etc/srv"} {
		placed := New(Options{ConfigPath: config}).placed([]hclfile.Upstream{{Command: []string{"./srv"}}})
		if got := filepath.ToSlash(placed[0].Command[0]); got != want {
			t.Errorf("of %s it is %s", config, got)
		}
	}
}

func TestALongNameOfWhatIsLeftOutBreaksNoCharacter(t *testing.T) {
	left := NewLeftOut(Resources, "lab:"+strings.Repeat("€", 100), "lab", "no")
	if !utf8.ValidString(left.Address) || !strings.HasSuffix(left.Address, "€…") || len(left.Address) > 140 {
		t.Errorf("it is called %q", left.Address)
	}
}
