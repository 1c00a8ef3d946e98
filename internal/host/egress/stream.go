package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// StreamingTransport returns the transport for the server's own connection to a host, such as
// an upstream MCP server. It checks requests like requests of scripts under the grant, and sets
// the headers of the grant in addition. The caller reads the response as it arrives, limits it,
// and closes it. Redirects are not followed. Errors are as in [Pool.Do], in words for
// the operator.
func (p *Pool) StreamingTransport(g grant.HTTP) http.RoundTripper { return transport{p, g, true} }

// transport sends requests of the server itself under a grant.
type transport struct {
	pool    *Pool
	grant   grant.HTTP
	streams bool // responses are read as they arrive
}

func (t transport) RoundTrip(out *http.Request) (*http.Response, error) {
	resp, err := t.roundTrip(out)
	if err != nil && out.Body != nil {
		_ = out.Body.Close()
	}
	return resp, err
}

func (t transport) roundTrip(out *http.Request) (*http.Response, error) {
	to, err := parseURL(out.URL.String())
	if err != nil {
		return nil, err
	}
	c, release, ok := t.pool.lease(t.grant)
	if !ok {
		return nil, newHostError(scripting.Unavailable, "the server is stopping")
	}
	r := &request{method: out.Method, to: to, host: to.hostport()}
	send := c.roundTripBuffered
	if t.streams {
		send = c.roundTripStream
	}
	var resp *http.Response
	if err = c.allowlist.check(r.method, to); err == nil {
		resp, err = send(r, out)
	}
	if err != nil || !t.streams {
		release()
		return resp, err
	}
	resp.Body = &leasedBody{ReadCloser: resp.Body, release: release}
	return resp, nil
}

func (c *grantClient) roundTripStream(r *request, out *http.Request) (*http.Response, error) {
	ctx := out.Context()
	sent := out.Clone(ctx)
	if parent := c.options.Traceparent(ctx); parent != "" {
		sent.Header.Set("Traceparent", parent)
	}
	if err := c.setHeaders(ctx, sent.Header); err != nil {
		return nil, err
	}
	resp, err := c.transport.RoundTrip(sent)
	if err != nil {
		return nil, &streamError{c.logFailure(ctx, r, err), err}
	}
	c.reportUnauthorized(ctx, resp)
	return resp, nil
}

// streamError is a network error in words for the operator, with details that scripts do not
// get.
type streamError struct {
	*scripting.HostError
	cause error
}

// Error returns the reason without its code, and a suggestion.
func (e *streamError) Error() string {
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	switch {
	case errors.As(e.cause, &cert):
		return fmt.Sprintf("%s: %v", e.Message, cert)
	case errors.As(e.cause, new(tls.RecordHeaderError)):
		return e.Message + ": it does not use TLS; write http:// if you trust it"
	case errors.As(e.cause, &dns):
		return e.Message + ": is its name correct?"
	case errors.Is(e.cause, syscall.ECONNREFUSED):
		return e.Message + ": is it running, and is the port correct?"
	}
	return e.Message
}

func (e *streamError) Unwrap() error { return e.HostError }

// leasedBody releases the client when it is closed.
type leasedBody struct {
	io.ReadCloser
	once    sync.Once
	release func()
}

func (l *leasedBody) Close() error {
	defer l.once.Do(l.release)
	return l.ReadCloser.Close()
}

type scriptResponse struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body,omitempty"`
	Body64  []byte            `json:"body64,omitempty"` // if it is not UTF-8
	URL     string            `json:"url"`
}

// encodeResponse encodes a response for the script. It redacts before encoding, so that no
// escape hides a secret.
func encodeResponse(resp *http.Response, body []byte, from *parsedURL, redact func([]byte) []byte) ([]byte, error) {
	body = redact(body)
	a := scriptResponse{Status: resp.StatusCode, Headers: make(map[string]string, len(resp.Header)), URL: string(redact([]byte(from.url.String())))}
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
		return nil, newHostError(scripting.Unavailable, "the answer could not be encoded")
	}
	return out, nil
}

// redirect returns the request that follows a redirect (RFC 9110 section 15.4), or nil if the
// response is none.
func (r *request) redirect(resp *http.Response) (*request, error) {
	location := resp.Header.Get("Location")
	if location == "" || !slices.Contains([]int{301, 302, 303, 307, 308}, resp.StatusCode) {
		return nil, nil
	}
	target, err := r.to.url.Parse(location)
	if err != nil {
		return nil, newHostError(scripting.Unavailable, "the redirect is malformed")
	}
	target.Fragment, target.RawFragment = "", ""
	to, err := parseURL(target.String())
	if err != nil {
		return nil, newHostError(scripting.Unavailable, "the redirect is malformed")
	}
	if r.to.scheme == "https" && to.scheme == "http" {
		return nil, newHostError(scripting.Denied, "the redirect leads from https:// to http://")
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

// Transport returns the transport for requests of the server itself, such as token requests. It
// checks requests like requests of scripts under the grant, except for headers, which the server
// sets. Responses are read completely, limited by MaxResponse, and not redacted. Redirects are
// not followed. Errors are as in [Pool.Do].
func (p *Pool) Transport(g grant.HTTP) http.RoundTripper { return transport{p, g, false} }

func (c *grantClient) roundTripBuffered(r *request, out *http.Request) (*http.Response, error) {
	resp, err := c.transport.RoundTrip(out)
	if err != nil {
		return nil, c.logFailure(out.Context(), r, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := c.read(out.Context(), r, resp)
	if err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}
