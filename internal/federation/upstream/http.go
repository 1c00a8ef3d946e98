package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxRequest bounds one request of the client library, in bytes. Arguments have their own
// limit.
const maxRequest = 64 << 20

// maxFault bounds the body of an error response, in bytes.
const maxFault = 64 << 10

type filterTransport struct {
	conn *Conn
	next http.RoundTripper
	// legacySSE selects the transport of revision 2024-11-05. absent means that the last status
	// says that there is no MCP server at the URL.
	legacySSE bool
	absent    atomic.Bool
	// lastErr is why the last request outside of a call failed, or nil.
	lastErr atomic.Pointer[requestError]
	// ctx ends with the connection, and with it all requests of the client library.
	ctx context.Context
}

// RoundTrip sends a request of the client library.
func (t *filterTransport) RoundTrip(out *http.Request) (*http.Response, error) {
	s, sent, err := t.filterOutgoing(out)
	if err != nil {
		return nil, err
	}
	if s == nil {
		if sent != nil {
			sent()
		}
		return syntheticAccepted(out), nil
	}
	ctx, cancel := context.WithCancel(out.Context())
	stop := context.AfterFunc(t.ctx, cancel)
	end := func() { stop(); cancel() }
	if sent != nil {
		all := end
		ctx, end = t.conn.filter.answerTimeout(ctx, func() { all(); sent() })
	}
	s.closed = ctx.Done()
	resp, err := t.send(out.WithContext(ctx), s)
	if err != nil {
		end()
		return nil, err
	}
	resp.Body = &hookedBody{resp.Body, end}
	return resp, nil
}

// hookedBody calls end when it is closed.
type hookedBody struct {
	io.ReadCloser
	end func()
}

