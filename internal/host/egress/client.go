// Package egress sends the HTTP requests of scripts, as far as their grants allow.
//
// [Pool.Do] takes a request as JSON and a [grant.HTTP]. It checks the request in this order.
// The URL must be unambiguous (parsedURL). The grant must allow its host, port, method and path
// (allowlist). The script's headers must be harmless (header). The network must be reachable
// under the grant (addressClassifier); every address is checked when it is dialed, so that DNS
// answers cannot bypass the check. Redirects are checked in the same way. Secrets are inserted
// last, and appear in no error, log record or response.
//
// Every refusal and failure is a [scripting.HostError]. Its message holds nothing that the
// script does not already know.
//
// The package stores no cookies, uses no proxy, decodes no content encoding, and does not
// retry.
package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// The limits of one connection.
const (
	dialTimeout       = 10 * time.Second
	maxHeaderResponse = 256 << 10 // bytes
	maxIdlePerHost    = 16
)

type grantClient struct {
	grant     grant.HTTP
	allowlist allowlist
	options   Options
	transport *http.Transport

	// Guarded by the mutex of the Pool.
	leases int
	idle   *time.Timer
}

func newClient(g grant.HTTP, o Options, n addressClassifier, resolver *net.Resolver) *grantClient {
	config := &tls.Config{}
	if o.TLS != nil {
		config = o.TLS.Clone()
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	return &grantClient{
		grant: g, allowlist: newAllowlist(g), options: o,
		transport: &http.Transport{
			Proxy:                  nil,
			DialContext:            dialer(g.PrivateNetworks, n, resolver),
			TLSClientConfig:        config,
			TLSHandshakeTimeout:    dialTimeout,
			DisableCompression:     true,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    maxIdlePerHost,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeaderResponse,
		},
	}
}

// dialer returns a DialContext that connects only to addresses that the grant allows.
func dialer(privateNetworks bool, n addressClassifier, resolver *net.Resolver) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d := net.Dialer{Timeout: dialTimeout, Resolver: resolver}
		named, err := netip.ParseAddrPort(address)
		d.Control = n.dialControl(privateNetworks, named.Addr().Unmap())
		if err == nil { // an address literal: checked even if the machine cannot reach it
			if err := d.Control(network, address, nil); err != nil {
				return nil, err
			}
		}
		return d.DialContext(ctx, network, address)
	}
}

func (c *grantClient) close() { c.transport.CloseIdleConnections() }

// do sends a request and follows as many redirects as the grant allows.
func (c *grantClient) do(ctx context.Context, r *request) ([]byte, error) {
	for _, limit := range []time.Duration{r.timeout, c.grant.Timeout} {
		if limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
	}
	if err := checkHeaders(r.headers, c.grant); err != nil {
		return nil, err
	}
	if err := c.allowlist.check(r.method, r.to); err != nil {
		return nil, err
	}
	for hop := 0; ; hop++ {
		answer, next, err := c.send(ctx, r, hop < c.grant.Redirects)
		if err != nil || next == nil {
			return answer, err
		}
		if c.allowlist.check(next.method, next.to) != nil {
			return nil, newHostError(scripting.NotGranted, "the redirect leads outside the grant")
		}
		r = next
	}
}

