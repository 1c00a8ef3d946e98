package overlay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// hidingLab returns a builder for a server with tools that are not pinned.
func hidingLab(t *testing.T, lock *lockfile.Lock, escape ...string) *itemBuilder {
	t.Helper()
	block, err := definition.NewUpstream("lab", "https://example.com/mcp", "a test")
	if err != nil {
		t.Fatal(err)
	}
	block.Escape, block.Instructions = escape, true
	return &itemBuilder{redactor: noSecrets{}, upstream: &block, lock: lock, acceptance: new(acceptance), addresses: map[address]bool{}, previous: map[[32]byte]*catalog.Item{}}
}

// offeredBy returns the visible text of items, and the reasons for exclusions.
func offeredBy(m *itemBuilder) (seen string, left []string) {
	for _, item := range m.items {
		seen += fmt.Sprintf("%s %q %q", item.Kind, item.Address, item.Title)
		if item.Description != nil {
			seen += fmt.Sprintf(" %q", *item.Description)
		}
		if o := item.Offer; o != nil {
			arguments, _ := json.Marshal(o.Arguments)
			seen += fmt.Sprintf(" %q %q %s %s", o.ListedAs, o.MIMEType, o.Annotations, arguments)
		}
		if item.Input != nil && item.Kind == catalog.Tools {
			seen += string(item.PolicySchema)
		}
		seen += fmt.Sprintf(" %v\n", item.Icons)
	}
	for _, l := range m.excluded {
		left = append(left, fmt.Sprintf("%s: %s", l.Kind, l.Reason))
	}
	return seen, left
}

// hidingListing has entries with an invisible character in each visible member.
var hidingListing = &upstream.Listing{
	Resources: []json.RawMessage{
		json.RawMessage(`{"uri":"lab://name","name":"a\u202eb"}`),
		json.RawMessage(`{"uri":"lab://title","name":"a","title":"a\u200bb"}`),
		json.RawMessage(`{"uri":"lab://description","name":"a","description":"a\u001b[2Jb"}`),
		json.RawMessage(`{"uri":"lab://type","name":"a","mimeType":"text/\udb40\udc41plain"}`),
		json.RawMessage(`{"uri":"lab://annotation","name":"a","annotations":{"audience":["us\u00ader"]}}`),
	},
	Templates: []json.RawMessage{json.RawMessage(`{"uriTemplate":"lab://template/{x}","name":"a","description":"a\ufeffb"}`)},
	Prompts: []json.RawMessage{
		json.RawMessage(`{"name":"greet","title":"a\u2066b"}`),
		json.RawMessage(`{"name":"argue","arguments":[{"name":"x","description":"a\u200fb"}]}`),
	},
}

func TestItemBuilder_hiddenText(t *testing.T) {
	m := hidingLab(t, new(lockfile.Lock))
	m.buildAll(hidingListing)
	seen, left := offeredBy(m)
	want := slices.Repeat([]string{errHidden.Error()}, 8)
	for i, kind := range []string{"resource", "resource", "resource", "resource", "resource", "resource", "prompt", "prompt"} {
		want[i] = kind + ": " + want[i]
	}
	if diff := cmp.Diff(want, left); diff != "" || seen != "" || len(m.diagnostics) != 8 {
		t.Errorf("offered %s; %d warnings; left out (-want +got)\n%s", seen, len(m.diagnostics), diff)
	}

	m = hidingLab(t, new(lockfile.Lock), "lab://*", "greet", "argue")
	m.buildAll(hidingListing)
	seen, left = offeredBy(m)
	if len(m.items) != 8 || left != nil || safetext.Hides(seen) {
		t.Errorf("escaped, it offers %d, and leaves out %q:\n%+q", len(m.items), left, seen)
	}
	for _, escape := range []string{`a\\u202eb`, `a\\u200bb`, `a\\x1b[2Jb`, `text/\\U000e0041plain`, `us\\u00ader`, `a\\ufeffb`, `a\\u2066b`, `a\\u200fb`} {
		if !strings.Contains(seen, escape) {
			t.Errorf("%s is not in\n%s", escape, seen)
		}
	}
}

func TestItemBuilder_hiddenAddress(t *testing.T) {
	m := hidingLab(t, new(lockfile.Lock), "*")
	m.buildAll(&upstream.Listing{
		Resources: []json.RawMessage{json.RawMessage(`{"uri":"lab://a\u200bb","name":"a"}`), json.RawMessage(`{"uri":"lab://a%E2%80%8Bb","name":"a"}`)},
		Templates: []json.RawMessage{json.RawMessage(`{"uriTemplate":"lab://a\u202eb/{x}","name":"a"}`)},
		Prompts:   []json.RawMessage{json.RawMessage(`{"name":"argue","arguments":[{"name":"a\u200bb"}]}`)},
	})
	seen, left := offeredBy(m)
	want := []string{"resource: its URI contains invisible characters", "resource: its URI contains invisible characters", "prompt: an argument name contains invisible characters"}
	if diff := cmp.Diff(want, left); diff != "" || len(m.items) != 1 {
		t.Errorf("offered %s; left out (-want +got)\n%s", seen, diff)
	}
}

