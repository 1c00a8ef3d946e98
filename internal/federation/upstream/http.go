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

// maxRequest bounds what the client library sends at once, in bytes. Arguments are
// bounded before.
const maxRequest = 64 << 20

// maxFault bounds the body of an answer that is none, in bytes.
const maxFault = 64 << 10

type filterTransport struct {
	conn *Conn
	next http.RoundTripper
	// plainEvents says that the server speaks as revision 2024-11-05 has it, and absent that
	// it has said last that nothing of it is at the URL.
	legacySSE bool
	absent    atomic.Bool
	// trouble is why the last request came to nothing that was no call's; nil where it did not.
	lastErr atomic.Pointer[requestError]
	// life ends with the link, and with it all that the client library still sends then.
	ctx context.Context
}

// RoundTrip sends a request of the client library.
func (t *filterTransport) RoundTrip(out *http.Request) (*http.Response, error) {
	on, sent, err := t.filterOutgoing(out)
	if err != nil {
		return nil, err
	}
	if on == nil {
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
	on.closed = ctx.Done()
	resp, err := t.send(out.WithContext(ctx), on)
	if err != nil {
		end()
		return nil, err
	}
	resp.Body = &hookedBody{resp.Body, end}
	return resp, nil
}

// ending is a body with whose end something else ends.
type hookedBody struct {
	io.ReadCloser
	end func()
}

func (e *hookedBody) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

func (t *filterTransport) send(out *http.Request, on *stream) (*http.Response, error) {
	of := on.call
	if of == nil && t.isConnecting(out) {
		t.lastErr.Store(nil)
	}
	if out.Method == http.MethodDelete {
		return t.closeSession(out)
	}
	resp, err := t.next.RoundTrip(out)
	if err != nil {
		if later := t.retryListen(out, on); later != nil {
			return later, nil
		}
		return nil, t.recordError(of, out, err)
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
			_ = t.recordError(of, out, statusError(resp.StatusCode, of != nil))
		}
	case out.Method == http.MethodPost && (t.legacySSE || on.answers == nil):
		discardBody(resp)
	case kind == "text/event-stream":
		resp.Body = t.wrapListen(out, newSSEFilter(resp.Body, t.conn.filter, on, !t.legacySSE), on)
	default:
		on.ignored = out.Method != http.MethodPost || kind != "application/json"
		err = t.readMessage(resp, on)
		if resp.StatusCode == http.StatusOK && kind != "application/json" && !isOversized(err) {
			_ = t.recordError(of, out, errNotMCP)
		} else if err != nil {
			_ = t.recordError(of, out, err)
		}
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// leave tells the server that a session is over, which need not hear it: some wait until
// all calls have ended.
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

// reply bounds how long a server may take to take an answer to its own request. It returns
// the context of that, and what to call when it is over, which calls sent.
func (w *messageFilter) answerTimeout(ctx context.Context, sent func()) (_ context.Context, end func()) {
	ctx, cancel := context.WithTimeoutCause(ctx, sendTimeout, errAnswerNotRead)
	stop := context.AfterFunc(w.ctx, cancel)
	return ctx, sync.OnceFunc(func() {
		if context.Cause(ctx) == errAnswerNotRead {
			w.fail(errAnswerNotRead)
		}
		stop()
		cancel()
		sent()
	})
}

// unsent is what the client library sees of a message that no server has to hear.
func syntheticAccepted(out *http.Request) *http.Response {
	return &http.Response{StatusCode: http.StatusAccepted, Status: http.StatusText(http.StatusAccepted), Header: http.Header{}, Body: http.NoBody, Request: out}
}

// methodHeader names the method of a message to a server without sessions.
const methodHeader = "Mcp-Method"

// outgoing has the wire see a message of the client (see [wire.outgoing]). A server without
// sessions is told of no cancellation: it sees that the stream of the call is closed
// (2026-07-28 basic/patterns/cancellation), and may refuse anything else.
func (t *filterTransport) filterOutgoing(out *http.Request) (on *stream, sent func(), err error) {
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
	on, sent = t.conn.filter.outgoing(text)
	return on, sent, nil
}

// whole reads an answer that is one message, or nothing.
func (t *filterTransport) readMessage(resp *http.Response, on *stream) error {
	defer resp.Body.Close()
	limit := t.conn.filter.limits.Bytes
	text, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the answer of the server: %w", err)
	case len(text) > limit:
		return fmt.Errorf("the answer of the server is longer than %d bytes: %w", limit, errOversized)
	}
	if text = bytes.TrimSpace(text); len(text) > 0 {
		if text, err = t.conn.filter.incoming(text, on); err != nil {
			return err
		}
	}
	if len(text) == 0 && on.call != nil && resp.StatusCode == http.StatusOK {
		return errEmptyAnswer // of which the client library would end the connection
	}
	replaceBody(resp, text)
	return nil
}

// errNothing says that a server has not answered a call at all.
var errEmptyAnswer = errors.New("the server answers with nothing")

// fault lets an error of the protocol through that stands in an answer with a status of
// failure, and nothing else of it. It reports whether there is one.
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

// refused takes in what the server says with a status of failure (see [wire.incoming]):
// nothing but an error of the protocol.
func (w *messageFilter) errorResponse(text []byte) ([]byte, error) {
	m, err := w.check(text)
	switch {
	case err != nil:
		return nil, err
	case m.method != "" || m.id == nil || m.fault == nil:
		return nil, errNotJSONRPC
	}
	return w.response(m, text), nil
}

// unread has nobody see the body of an answer, which the client library closes unread. One
// that is short is read, so that the connection is of further use.
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

// trouble is why a request over HTTP came to nothing, in words for the operator: those of
// the client library tell the way that the error has gone.
type requestError struct{ error }

// opens reports whether a request is one by which a connection is made.
func (t *filterTransport) isConnecting(out *http.Request) bool {
	return out.Method == http.MethodPost || t.legacySSE
}

// troubled notes why a request came to nothing, and returns it.
func (t *filterTransport) recordError(of *Call, out *http.Request, err error) error {
	switch {
	case of != nil:
		of.requestErr.Store(&requestError{err})
	case t.isConnecting(out):
		t.lastErr.Store(&requestError{err})
	}
	return err
}

// errNoServer is of an answer that no server of MCP gives.
var errNotMCP = errors.New("what answers at this URL is no MCP server: look at its path, which is mostly /mcp")

func statusError(status int, within bool) error {
	said := fmt.Sprintf("%d %s", status, http.StatusText(status))
	switch {
	case status == http.StatusUnauthorized:
		return fmt.Errorf("the server wants another credential (%s): look at the header of the block, and its secret", said)
	case status == http.StatusForbidden:
		return fmt.Errorf("the server does not let mcpd in (%s): look at what the credential of the block may do", said)
	case status == http.StatusNotFound && within:
		return fmt.Errorf("the server does not know the session any more (%s)", said)
	case status == http.StatusBadRequest, status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return fmt.Errorf("nothing of MCP is at this URL (%s): look at its path, which is mostly /mcp, and whether it begins with https", said)
	case status >= 300 && status < 400:
		return fmt.Errorf("the server is elsewhere (%s), where mcpd does not follow: write the URL that is meant", said)
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("the server is asked too often (%s)", said)
	case status >= 500:
		return fmt.Errorf("the server fails (%s): look at its own log", said)
	}
	return fmt.Errorf("the server refuses (%s)", said)
}

// way is one in which a server over HTTP is spoken to.
type transportVariant struct{ url, transport string }

// ways returns those in which the server of a place may be spoken to, in the order of
// trying. One of revision 2024-11-05 takes no POST where it has its events (2025-11-25
// basic/transports, Backwards Compatibility). A URL without a path names a host: its
// server is where those of its kind are by custom, or at the root.
func (p Target) variants() (found []transportVariant) {
	all := []transportVariant{{p.URL, TransportStreamable}, {p.URL, TransportSSE}}
	if at, err := url.Parse(p.URL); err == nil && at.Path == "" {
		all = []transportVariant{{withPath(*at, "/mcp"), TransportStreamable}, {p.URL, TransportStreamable}, {p.URL, TransportSSE}, {withPath(*at, "/sse"), TransportSSE}}
	}
	for _, w := range all {
		if p.Transport == "" || p.Transport == w.transport {
			found = append(found, w)
		}
	}
	return found
}

func withPath(at url.URL, path string) string {
	at.Path = path
	return at.String()
}

// unposted are the statuses by which a server says that nothing of it is at a URL
// (2026-07-28 basic/transports, Backward Compatibility).
var notFoundStatuses = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}

