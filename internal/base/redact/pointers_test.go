package redact_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/base/truncate"
)

func TestPointers_replace(t *testing.T) {
	for _, test := range []struct {
		value    string
		pointers []string
		want     string
	}{
		{`{"a":1}`, nil, `{"a":1}`},
		{`{"a":1,"b":2}`, []string{"/a"}, `{"a":"[sensitive]","b":2}`},
		{`{"a":{"b":[{"c":1},{"c":2}]}}`, []string{"/a/b/*/c"}, `{"a":{"b":[{"c":"[sensitive]"},{"c":"[sensitive]"}]}}`},
		{`{"a":{"x":1,"y":2}}`, []string{"/a/*"}, `{"a":{"x":"[sensitive]","y":"[sensitive]"}}`},
		{`{"a/b":1,"c~d":2}`, []string{"/a~1b", "/c~0d"}, `{"a/b":"[sensitive]","c~d":"[sensitive]"}`},
		{`{"a":1}`, []string{"/b", "/a/b/c"}, `{"a":1}`},
		{`"secret"`, []string{""}, `"[sensitive]"`},
		{`{"a":`, []string{"/a"}, ``},
		{`{"a":1} {}`, []string{"/a"}, ``},
		{`{"z":12345678901234567890, "pin":1, "a":1.0}`, []string{"/pin"}, `{"z":12345678901234567890, "pin":"[sensitive]", "a":1.0}`},
		{`{"pin":1,"html":"<b>\u00e9"}`, []string{"/pin"}, `{"pin":"[sensitive]","html":"<b>\u00e9"}`},
		{`{"pin":{"a":[1]},"huge":1e999}`, []string{"/pin"}, `{"pin":"[sensitive]","huge":1e999}`},
		{` { "p\u0069n" : [ 1 , 2 ] , "b" : [ { "c" : "x" } , 3 ] } `, []string{"/pin/*", "/b/*/c"}, ` { "p\u0069n" : [ "[sensitive]" , "[sensitive]" ] , "b" : [ { "c" : "[sensitive]" } , 3 ] } `},
	} {
		if got := redact.Pointers([]byte(test.value), test.pointers); string(got) != test.want {
			t.Errorf("%s redacted at %v is %s, want %s", test.value, test.pointers, got, test.want)
		}
	}
}

func TestPointers_unvalidatedObject(t *testing.T) {
	for _, test := range []struct{ value, want string }{
		{`{"user":"ada","secret":{"pin":1234}}`, `{"user":"ada","secret":"[sensitive]"}`},
		{`{"user":"ada","secret":"1234"}`, `{"user":"ada","secret":"[sensitive]"}`},
		{`{"user":"ada","secrt":{"pin":1234}}`, `{"user":"ada","secrt":"[sensitive]"}`},
		{`{"secret":1,"user":12345678901234567890}`, `{"secret":"[sensitive]","user":12345678901234567890}`},
		{`["1234"]`, ``}, {` `, ``}, {`{"secret":`, ``},
	} {
		if got := redact.Arguments([]byte(test.value), false, []string{"/secret/pin"}, []string{"user", "secret"}); string(got) != test.want {
			t.Errorf("%s becomes %s, want %s", test.value, got, test.want)
		}
	}
}

func TestText_values(t *testing.T) {
	hide := redact.NewText([]byte(`{"pin":"hunter2","deep":[{"k":"a\"bcd"}],"n":123456,"short":"ab"}`), []string{"/pin", "/deep/*/k", "/n", "/short"})
	if got := hide.Hide(`hunter2 a"bcd 123456 ab`); got != "[sensitive] [sensitive] [sensitive] ab" {
		t.Error(got)
	}
	if got := hide.HideJSON([]byte(`{"n":123456,"m":7,"t":["a\"bcd<"]}`)); string(got) != `{"m":7,"n":"[sensitive]","t":["[sensitive]<"]}` {
		t.Errorf("%s", got)
	}
	if got := (redact.Text{}).Hide("hunter2"); got != "hunter2" {
		t.Error(got)
	}
}

func TestText_longestFirst(t *testing.T) {
	short, long := redact.NewText([]byte(`["hunter"]`), []string{"/*"}), redact.NewText([]byte(`["hunter2"]`), []string{"/*"})
	for _, hide := range []redact.Text{short.And(long), long.And(short)} {
		if got := hide.Hide("hunter2, hunter"); got != "[sensitive], [sensitive]" {
			t.Error(got)
		}
	}
	if got := (redact.Text{}).And(long).Hide("hunter2") + long.And(redact.Text{}).Hide("hunter2"); got != "[sensitive][sensitive]" {
		t.Error(got)
	}
}

