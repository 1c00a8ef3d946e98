package requestid_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/requestid"
)

// TestWhatIsNoIdIsNotTakenForOne: it is sent back in a header and stands in logs.
func TestWhatIsNoIdIsNotTakenForOne(t *testing.T) {
	longest := strings.Repeat("x", requestid.Most)
	for _, row := range []struct {
		given []string
		want  string
	}{
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"r-7"}, "r-7"},
		{[]string{longest}, longest},
		{[]string{longest + "x"}, ""},
		{[]string{"r-7", "r-7"}, ""},
		{[]string{"r 7"}, ""},
		{[]string{"r\n7"}, ""},
		{[]string{"r\x7f"}, ""},
		{[]string{"ü"}, ""},
	} {
		if got := requestid.Of(http.Header{requestid.Header: row.given}); got != row.want {
			t.Errorf("%q is %q, want %q", row.given, got, row.want)
		}
	}
	if requestid.Header != http.CanonicalHeaderKey(requestid.Header) {
		t.Errorf("%s is not canonical: no header is found by it", requestid.Header)
	}
}

// TestAnIdThatIsMadeCanBeSentBack, and is another one each time.
func TestAnIdThatIsMadeCanBeSentBack(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := requestid.New()
		if requestid.Of(http.Header{requestid.Header: {id}}) != id || seen[id] {
			t.Fatalf("%q is no id, or was one before", id)
		}
		seen[id] = true
	}
}
