package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

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

func TestALongNameOfWhatIsLeftOutBreaksNoCharacter(t *testing.T) {
	left := NewLeftOut(Resources, "lab:"+strings.Repeat("€", 100), "lab", "no")
	if !utf8.ValidString(left.Address) || !strings.HasSuffix(left.Address, "€…") || len(left.Address) > 140 {
		t.Errorf("it is called %q", left.Address)
	}
}
