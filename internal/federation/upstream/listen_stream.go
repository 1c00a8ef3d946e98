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

// methodListen requests change notifications from a server without sessions, on the stream of
// the response (2026-07-28 basic/patterns/subscriptions).
const methodListen = "subscriptions/listen"

// firstListenDelay is the delay before a listen stream is reopened. It doubles, up to
// maxBackoff, each time a stream was short.
const firstListenDelay = time.Second

// listenStream is a stream of change notifications. The server, or a proxy, may end it at any
// time. Then it is reopened, which the client library does not do, and everything is assumed to
// have changed. Calls continue.
type listenStream struct {
	io.ReadCloser // the current stream
	transport     *filterTransport
	request       *http.Request
	stream        *stream
	openedAt      time.Time
	wait          time.Duration
	ended         bool // it has ended for good
}

// wrapListen wraps the body of a response if it is a listen stream, so that it is reopened
// until the client library closes it.
func (t *filterTransport) wrapListen(out *http.Request, body io.ReadCloser, s *stream) io.ReadCloser {
	if out.Header.Get(methodHeader) != methodListen || out.GetBody == nil {
		return body
	}
	s.isListen = true
	return &listenStream{ReadCloser: body, transport: t, request: out, stream: s, openedAt: time.Now(), wait: firstListenDelay}
}

// retryListen returns a response for a listen request that has failed: the stream is opened
// later, and the client library does not notice. It returns nil for other requests, and before
// the server is ready.
func (t *filterTransport) retryListen(out *http.Request, s *stream) *http.Response {
	body := t.wrapListen(out, http.NoBody, s)
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

// reopen opens the stream again, with backoff. It returns false if the stream is closed, the
// server does not support it, or the server is unreachable, which ends the connection.
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
			l.transport.conn.options.Logger.Warn("upstream server no longer reports changes", slog.String("upstream", l.transport.conn.target.Name), slog.Int("status", resp.StatusCode))
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

// isTransient reports whether a request that failed with a status may succeed later, including
// with a new token.
func isTransient(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// errNoAnswer reports that a listen request got no response in time. The outcome of calls
// decides whether the connection is usable.
var errNoAnswer = errors.New("the server does not answer")

// open requests the stream, which has to start within [defaultStart].
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

// assumeChanged reports a change of everything that the stream covers.
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
