package httpheader_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/httpheader"
)

func TestRequestIDOf(t *testing.T) {
	longest := strings.Repeat("x", httpheader.MaxRequestID)
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
		if got := httpheader.RequestIDOf(http.Header{httpheader.RequestID: row.given}); got != row.want {
			t.Errorf("%q is %q, want %q", row.given, got, row.want)
		}
	}
	if httpheader.RequestID != http.CanonicalHeaderKey(httpheader.RequestID) {
		t.Errorf("%s is not canonical", httpheader.RequestID)
	}
}

func TestNewRequestID_isValidAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := httpheader.NewRequestID()
		if httpheader.RequestIDOf(http.Header{httpheader.RequestID: {id}}) != id || seen[id] {
			t.Fatalf("%q is invalid or a duplicate", id)
		}
		seen[id] = true
	}
}

func TestSetRetryAfter_roundsUp(t *testing.T) {
	for wait, want := range map[time.Duration]string{0: "1", 1: "1", time.Second: "1", time.Second + 1: "2", 1500 * time.Millisecond: "2", time.Minute: "60"} {
		h := http.Header{}
		httpheader.SetRetryAfter(h, wait)
		if got := h.Get("Retry-After"); got != want {
			t.Errorf("%s: %q, want %q", wait, got, want)
		}
	}
}

func TestIsToken(t *testing.T) {
	for s, want := range map[string]bool{"": false, "X-Key": true, "!#$%&'*+-.^_`|~09azAZ": true, "a b": false, "a:": false, "a\x00": false, "é": false, "a\x7f": false, "{": false} {
		if got := httpheader.IsToken(s); got != want {
			t.Errorf("%q: %t", s, got)
		}
	}
}
