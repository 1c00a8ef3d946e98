package mcp

import (
	"fmt"
	"testing"
)

func TestPagesAreEncodedOnceAndForgottenInTime(t *testing.T) {
	p := newPages()
	encoded := 0
	encode := func() []byte {
		encoded++
		return make([]byte, pageBytes/4)
	}
	for range 3 {
		p.get(pageKey{hash: "a"}, encode)
	}
	if encoded != 1 {
		t.Errorf("the page was encoded %d times", encoded)
	}
	for i := range 20 {
		p.get(pageKey{hash: fmt.Sprint(i)}, encode)
		if p.bytes > pageBytes {
			t.Fatalf("%d bytes are kept", p.bytes)
		}
	}
	if p.get(pageKey{}, encode); len(p.byKey) > 4 || p.byKey[pageKey{}] != nil {
		t.Errorf("%d pages are kept", len(p.byKey))
	}
}

func TestCursorsAreOfNoUseForAnotherList(t *testing.T) {
	cursor := cursorAt("list", 7)
	if at, ok := readCursor("list", cursor); at != 7 || !ok {
		t.Errorf("the cursor stands for %d, %v", at, ok)
	}
	for _, other := range []string{"", "x", cursor + "A", cursor[1:], cursorAt("other", 7)} {
		if _, ok := readCursor("list", other); ok {
			t.Errorf("%q was taken for a cursor", other)
		}
	}
}

func TestAClientsNameIsFitForAnAgent(t *testing.T) {
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
		t.Errorf("the name has %d bytes", len(long))
	}
}