// find finds the way in which the server is spoken to: the one that is known first, and
// the next one only where the server says that it is not there.
func (l *Conn) probe(ctx context.Context, known transportVariant) error {
	ways := l.target.variants()
	if i := slices.Index(ways, known); i > 0 {
		ways = slices.Insert(slices.Delete(ways, i, i+1), 0, known)
	}
	var first error
	for _, w := range ways {
		t := &filterTransport{conn: l, next: l.options.Transport(l.target.Grant), legacySSE: w.transport == TransportSSE, ctx: ctx}
		err := l.handshake(ctx, w.client(t))
		if err == nil {
			l.variant = w
			return nil
		}
		if met := t.lastErr.Load(); met != nil && l.filter.failure() == nil {
			err = met.error
		}
		if len(ways) > 1 {
			err = fmt.Errorf("%s at %s: %w", w.transport, w.url, err)
		}
		if first == nil {
			first = err
		}
		if !t.absent.Load() || ctx.Err() != nil || l.filter.failure() != nil {
			return err
		}
	}
	return first
}

// client is the transport of the client library.
func (w transportVariant) client(t *filterTransport) mcp.Transport {
	web := &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if w.transport == TransportSSE {
		return &mcp.SSEClientTransport{Endpoint: w.url, HTTPClient: web}
	}
	return &mcp.StreamableClientTransport{Endpoint: w.url, HTTPClient: web, MaxEventSize: -1}
}
