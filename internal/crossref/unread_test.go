package crossref

import "testing"

func TestWhatStandsBetweenQuotesMayBeDefinedInWhatIsUnread(t *testing.T) {
	u := unread{texts: []string{`tool "a" {`, `x "b"c"" y "open`}}
	for name, want := range map[string]bool{"a": true, "b": true, "c": true, "": true, " y ": true, "open": false, "x ": false, "tool": false} {
		if got := u.quotes(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
	for _, word := range []string{"tool", "tool"} {
		if !u.holds(word) || u.holds("policy") {
			t.Errorf("%q is not held, or policy is", word)
		}
	}
	if u.texts = nil; !u.quotes("a") || !u.holds("tool") {
		t.Error("the texts are gone through again for each name")
	}
}
