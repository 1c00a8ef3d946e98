package egress

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

const (
	maxHeaders     = 64
	maxHeaderBytes = 32 << 10
	maxHeaderName  = 128
)

// header is one that the script sets. name is in canonical form.
type header struct{ name, value string }

// refusedHeader reports whether no script may set a header. It belongs to the
// connection (RFC 9110 section 7.6.1) or to the framing of the message, or
// servers let it make a request another one than it looks.
func refusedHeader(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Te",
		"Trailer", "Transfer-Encoding", "Upgrade", "Via", "Forwarded",
		"X-Http-Method", "X-Http-Method-Override", "X-Method-Override",
		"X-Original-Url", "X-Rewrite-Url", "X-Original-Host", "X-Host":
		return true
	}
	return strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded-")
}

// parseHeaders checks what the script sets, in stable order.
func parseHeaders(in map[string]string) ([]header, error) {
	if len(in) > maxHeaders {
		return nil, invalid("the request has more than %d headers", maxHeaders)
	}
	size := 0
	seen := map[string]bool{}
	var out []header
	for _, name := range slices.Sorted(maps.Keys(in)) {
		value := in[name]
		if size += len(name) + len(value); size > maxHeaderBytes {
			return nil, invalid("the headers are longer than %d bytes", maxHeaderBytes)
		}
		if !httpheader.IsToken(name) || len(name) > maxHeaderName {
			return nil, invalid("the name of a header is malformed")
		}
		folded := foldHeader(name)
		switch {
		case refusedHeader(folded):
			return nil, fault(scripting.Denied, "the header %s is refused to every script", name)
		case seen[folded]:
			return nil, invalid("the header %s is set twice", name)
		case !isHeaderValue(value):
			return nil, invalid("the value of the header %s holds a control character", name)
		}
		seen[folded] = true
		out = append(out, header{http.CanonicalHeaderKey(name), strings.Trim(value, " \t")})
	}
	return out, nil
}

// foldHeader returns the name that a server may understand: many take _ for -.
func foldHeader(name string) string {
	return http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

// checkHeaders refuses what the grant itself sets.
func checkHeaders(headers []header, g grant.HTTP) error {
	for _, h := range headers {
		for _, set := range g.Headers {
			if foldHeader(h.name) == foldHeader(set.Name) {
				return fault(scripting.Denied, "the header %s is set by the grant", h.name)
			}
		}
	}
	return nil
}

// isHeaderValue reports whether s can stand in a header (RFC 9110 section 5.5).
func isHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
