package egress

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// RoundTripper returns the transport of requests that the server makes for
// itself, such as for tokens. They pass the doors that those of scripts pass
// under the grant, but for the headers, which are the server's own. An answer
// is read to its end, which MaxResponse bounds, and nothing is taken out of it.
// No redirect is followed. Errors are as those of [Pool.Do].
func (p *Pool) RoundTripper(g grant.HTTP) http.RoundTripper {
	return roundTripper{pool: p, grant: g}
}

type roundTripper struct {
	pool  *Pool
	grant grant.HTTP
}

// RoundTrip sends a request.
func (t roundTripper) RoundTrip(out *http.Request) (*http.Response, error) {
	if out.Body != nil {
		defer func() { _ = out.Body.Close() }()
	}
	to, err := parseAddress(out.URL.String())
	if err != nil {
		return nil, err
	}
	c, release, ok := t.pool.lease(t.grant)
	if !ok {
		return nil, fault(scripting.Unavailable, "the server is stopping")
	}
	defer release()
	if err := c.permit.check(out.Method, to); err != nil {
		return nil, err
	}
	return c.whole(out.Context(), &request{method: out.Method, to: to, host: to.hostport()}, out)
}

// whole sends a request and reads all of its answer.
func (c *client) whole(ctx context.Context, r *request, out *http.Request) (*http.Response, error) {
	resp, err := c.transport.RoundTrip(out)
	if err != nil {
		return nil, c.failed(ctx, r, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := c.read(ctx, r, resp)
	if err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}
