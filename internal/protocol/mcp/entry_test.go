package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
)

func TestNewEntry_invalid(t *testing.T) {
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
		{"annotations not an object", resource(func(i *EntryInfo) { i.Annotations = json.RawMessage(`[]`) }), "annotations"},
		{"annotations not JSON", resource(func(i *EntryInfo) { i.Annotations = json.RawMessage(`{`) }), "annotations"},
		{"icon with unknown theme", resource(func(i *EntryInfo) { i.Icons = []Icon{{Source: "data:", Theme: "pink"}} }), "theme"},
		{"icon without source", tool, "a source"},
		{"a prompt without a name", prompt, "a name"},
		{"an argument without a name", argument, "argument 2"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: got error %v", test.name, test.err)
		}
	}
	if err := resource(func(*EntryInfo) {}); err != nil {
		t.Error(err)
	}
}

// TestPageCache_separatesKinds checks that lists with the same hash have
// separate pages.
func TestPageCache_separatesKinds(t *testing.T) {
	pages := newPageCache()
	for k := range call.Kind(kinds) {
		list := List{Hash: "none"}
		page := pages.get(pageKey{kind: k, hash: list.Hash}, func() []byte { return encodePage(k, nil, modern) })
		if want := `"` + listMember(k) + `":[]`; string(page) != want {
			t.Errorf("page = %s, want %s", page, want)
		}
	}
}

// TestErrorText_noDuplicates: a model reads each violation once.
func TestErrorText_noDuplicates(t *testing.T) {
	violations := []call.Violation{{Path: "/name", Message: "is required"}, {Message: "must be an object"}}
	for message, want := range map[string]string{
		"wrong":                    "wrong\n/name: is required\n(arguments): must be an object",
		"wrong: /name is required": "wrong: /name is required\n(arguments): must be an object",
		"wrong: /name is required; must be an object": "wrong: /name is required; must be an object",
	} {
		if got := errorText(&call.Error{Code: call.InvalidInput, Message: message, Violations: violations}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestErrorData_roundsRetryAfterUp: a client that waits this long is not early.
func TestErrorData_roundsRetryAfterUp(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Nanosecond:               `"retry_after_ms":1}`,
		time.Second:                   `"retry_after_ms":1000}`,
		time.Second + time.Nanosecond: `"retry_after_ms":1001}`,
	} {
		if got := string(errorData(identity.Caller{}, &call.Error{RetryAfter: wait})); !strings.HasSuffix(got, want) {
			t.Errorf("after %s: %s, want %s", wait, got, want)
		}
	}
}

// TestTask_noRetryAfter: the delay of the call does not apply to a task
// request.
func TestTask_noRetryAfter(t *testing.T) {
	failed := &call.Error{Code: call.ExecutionError, Message: "overloaded", RetryAfter: time.Second}
	c := &request{era: modern}
	_, members := (&Task{Response: &call.Result{Err: failed}}).outcome(c, identity.Caller{})
	if c.retryAfter != 0 || !strings.Contains(string(members), `"retry_after_ms":1000`) {
		t.Errorf("retry after %s, members %s", c.retryAfter, members)
	}
	if _, _ = c.failed(&call.Request{Kind: call.Tools}, failed, ""); c.retryAfter != time.Second {
		t.Errorf("the caller gets %s", c.retryAfter)
	}
}

// TestBatch_noRetryAfter: other requests of the batch may have succeeded.
func TestBatch_noRetryAfter(t *testing.T) {
	b := &batch{isBatch: true, replies: []Reply{{Frame: Frame{head: []byte("{}")}, RetryAfter: time.Second}}}
	if joined := b.join(); joined.RetryAfter != 0 || joined.Frame.String() != "[{}]" {
		t.Errorf("got %s, %s", joined.Frame, joined.RetryAfter)
	}
}

func TestPageCache(t *testing.T) {
	p := newPageCache()
	encoded := 0
	encode := func() []byte {
		encoded++
		return make([]byte, pageBytes/4)
	}
	for range 3 {
		p.get(pageKey{hash: "a"}, encode)
	}
	if encoded != 1 {
		t.Errorf("page encoded %d times", encoded)
	}
	for i := range 20 {
		p.get(pageKey{hash: fmt.Sprint(i)}, encode)
		if p.bytes > pageBytes {
			t.Fatalf("%d bytes are cached", p.bytes)
		}
	}
	if p.get(pageKey{}, encode); len(p.byKey) > 4 || p.byKey[pageKey{}] != nil {
		t.Errorf("%d pages are cached", len(p.byKey))
	}
}

func TestCursor_otherList(t *testing.T) {
	cursor := cursorAt("list", 7)
	if at, ok := readCursor("list", cursor); at != 7 || !ok {
		t.Errorf("cursor = %d, %v", at, ok)
	}
	for _, other := range []string{"", "x", cursor + "A", cursor[1:], cursorAt("other", 7)} {
		if _, ok := readCursor("list", other); ok {
			t.Errorf("%q was accepted as a cursor", other)
		}
	}
}

func TestClientName(t *testing.T) {
	for info, want := range map[string]string{
		`{"name":"n","version":"1"}`:          "n/1",
		`{"name":"n"}`:                        "n",
		`{"version":"1"}`:                     "",
		`{"name":1,"version":"1"}`:            "",
		`{"name":"a\nb\u0000","version":"1"}`: "ab/1",
		`"n"`:                                 "",
		``:                                    "",
	} {
		if got := clientName([]byte(info)); got != want {
			t.Errorf("clientName(%s) = %q, want %q", info, got, want)
		}
	}
	long := clientName(fmt.Appendf(nil, `{"name":"%0300dü"}`, 0))
	if len(long) > maxClaim {
		t.Errorf("name has %d bytes", len(long))
	}
}
