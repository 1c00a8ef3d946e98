package oauth

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// saying is a transport that answers every request alike.
type saying struct {
	status       int
	kind, answer string
}

func (s saying) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Header: http.Header{"Content-Type": {s.kind}}, Body: io.NopCloser(strings.NewReader(s.answer)), Request: r}, nil
}

// FuzzAnswers holds answers to this: what is taken for a token can stand in a
// header, holds for a while and was in the answer, and an error repeats nothing.
func FuzzAnswers(f *testing.F) {
	f.Add(200, "application/json", `{"access_token":"hunter2-hunter2","token_type":"bearer","expires_in":60}`)
	f.Add(200, "application/json; charset=utf-8", `{"access_token":"\u0000","expires_in":"-1"}`)
	f.Add(400, "application/json", `{"error":"invalid_client"}`)
	f.Add(302, "text/html", `<html>`)
	f.Add(200, "application/json", strings.Repeat("[", 1000))
	f.Fuzz(func(t *testing.T, status int, kind, answer string) {
		got, err := exchange(t.Context(), theClient, clientSecret, saying{status, kind, answer})
		switch {
		case err != nil:
			for _, known := range []error{errNotJSON, errMalformed, errNotBearer, errEnded} {
				if err == known {
					return
				}
			}
			if refused, ok := err.(*refusal); !ok || refused.status != status {
				t.Fatalf("%d %q %q: %v", status, kind, answer, err)
			}
		case status != 200 || got.life <= 0 || got.value == "":
			t.Fatalf("%d %q %q is the token %q for %s", status, kind, answer, got.value, got.life)
		case strings.ContainsFunc(got.value, func(r rune) bool { return r < ' ' || r > '~' }):
			t.Fatalf("the token %q cannot stand in a header", got.value)
		}
	})
}