// A caller who chooses such values repeatedly must not get growing text.
func TestText_valueInPlaceholder(t *testing.T) {
	values := "[" + strings.Repeat(`"sens","tive",`, 20) + `"pass"]`
	for _, hide := range []redact.Text{
		redact.NewText([]byte(values), []string{"/*"}),
		redact.NewText([]byte(`["pass","sens"]`), []string{"/*"}).And(redact.NewText([]byte(`["tive"]`), []string{"/*"})),
	} {
		if got := hide.Hide("a password, sensitive"); got != "a [sensitive]word, [sensitive]i[sensitive]" {
			t.Errorf("%d bytes: %.99q", len(got), got)
		}
	}
}

// The end of a truncated text may be part of a value, whatever else it contains or
// whatever follows. Other text stays, including text that contains the mark without
// truncation.
func TestText_truncatedEnd(t *testing.T) {
	before := strings.Repeat("x", truncate.Least)
	hide := redact.NewText([]byte(`["hunter2"]`), []string{"/*"})
	for text, want := range map[string]string{
		"hunter2 is not hunter":                   "[sensitive] is not hunter",
		"hunter2 is not hunter … [cut]":           "[sensitive] is not  … [cut]",
		"it is hunter2 … [cut]":                   "it is [sensitive] … [cut]",
		"it is hunter2hun … [cut]":                "it is [sensitive] … [cut]",
		"it is hunt … [cut]":                      "it i … [cut]",
		"it is hunt … [cut] and again … [cut]":    "it i … [cut] and … [cut]",
		"it is hunt … [cut]\n  at body (a.hcl:1)": "it i … [cut]\n  at body (a.hcl:1)",
	} {
		if got := hide.Hide(before + text); got != before+want {
			t.Errorf("%q is %q, want %q", text, got[min(len(got), len(before)):], want)
		}
	}
	for _, text := range []string{"", "hunt … [cut]", "evil … [cut] … [cut]", before + "hunt"} {
		if got := hide.Hide(text); got != text {
			t.Errorf("%.20q of %d bytes is %.20q of %d", text, len(text), got, len(got))
		}
	}
	if none := new(redact.Text); none.Hide(before+"hunt … [cut]") != before+"hunt … [cut]" {
		t.Error("a text without values was changed")
	}
}

// Overlapping or truncated values must not uncover the rest of another value.
func TestText_overlappingValues(t *testing.T) {
	before := strings.Repeat("x", truncate.Least)
	for _, r := range []struct{ values, text, want string }{
		{`["sk_live_AB12CD","the key is sk_live_"]`, "so the key is sk_live_AB12CD.", "so [sensitive]."},
		{`["a\"b\u2028c","d\u2029e"]`, "{\"a\\\"b\u2028c\": \"a\\\"b\\u2028c\"} d\u2029e d\\u2029e", "{\"[sensitive]\": \"[sensitive]\"} [sensitive] [sensitive]"},
		{`["abcd","cdef"]`, "abcdef, cdefabcd", "[sensitive], [sensitive][sensitive]"},
		{`["abcdef","cdef","bcd"]`, "xabcdefx", "x[sensitive]x"},
		{`["k3y-S3CRETPART@db.internal/x","@db."]`, before + "it is k3y-S3CRETPART@db.int … [cut]", before + " … [cut]"},
	} {
		hide := redact.NewText([]byte(r.values), []string{"/*"})
		if got := hide.Hide(r.text); got != r.want {
			t.Errorf("%.40q is %.40q, want %.40q", r.text, strings.TrimLeft(got, "x"), strings.TrimLeft(r.want, "x"))
		}
	}
}

// Long texts are redacted completely, in text and in JSON; shorter ones are not.
func TestText_redactsLongInput(t *testing.T) {
	var values []string
	for i := range 20_000 {
		values = append(values, fmt.Sprintf("%06d", i))
	}
	raw, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	hide, long := redact.NewText(raw, []string{"/*"}), strings.Repeat("a sentence of nothing, ", 100)
	if got := hide.Hide(long) + string(hide.HideJSON(json.RawMessage(`["`+long+`"]`))); got != redact.Mark+`"`+redact.Mark+`"` {
		t.Errorf("%d bytes remain", len(got))
	}
	// Truncation marks do not split a long text into short ones.
	if got := hide.Hide(strings.Repeat("x", truncate.Least) + strings.Repeat(" … [cut]", 100)); got != redact.Mark {
		t.Errorf("a text with many marks becomes %.60q", got)
	}
	if got := hide.Hide("it is 000042"); got != "it is [sensitive]" {
		t.Error(got)
	}
	if one := redact.NewText([]byte(`["000042"]`), []string{"/*"}); one.Hide(strings.Repeat(long, 10_000)) == redact.Mark {
		t.Error("one value redacts a text without it")
	}
}