func (b *hookedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

func (t *filterTransport) send(out *http.Request, s *stream) (*http.Response, error) {
	c := s.call
	if c == nil && t.isConnecting(out) {
		t.lastErr.Store(nil)
	}
	if out.Method == http.MethodDelete {
		return t.closeSession(out)
	}
	resp, err := t.next.RoundTrip(out)
	if err != nil {
		if later := t.retryListen(out, s); later != nil {
			return later, nil
		}
		return nil, t.recordError(c, out, err)
	}
	t.conn.filter.breaker.reads.Add(1)
	resp.Body = t.conn.filter.breaker.countReads(resp.Body)
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		if (out.Method == http.MethodGet) == t.legacySSE {
			t.absent.Store(slices.Contains(notFoundStatuses, resp.StatusCode))
		}
		if !t.passError(resp) {
			_ = t.recordError(c, out, statusError(resp.StatusCode, c != nil))
		}
	case out.Method == http.MethodPost && (t.legacySSE || s.answers == nil):
		discardBody(resp)
	case kind == "text/event-stream":
		resp.Body = t.wrapListen(out, newSSEFilter(resp.Body, t.conn.filter, s, !t.legacySSE), s)
	default:
		s.ignored = out.Method != http.MethodPost || kind != "application/json"
		err = t.readMessage(resp, s)
		if resp.StatusCode == http.StatusOK && kind != "application/json" && !isOversized(err) {
			_ = t.recordError(c, out, errNotMCP)
		} else if err != nil {
			_ = t.recordError(c, out, err)
		}
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// closeSession notifies the server that the session has ended. It does not wait long: some
// servers respond only after all calls have ended.
func (t *filterTransport) closeSession(out *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(out.Context(), stopTimeout)
	defer cancel()
	resp, err := t.next.RoundTrip(out.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	replaceBody(resp, nil)
	return resp, nil
}

// answerTimeout bounds the time that a server may take to accept an answer to its own request.
// It returns the bounded context, and a function to call at the end, which calls sent.
func (f *messageFilter) answerTimeout(ctx context.Context, sent func()) (_ context.Context, end func()) {
	ctx, cancel := context.WithTimeoutCause(ctx, sendTimeout, errAnswerNotRead)
	stop := context.AfterFunc(f.ctx, cancel)
	return ctx, sync.OnceFunc(func() {
		if context.Cause(ctx) == errAnswerNotRead {
			f.fail(errAnswerNotRead)
		}
		stop()
		cancel()
		sent()
	})
}

// syntheticAccepted is the response to a message that is not sent.
func syntheticAccepted(out *http.Request) *http.Response {
	return &http.Response{StatusCode: http.StatusAccepted, Status: http.StatusText(http.StatusAccepted), Header: http.Header{}, Body: http.NoBody, Request: out}
}

// methodHeader names the method of a message to a server without sessions.
const methodHeader = "Mcp-Method"

// filterOutgoing passes a message of the client through the filter (see
// [messageFilter.outgoing]). A server without sessions gets no cancellation: it sees that the
// stream of the call is closed (2026-07-28 basic/patterns/cancellation), and may reject the
// notification.
func (t *filterTransport) filterOutgoing(out *http.Request) (s *stream, sent func(), err error) {
	if out.Method != http.MethodPost || out.Body == nil {
		return &stream{call: callOf(out.Context())}, nil, nil
	}
	text, err := io.ReadAll(io.LimitReader(out.Body, maxRequest+1))
	_ = out.Body.Close()
	if err != nil || len(text) > maxRequest {
		return nil, nil, errors.Join(errors.New("the request cannot be sent"), err)
	}
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	if out.Header.Get(methodHeader) == methodCancelled {
		return nil, nil, nil
	}
	s, sent = t.conn.filter.outgoing(text)
	return s, sent, nil
}

// readMessage reads a response that is one message, or empty.
func (t *filterTransport) readMessage(resp *http.Response, s *stream) error {
	defer resp.Body.Close()
	limit := t.conn.filter.limits.Bytes
	text, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	switch {
	case err != nil:
		return fmt.Errorf("read response: %w", err)
	case len(text) > limit:
		return fmt.Errorf("the response is longer than %d bytes: %w", limit, errOversized)
	}
	if text = bytes.TrimSpace(text); len(text) > 0 {
		if text, err = t.conn.filter.incoming(text, s); err != nil {
			return err
		}
	}
	if len(text) == 0 && s.call != nil && resp.StatusCode == http.StatusOK {
		return errEmptyAnswer // it would make the client library end the connection
	}
	replaceBody(resp, text)
	return nil
}

// errEmptyAnswer fails a call that gets no response.
var errEmptyAnswer = errors.New("the server sent an empty response")

// passError passes a protocol error in a response with an error status, and drops any other
// body. It reports whether there was one.
func (t *filterTransport) passError(resp *http.Response) bool {
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxFault+1))
	if text = bytes.TrimSpace(text); err == nil && len(text) > 0 && len(text) <= maxFault {
		if text, err = t.conn.filter.errorResponse(text); err == nil {
			replaceBody(resp, text)
			return true
		}
	}
	replaceBody(resp, nil)
	return false
}

// errorResponse filters the body of a response with an error status (see
// [messageFilter.incoming]). It accepts only protocol errors.
func (f *messageFilter) errorResponse(text []byte) ([]byte, error) {
	m, err := f.check(text)
	switch {
	case err != nil:
		return nil, err
	case m.method != "" || m.id == nil || m.fault == nil:
		return nil, errNotJSONRPC
	}
	return f.response(m, text), nil
}

// discardBody empties the body of a response that the client library closes unread. It reads a
// short one, so that the connection can be reused.
func discardBody(resp *http.Response) {
	if n := resp.ContentLength; n > 0 && n <= maxFault {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	_ = resp.Body.Close()
	replaceBody(resp, nil)
}

func replaceBody(resp *http.Response, text []byte) {
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
}

// requestError says why an HTTP request failed, in words for the operator. The errors of the
// client library only describe internal layers.
type requestError struct{ error }

// isConnecting reports whether a request is part of connecting.
func (t *filterTransport) isConnecting(out *http.Request) bool {
	return out.Method == http.MethodPost || t.legacySSE
}

// recordError records why a request failed, and returns err.
func (t *filterTransport) recordError(c *Call, out *http.Request, err error) error {
	switch {
	case c != nil:
		c.requestErr.Store(&requestError{err})
	case t.isConnecting(out):
		t.lastErr.Store(&requestError{err})
	}
	return err
}

// errNotMCP fails on a response that no MCP server sends.
var errNotMCP = errors.New("no MCP server answers at this URL: check that its path is right, usually /mcp")

func statusError(status int, inCall bool) error {
	text := fmt.Sprintf("%d %s", status, http.StatusText(status))
	switch {
	case status == http.StatusUnauthorized:
		return fmt.Errorf("the server rejects the credential (%s): check the header of the block, and its secret", text)
	case status == http.StatusForbidden:
		return fmt.Errorf("access denied (%s): check the permissions of the block's credential", text)
	case status == http.StatusNotFound && inCall:
		return fmt.Errorf("the server does not know the session (%s)", text)
	case status == http.StatusBadRequest, status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return fmt.Errorf("no MCP server at this URL (%s): check that its path is right, usually /mcp, and that it starts with https", text)
	case status >= 300 && status < 400:
		return fmt.Errorf("the server redirects (%s), and mcpd does not follow: set the final URL", text)
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("the server limits the request rate (%s)", text)
	case status >= 500:
		return fmt.Errorf("the server failed (%s): check its log", text)
	}
	return fmt.Errorf("the server rejects the request (%s)", text)
}

// transportVariant is a URL and a transport to reach a server.
type transportVariant struct{ url, transport string }

// variants returns the variants of a target in the order to try. A server of revision
// 2024-11-05 accepts no POST at its event URL (2025-11-25 basic/transports, Backwards
// Compatibility). A URL without a path names a host: the server is at the conventional path, or
// at the root.
func (t Target) variants() (found []transportVariant) {
	all := []transportVariant{{t.URL, TransportStreamable}, {t.URL, TransportSSE}}
	if u, err := url.Parse(t.URL); err == nil && u.Path == "" {
		all = []transportVariant{{withPath(*u, "/mcp"), TransportStreamable}, {t.URL, TransportStreamable}, {t.URL, TransportSSE}, {withPath(*u, "/sse"), TransportSSE}}
	}
	for _, v := range all {
		if t.Transport == "" || t.Transport == v.transport {
			found = append(found, v)
		}
	}
	return found
}

func withPath(at url.URL, path string) string {
	at.Path = path
	return at.String()
}

// notFoundStatuses say that there is no MCP server at a URL (2026-07-28 basic/transports,
// Backward Compatibility).
var notFoundStatuses = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}

// probe finds a variant that works. It tries the known variant first, and the next one only if
// the server says that it is not there.
func (c *Conn) probe(ctx context.Context, known transportVariant) error {
	variants := c.target.variants()
	if i := slices.Index(variants, known); i > 0 {
		variants = slices.Insert(slices.Delete(variants, i, i+1), 0, known)
	}
	var first error
	for _, v := range variants {
		t := &filterTransport{conn: c, next: c.options.Transport(c.target.Grant), legacySSE: v.transport == TransportSSE, ctx: ctx}
		err := c.handshake(ctx, v.client(t))
		if err == nil {
			c.variant = v
			return nil
		}
		if last := t.lastErr.Load(); last != nil && c.filter.failure() == nil {
			err = last.error
		}
		if len(variants) > 1 {
			err = fmt.Errorf("%s at %s: %w", v.transport, v.url, err)
		}
		if first == nil {
			first = err
		}
		if !t.absent.Load() || ctx.Err() != nil || c.filter.failure() != nil {
			return err
		}
	}
	return first
}

// client returns the transport for the client library.
func (v transportVariant) client(t *filterTransport) mcp.Transport {
	web := &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if v.transport == TransportSSE {
		return &mcp.SSEClientTransport{Endpoint: v.url, HTTPClient: web}
	}
	return &mcp.StreamableClientTransport{Endpoint: v.url, HTTPClient: web, MaxEventSize: -1}
}
