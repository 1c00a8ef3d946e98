package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"
)

// methodListen is that of the request by which a server without sessions is asked to tell
// what changes, on the stream that answers it (2026-07-28 basic/patterns/subscriptions).
const methodListen = "subscriptions/listen"

// firstListen is how long it is until a server is listened to again that has ended such a
// stream, each time for twice as long where the stream has not lasted: longestWait at most.
const firstListenDelay = time.Second

// listening is a stream on which a server tells what changes. The server may end it at any
// time, as may what stands before it. It is asked for again then, which the client library
// does not do, and all that may have changed meanwhile is taken for changed. Calls go on.
type listenStream struct {
	io.ReadCloser // the stream as it is now
	transport     *filterTransport
	request       *http.Request
	stream        *stream
	openedAt      time.Time
	wait          time.Duration
	ended         bool // it has ended for good
}

// listens returns the answer to a request, which goes on as long as the client library wants
// it to if it is such a stream.
func (t *filterTransport) wrapListen(out *http.Request, body io.ReadCloser, on *stream) io.ReadCloser {
	if out.Header.Get(methodHeader) != methodListen || out.GetBody == nil {
		return body
	}
	on.isListen = true
	return &listenStream{ReadCloser: body, transport: t, request: out, stream: on, openedAt: time.Now(), wait: firstListenDelay}
}

// listensLater returns the answer to a request for such a stream that has come to nothing: it
// is asked for again, of which the client library knows nothing. It returns nil of any other
// request, and before the server is ready.
func (t *filterTransport) retryListen(out *http.Request, on *stream) *http.Response {
	body := t.wrapListen(out, http.NoBody, on)
	if body == http.NoBody || !t.conn.filter.ready.Load() {
		return nil
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: body, Request: out}
}

func (l *listenStream) Read(p []byte) (int, error) {
	for {
		n, err := l.ReadCloser.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) || l.ended || l.stream.ignored {
			return n, err
		}
		l.ended = !l.reopen()
	}
}

// again asks for the stream until there is one. It reports false where nobody wants it any
// more, or the server has none, or cannot be reached, which ends the connection.
func (l *listenStream) reopen() bool {
	if time.Since(l.openedAt) > stableAfter {
		l.wait = firstListenDelay
	}
	for {
		select {
		case <-l.stream.closed:
			return false
		case <-l.transport.conn.filter.done:
			return false
		case <-time.After(l.wait):
		}
		l.wait = min(2*l.wait, maxBackoff)
		resp, err := l.open()
		switch {
		case errors.Is(err, errNoAnswer):
			continue
		case err != nil:
			if !l.stream.isClosed() {
				l.transport.conn.filter.fail(err)
			}
			return false
		case !isStream(resp):
			_ = resp.Body.Close()
			if isTransient(resp.StatusCode) {
				continue
			}
			l.transport.conn.options.Logger.Warn("an upstream server tells no more what changes", slog.String("upstream", l.transport.conn.target.Name), slog.Int("status", resp.StatusCode))
			return false
		}
		l.openedAt = time.Now()
		l.transport.conn.filter.breaker.reads.Add(1)
		_ = l.Close()
		l.ReadCloser = newSSEFilter(l.transport.conn.filter.breaker.countReads(resp.Body), l.transport.conn.filter, l.stream, true)
		l.assumeChanged()
		return true
	}
}

func isStream(r *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return r.StatusCode == http.StatusOK && kind == "text/event-stream"
}

// passes reports whether a server that refuses with a status may do better soon: also with
// another token, which it is asked with then.
func isTransient(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// errNoAnswer is of a server that takes a request and does not answer it. What becomes of
// its calls says whether it is of use.
var errNoAnswer = errors.New("the server does not answer")

// ask asks for the stream, which is to begin within [defaultStart].
func (l *listenStream) open() (*http.Response, error) {
	body, err := l.request.GetBody()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(l.request.Context())
	out := l.request.Clone(ctx)
	out.Body = body
	late := time.AfterFunc(defaultStart, func() { cancel(errNoAnswer) })
	resp, err := l.transport.next.RoundTrip(out)
	late.Stop()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	resp.Body = &hookedBody{resp.Body, func() { cancel(nil) }}
	return resp, nil
}

// missed has all be taken for changed of which the stream tells.
func (l *listenStream) assumeChanged() {
	var asked struct {
		Params struct {
			Notifications struct{ ResourceSubscriptions []string }
		}
	}
	body, err := l.request.GetBody()
	if err == nil {
		err = json.NewDecoder(body).Decode(&asked)
	}
	uris := asked.Params.Notifications.ResourceSubscriptions
	if err != nil || len(uris) == 0 {
		l.transport.conn.filter.changed("notifications/tools/list_changed", "")
	}
	for _, uri := range uris {
		l.transport.conn.filter.changed(methodUpdated, uri)
	}
}
