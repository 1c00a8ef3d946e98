package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
)

func TestEntriesThatClientsWouldRefuseAreNotMade(t *testing.T) {
	resource := func(change func(*EntryInfo)) error {
		info := EntryInfo{Kind: call.Resources, Address: "test://a", Name: "a", Size: -1}
		change(&info)
		_, err := NewEntry(info)
		return err
	}
	_, prompt := NewEntry(EntryInfo{Kind: call.Prompts})
	_, argument := NewEntry(EntryInfo{Kind: call.Prompts, Address: "p", Arguments: []Argument{{Name: "a"}, {}}})
	_, tool := NewTool(ToolInfo{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`), Icons: []Icon{{}}})
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"a resource without a URI", resource(func(i *EntryInfo) { i.Address = "" }), "a URI and a name"},
		{"a resource without a name", resource(func(i *EntryInfo) { i.Name = "" }), "a URI and a name"},
		{"annotations that are no object", resource(func(i *EntryInfo) { i.Annotations = json.RawMessage(`[]`) }), "annotations"},
		{"annotations that are no JSON", resource(func(i *EntryInfo) { i.Annotations = json.RawMessage(`{`) }), "annotations"},
		{"an icon of no theme", resource(func(i *EntryInfo) { i.Icons = []Icon{{Source: "data:", Theme: "pink"}} }), "theme"},
		{"an icon without a source", tool, "a source"},
		{"a prompt without a name", prompt, "a name"},
		{"an argument without a name", argument, "argument 2"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: the error is %v", test.name, test.err)
		}
	}
	if err := resource(func(*EntryInfo) {}); err != nil {
		t.Error(err)
	}
}

// TestEmptyListsOfTwoKindsAreNotMixedUp makes sure that lists of the same hash
// keep their own pages.
func TestEmptyListsOfTwoKindsAreNotMixedUp(t *testing.T) {
	pages := newPages()
	for k := range call.Kind(kinds) {
		list := List{Hash: "none"}
		page := pages.get(pageKey{kind: k, hash: list.Hash}, func() []byte { return list.page(k, 0, 0, modern) })
		if want := `"` + listMember(k) + `":[]`; string(page) != want {
			t.Errorf("the page is %s, want %s", page, want)
		}
	}
}
