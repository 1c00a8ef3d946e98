package egress

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// Stream returns the transport of a conversation that the server has with a host, such
// as with another server of MCP. Requests pass the doors that those of scripts pass
// under the grant, whose headers they get, beside those that are the server's own. The
// caller reads an answer as it comes, bounds it, and closes it. No redirect is followed.
// Errors are as those of [Pool.Do], in words for the operator.
func (p *Pool) Stream(g grant.HTTP) http.RoundTripper { return streaming{pool: p, grant: g} }

type streaming struct {
	pool  *Pool
	grant grant.HTTP
}

// RoundTrip sends a request.
func (t streaming) RoundTrip(out *http.Request) (*http.Response, error) {
	resp, err := t.send(out)
	if err != nil && out.Body != nil {
		_ = out.Body.Close()
	}
	return resp, err
}

func (t streaming) send(out *http.Request) (*http.Response, error) {
	to, err := parseAddress(out.URL.String())
	if err != nil {
		return nil, err
	}
	c, release, ok := t.pool.lease(t.grant)
	if !ok {
		return nil, fault(scripting.Unavailable, "the server is stopping")
	}
	resp, err := c.open(to, out)
	if err != nil {
		release()
		return nil, err
	}
	resp.Body = &leased{ReadCloser: resp.Body, release: release}
	return resp, nil
}

// open sends a request with the headers of the grant.
func (c *client) open(to *address, out *http.Request) (*http.Response, error) {
	if err := c.permit.check(out.Method, to); err != nil {
		return nil, err
	}
	ctx := out.Context()
	sent := out.Clone(ctx)
	if parent := c.options.Propagate(ctx); parent != "" {
		sent.Header.Set("Traceparent", parent)
	}
	if err := c.setHeaders(ctx, sent.Header); err != nil {
		return nil, err
	}
	resp, err := c.transport.RoundTrip(sent)
	if err != nil {
		return nil, &streamError{c.failed(ctx, &request{method: out.Method, to: to, host: to.hostport()}, err), err}
	}
	c.refused(ctx, resp)
	return resp, nil
}

// streamError is a failure of the network in words for the operator, who hears what no
// script may.
type streamError struct {
	*scripting.HostError
	cause error
}

// Error returns the reason without its code, and what may be done.
func (e *streamError) Error() string {
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	switch {
	case errors.As(e.cause, &cert):
		return fmt.Sprintf("%s: %v", e.Message, cert)
	case errors.As(e.cause, new(tls.RecordHeaderError)):
		return e.Message + ": it speaks no TLS, so write http:// if it is to be trusted"
	case errors.As(e.cause, &dns):
		return e.Message + ": is its name spelled right?"
	case errors.Is(e.cause, syscall.ECONNREFUSED):
		return e.Message + ": does it run, and is this its port?"
	}
	return e.Message
}

// Unwrap returns the error that scripts get.
func (e *streamError) Unwrap() error { return e.HostError }

// leased gives the connection back when the answer is closed.
type leased struct {
	io.ReadCloser
	once    sync.Once
	release func()
}

// Close closes the answer.
func (l *leased) Close() error {
	defer l.once.Do(l.release)
	return l.ReadCloser.Close()
}
