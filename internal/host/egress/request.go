package egress

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// maxMethod bounds the name of a method, in bytes.
const maxMethod = 32

type request struct {
	method  string
	to      *parsedURL
	host    string // the host, as named in errors
	headers []header
	body    []byte
	hasBody bool
	timeout time.Duration // 0 means none
}

func parseRequest(payload []byte) (*request, error) {
	var in struct {
		Method    string            `json:"method"`
		URL       string            `json:"url"`
		Headers   map[string]string `json:"headers"`
		Body      *string           `json:"body"`
		Body64    *string           `json:"body64"`
		TimeoutMS float64           `json:"timeout_ms"`
	}
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, invalid("the request is malformed: url and method are strings, headers an object of strings")
	}
	r := &request{method: strings.ToUpper(in.Method)}
	switch {
	case r.method == "":
		r.method = "GET"
	case !httpheader.IsToken(r.method) || len(r.method) > maxMethod:
		return nil, invalid("the method is malformed")
	case r.method == "CONNECT" || r.method == "TRACE":
		return nil, newHostError(scripting.Denied, "scripts cannot use %s", r.method)
	}
	var err error
	if r.to, err = parseURL(in.URL); err != nil {
		return nil, err
	}
	r.host = r.to.hostport()
	if r.headers, err = parseHeaders(in.Headers); err != nil {
		return nil, err
	}
	const longest = float64(24 * time.Hour / time.Millisecond)
	if in.TimeoutMS < 0 || in.TimeoutMS > longest {
		return nil, invalid("timeout_ms is out of range")
	}
	r.timeout = time.Duration(in.TimeoutMS * float64(time.Millisecond))
	switch {
	case in.Body != nil && in.Body64 != nil:
		return nil, invalid("the request has two bodies")
	case in.Body != nil:
		r.body, r.hasBody = []byte(*in.Body), true
	case in.Body64 != nil:
		if r.body, err = base64.StdEncoding.DecodeString(*in.Body64); err != nil {
			return nil, invalid("body64 is not standard base64")
		}
		r.hasBody = true
	}
	return r, nil
}

const (
	maxHeaders     = 64
	maxHeaderBytes = 32 << 10
	maxHeaderName  = 128
)

// header is a header set by the script. name is in canonical form.
type header struct{ name, value string }

// isForbiddenHeader reports whether no script may set a header. It belongs to the connection
// (RFC 9110 section 7.6.1) or to message framing, or it lets servers interpret the request
// differently.
func isForbiddenHeader(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Te",
		"Trailer", "Transfer-Encoding", "Upgrade", "Via", "Forwarded",
		"X-Http-Method", "X-Http-Method-Override", "X-Method-Override",
		"X-Original-Url", "X-Rewrite-Url", "X-Original-Host", "X-Host":
		return true
	}
	return strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded-")
}

// parseHeaders checks the headers of the script and sorts them.
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
		case isForbiddenHeader(folded):
			return nil, newHostError(scripting.Denied, "scripts cannot set the header %s", name)
		case seen[folded]:
			return nil, invalid("the header %s is set twice", name)
		case !isHeaderValue(value):
			return nil, invalid("the value of the header %s contains a control character", name)
		}
		seen[folded] = true
		out = append(out, header{http.CanonicalHeaderKey(name), strings.Trim(value, " \t")})
	}
	return out, nil
}

// foldHeader returns the name as a server may read it: many treat _ as -.
func foldHeader(name string) string {
	return http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

// checkHeaders rejects headers that the grant sets.
func checkHeaders(headers []header, g grant.HTTP) error {
	for _, h := range headers {
		for _, set := range g.Headers {
			if foldHeader(h.name) == foldHeader(set.Name) {
				return newHostError(scripting.Denied, "the header %s is set by the grant", h.name)
			}
		}
	}
	return nil
}

// isHeaderValue reports whether s is a valid header value (RFC 9110 section 5.5).
func isHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

var (
	// errNoSecrets is returned by a Pool without Resolve.
	errNoSecrets = errors.New("no secrets are configured")
	// errNetwork is returned by the dialer for a forbidden address.
	errNetwork = errors.New("the grant does not reach this network")
)

// newHostError returns an error for the script. The arguments are values of the script itself,
// or numbers of the grant.
func newHostError(code, format string, args ...any) *scripting.HostError {
	return &scripting.HostError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// explain converts a network error to an error for the script: the text of err may contain
// anything, from addresses to parts of the response.
func explain(ctx context.Context, host string, err error) *scripting.HostError {
	var dns *net.DNSError
	var alert tls.AlertError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, errNetwork):
		return newHostError(scripting.Denied, "%s is in a network that the grant does not reach (private_networks)", host)
	case errors.Is(ctx.Err(), context.Canceled):
		return newHostError(scripting.Unavailable, "the call was cancelled before %s answered", host)
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return newHostError(scripting.TimedOut, "%s did not answer in time", host)
	case errors.As(err, &dns):
		return newHostError(scripting.Unavailable, "the host name of %s does not resolve", host)
	case errors.Is(err, syscall.ECONNREFUSED):
		return newHostError(scripting.Unavailable, "%s refused the connection", host)
	case errors.As(err, &alert), errors.As(err, &cert), errors.As(err, &record):
		return newHostError(scripting.Unavailable, "no trusted TLS connection to %s could be made", host)
	}
	return newHostError(scripting.Unavailable, "%s gave no valid answer", host)
}

// cause returns the details of an error for the operator: messages of the operating system and
// of DNS, which quote no content.
func cause(err error) string {
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &op):
		return op.Error()
	case errors.As(err, &dns):
		return dns.Error()
	}
	return ""
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