func TestItemBuilder_hiddenIcon(t *testing.T) {
	m := hidingLab(t, new(lockfile.Lock))
	m.buildAll(&upstream.Listing{Prompts: []json.RawMessage{json.RawMessage(`{"name":"greet","icons":[{"src":"https://example.com/a\u200b"},{"src":"https://example.com/b"}]}`)}})
	if len(m.items) != 1 || len(m.items[0].Icons) != 1 || m.items[0].Icons[0].Src != "https://example.com/b" {
		t.Errorf("it offers %+v", m.items)
	}
}

func TestItemBuilder_hiddenInstructions(t *testing.T) {
	const text = "Ask first.\u200b\nThen act."
	for name, row := range map[string]struct {
		text     string
		escape   []string
		want     string
		problems int
	}{
		"ordinary": {"Ask first.\n\tThen act ⚠.", nil, "[lab] Ask first.\n[lab] \tThen act ⚠.", 0},
		"hidden":   {text, nil, "", 1},
		"escaped":  {text, []string{"instructions"}, "[lab] Ask first.\\u200b\n[lab] Then act.", 0},
	} {
		m := hidingLab(t, new(lockfile.Lock), row.escape...)
		if got := m.labeledInstructions(row.text); got != row.want || len(m.diagnostics) != row.problems {
			t.Errorf("%s: %q, with %v", name, got, m.diagnostics)
		}
	}
}

func TestItemBuilder_hiddenToolNotPinned(t *testing.T) {
	const schema = `"inputSchema":{"type":"object","properties":{"x\u200by":{"enum":["a\u200bb"],"default":"a\u200bb","description":"c\u202ed"}}}`
	hidden := json.RawMessage(`{"name":"hidden","description":"a\u001b[2Jb","annotations":{"title":"T\u200b"},` + schema + `}`)
	listing := &upstream.Listing{Tools: []json.RawMessage{
		json.RawMessage(`{"name":"plain","description":"می\u200cخواهم","inputSchema":{"type":"object"}}`), hidden,
		json.RawMessage(`{"name":"twice","description":"\u200b","inputSchema":{"type":"object"}}`), json.RawMessage(`{"name":"twice","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"long","description":"\u200b` + strings.Repeat("x", 300<<10) + `","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"meta","_meta":{"x":"\u200b"},"inputSchema":{"type":"object"}}`),
	}}
	names := func(m *itemBuilder) (names []string) {
		for _, item := range m.items {
			names = append(names, item.Name)
		}
		return names
	}
	m := hidingLab(t, new(lockfile.Lock))
	m.buildAll(listing)
	if diff := cmp.Diff([]string{"lab_plain", "lab_meta"}, names(m)); diff != "" {
		t.Errorf("offered (-want +got)\n%s", diff)
	}
	quarantined := map[string]string{}
	for _, l := range m.excluded {
		quarantined[l.Address] = l.Reason
	}
	want := map[string]string{
		"lab_hidden": "it contains invisible characters and is not accepted yet: mcpd lock diff lab",
		"lab_twice":  "it is listed several times, with different definitions",
		"lab_long":   "it cannot be accepted: read definition: it would take more than 256 KiB of mcpd.lock",
	}
	if diff := cmp.Diff(want, quarantined); diff != "" {
		t.Errorf("left out (-want +got)\n%s", diff)
	}

	tool := of(t, "lab", string(hidden))
	for _, raw := range []bool{false, true} {
		if raw {
			tool = tool.AsRaw()
		}
		m := hidingLab(t, new(lockfile.Lock).WithTools("lab", tool))
		m.buildAll(listing)
		if !slices.Contains(names(m), "lab_hidden") {
			t.Fatalf("raw %t: it offers %v", raw, names(m))
		}
		item := m.items[slices.Index(names(m), "lab_hidden")]
		said := *item.Description + item.Title + string(item.PolicySchema)
		if safetext.Hides(said) == !raw {
			// Raw schema JSON may contain its own escapes.
			said += fmt.Sprint(decodeValue(item.PolicySchema))
		}
		if safetext.Hides(said) != raw {
			t.Errorf("raw %t: it says %+q", raw, said)
		}
		held := slices.Collect(maps.Keys(m.accepted))
		if diff := cmp.Diff([]string{"hidden"}, held); diff != "" {
			t.Errorf("held (-want +got)\n%s", diff)
		}
		// Calls need the accepted definition, although the block pins nothing.
		accepts := m.acceptCheck("hidden")
		if accepts == nil || !accepts(listing) || accepts(&upstream.Listing{Tools: listing.Tools[:1]}) {
			t.Errorf("raw %t: a call is not checked against the accepted definition", raw)
		}
	}
}
