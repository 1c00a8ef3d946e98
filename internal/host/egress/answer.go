package egress

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/scripting"
)

// answer is what the script gets.
type answer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body,omitempty"`
	Body64  []byte            `json:"body64,omitempty"` // when it is not UTF-8
	URL     string            `json:"url"`
}

// encodeAnswer encodes a response for the script. What redact replaces is gone
// before it is encoded, so that no escape hides it.
func encodeAnswer(resp *http.Response, body []byte, from *address, redact func([]byte) []byte) ([]byte, error) {
	body = redact(body)
	a := answer{Status: resp.StatusCode, Headers: make(map[string]string, len(resp.Header)), URL: string(redact([]byte(from.url.String())))}
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		shown := string(redact([]byte(strings.ToLower(name))))
		value := string(redact([]byte(strings.Join(resp.Header[name], ", "))))
		if before, taken := a.Headers[shown]; taken {
			value = before + ", " + value
		}
		a.Headers[shown] = value
	}
	if utf8.Valid(body) {
		text := string(body)
		a.Body = &text
	} else {
		a.Body64 = body
	}
	out, err := jsontext.Marshal(a)
	if err != nil {
		return nil, fault(scripting.Unavailable, "the answer could not be encoded")
	}
	return out, nil
}

// redirected returns the request that a response asks for instead (RFC 9110
// section 15.4), or nil when it asks for none.
func (r *request) redirected(resp *http.Response) (*request, error) {
	location := resp.Header.Get("Location")
	if location == "" || !slices.Contains([]int{301, 302, 303, 307, 308}, resp.StatusCode) {
		return nil, nil
	}
	target, err := r.to.url.Parse(location)
	if err != nil {
		return nil, fault(scripting.Unavailable, "the redirect is malformed")
	}
	target.Fragment, target.RawFragment = "", ""
	to, err := parseAddress(target.String())
	if err != nil {
		return nil, fault(scripting.Unavailable, "the redirect is malformed")
	}
	if r.to.scheme == "https" && to.scheme == "http" {
		return nil, fault(scripting.Denied, "the redirect leads from https:// to http://")
	}
	next := *r
	next.to, next.host = to, "the host of the redirect"
	if !to.sameOrigin(r.to) {
		next.headers = withoutHeaders(r.headers, "Authorization", "Cookie")
	}
	toGet := resp.StatusCode == 303 || resp.StatusCode <= 302 && r.method == http.MethodPost
	if toGet && r.method != http.MethodHead {
		next.method, next.body, next.hasBody = http.MethodGet, nil, false
		next.headers = withoutHeaders(next.headers, "Content-Type", "Content-Encoding", "Content-Language", "Content-Location")
	}
	return &next, nil
}

func withoutHeaders(headers []header, names ...string) []header {
	return slices.DeleteFunc(slices.Clone(headers), func(h header) bool { return slices.Contains(names, h.name) })
}