// send sends one request. It returns the response, or the redirect if follow is set.
func (c *grantClient) send(ctx context.Context, r *request, follow bool) ([]byte, *request, error) {
	out, err := c.build(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	resp, err := c.transport.RoundTrip(out)
	if err != nil {
		return nil, nil, c.logFailure(ctx, r, err)
	}
	defer func() { _ = resp.Body.Close() }()
	c.reportUnauthorized(ctx, resp)
	if follow {
		next, err := r.redirect(resp)
		if err != nil || next != nil {
			return nil, next, err
		}
	}
	body, err := c.read(ctx, r, resp)
	if err != nil {
		return nil, nil, err
	}
	answer, err := encodeResponse(resp, body, r.to, c.options.Redact)
	return answer, nil, err
}

// reportUnauthorized reports the secrets of the grant if the host responds with 401.
func (c *grantClient) reportUnauthorized(ctx context.Context, resp *http.Response) {
	if resp.StatusCode != http.StatusUnauthorized {
		return
	}
	for _, h := range c.grant.Headers {
		h.Value.EachSecret(func(secret string) { c.options.OnUnauthorized(ctx, secret) })
	}
}

// read reads the body of a response, up to the limit.
func (c *grantClient) read(ctx context.Context, r *request, resp *http.Response) ([]byte, error) {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// An unsolicited upgrade, and a body without a deadline.
		return nil, newHostError(scripting.Unavailable, "%s gave no valid answer", r.host)
	}
	limit := c.grant.MaxResponse
	if limit <= 0 {
		limit = c.options.MaxResponse
	}
	if resp.ContentLength > limit && r.method != http.MethodHead {
		return nil, newHostError(scripting.TooLarge, "the response is longer than %d bytes", limit)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, c.logFailure(ctx, r, err)
	case int64(len(body)) > limit:
		return nil, newHostError(scripting.TooLarge, "the response is longer than %d bytes", limit)
	}
	return body, nil
}

// logFailure logs the details of an error that the script does not get.
func (c *grantClient) logFailure(ctx context.Context, r *request, err error) *scripting.HostError {
	explained := explain(ctx, r.host, err)
	c.options.Logger.DebugContext(ctx, "HTTP request of script failed",
		"grant", c.grant.Name, "host", r.to.hostport(), "code", explained.Code,
		"reason", explained.Message, "cause", cause(err))
	return explained
}

func (c *grantClient) build(ctx context.Context, r *request) (*http.Request, error) {
	out := &http.Request{
		Method: r.method, URL: r.to.url, Host: r.to.url.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"User-Agent": {"mcpd"}},
	}
	if r.hasBody {
		out.Body = io.NopCloser(bytes.NewReader(r.body))
		out.ContentLength = int64(len(r.body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.body)), nil }
	}
	if parent := c.options.Traceparent(ctx); parent != "" {
		out.Header.Set("Traceparent", parent)
	}
	for _, h := range r.headers {
		out.Header.Set(h.name, h.value)
	}
	if err := c.setHeaders(ctx, out.Header); err != nil {
		return nil, c.hideHeaderError(ctx, err)
	}
	return out.WithContext(ctx), nil
}

// setHeaders sets the headers of the grant and resolves their secrets. The error is for the
// operator (see [grantClient.hideHeaderError]).
func (c *grantClient) setHeaders(ctx context.Context, to http.Header) error {
	for _, h := range c.grant.Headers {
		value, err := h.Value.Text(ctx, c.options.Resolve)
		var refused *scripting.HostError
		if errors.As(err, &refused) && refused.Code == scripting.Consent {
			return refused
		}
		if err != nil {
			return &headerError{newHostError(scripting.Unavailable, "a secret that the grant needs could not be read"), h.Name, err}
		}
		if !isHeaderValue(value) || !httpheader.IsToken(h.Name) {
			return &headerError{newHostError(scripting.Unavailable, "a header that the grant sets cannot be sent"), h.Name, errControlCharacter}
		}
		to.Set(h.Name, value)
	}
	return nil
}

// errControlCharacter rejects a header value.
var errControlCharacter = errors.New("it contains a control character")

// headerError reports a header of a grant that cannot be set, for the operator. It names the
// secret and its source.
type headerError struct {
	*scripting.HostError
	header string
	cause  error
}

func (e *headerError) Error() string { return fmt.Sprintf("the header %q: %v", e.header, e.cause) }

func (e *headerError) Unwrap() error { return e.HostError }

// hideHeaderError returns the error for the script, and logs the details.
func (c *grantClient) hideHeaderError(ctx context.Context, err error) error {
	unset, ok := errors.AsType[*headerError](err)
	switch {
	case !ok:
		return err
	case unset.cause == errControlCharacter:
		c.options.Logger.WarnContext(ctx, "header of grant holds a control character",
			"grant", c.grant.Name, "header", unset.header)
	default:
		c.options.Logger.WarnContext(ctx, "read secret of grant",
			"grant", c.grant.Name, "header", unset.header, "error", unset.cause)
	}
	return unset.HostError
}
