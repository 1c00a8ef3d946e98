package catalog

import (
	"crypto/sha256"
	"encoding/json"
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
	b := New(Options{Config: config, ConfigPath: "mcpd.hcl", Federate: func([]hclfile.Upstream, map[string]string, LockFile) Federated { return Federated{Items: offered} }})
	built := b.Build(Change{All: true}, nil)
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

func TestALongNameOfWhatIsLeftOutBreaksNoCharacter(t *testing.T) {
	left := NewLeftOut(Resources, "lab:"+strings.Repeat("€", 100), "lab", "no")
	if !utf8.ValidString(left.Address) || !strings.HasSuffix(left.Address, "€…") || len(left.Address) > 140 {
		t.Errorf("it is called %q", left.Address)
	}
}
