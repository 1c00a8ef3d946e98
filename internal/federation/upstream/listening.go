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
const firstListen = time.Second

// listening is a stream on which a server tells what changes. The server may end it at any
// time, as may what stands before it. It is asked for again then, which the client library
// does not do, and all that may have changed meanwhile is taken for changed. Calls go on.
type listening struct {
	io.ReadCloser // the stream as it is now
	way           *watched
	out           *http.Request
	on            *stream
	began         time.Time
	wait          time.Duration
	over          bool // it has ended for good
}

// listens returns the answer to a request, which goes on as long as the client library wants
// it to if it is such a stream.
func (t *watched) listens(out *http.Request, body io.ReadCloser, on *stream) io.ReadCloser {
	if out.Header.Get(methodHeader) != methodListen || out.GetBody == nil {
		return body
	}
	on.listens = true
	return &listening{ReadCloser: body, way: t, out: out, on: on, began: time.Now(), wait: firstListen}
}

// listensLater returns the answer to a request for such a stream that has come to nothing: it
// is asked for again, of which the client library knows nothing. It returns nil of any other
// request, and before the server is ready.
func (t *watched) listensLater(out *http.Request, on *stream) *http.Response {
	body := t.listens(out, http.NoBody, on)
	if body == http.NoBody || !t.link.wire.ready.Load() {
		return nil
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: body, Request: out}
}

func (l *listening) Read(p []byte) (int, error) {
	for {
		n, err := l.ReadCloser.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) || l.over || l.on.over {
			return n, err
		}
		l.over = !l.again()
	}
}

// again asks for the stream until there is one. It reports false where nobody wants it any
// more, or the server has none, or cannot be reached, which ends the connection.
func (l *listening) again() bool {
	if time.Since(l.began) > steady {
		l.wait = firstListen
	}
	for {
		select {
		case <-l.on.left:
			return false
		case <-l.way.link.wire.dead:
			return false
		case <-time.After(l.wait):
		}
		l.wait = min(2*l.wait, longestWait)
		resp, err := l.ask()
		switch {
		case errors.Is(err, errNoAnswer):
			continue
		case err != nil:
			if !l.on.gone() {
				l.way.link.wire.fail(err)
			}
			return false
		case !isStream(resp):
			_ = resp.Body.Close()
			if passes(resp.StatusCode) {
				continue
			}
			l.way.link.options.Logger.Warn("an upstream server tells no more what changes", slog.String("upstream", l.way.link.place.Name), slog.Int("status", resp.StatusCode))
			return false
		}
		l.began = time.Now()
		l.way.link.wire.health.heard.Add(1)
		_ = l.Close()
		l.ReadCloser = newEvents(l.way.link.wire.health.listen(resp.Body), l.way.link.wire, l.on, true)
		l.missed()
		return true
	}
}

func isStream(r *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return r.StatusCode == http.StatusOK && kind == "text/event-stream"
}

// passes reports whether a server that refuses with a status may do better soon: also with
// another token, which it is asked with then.
func passes(status int) bool {
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
func (l *listening) ask() (*http.Response, error) {
	body, err := l.out.GetBody()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(l.out.Context())
	out := l.out.Clone(ctx)
	out.Body = body
	late := time.AfterFunc(defaultStart, func() { cancel(errNoAnswer) })
	resp, err := l.way.next.RoundTrip(out)
	late.Stop()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	resp.Body = &ending{resp.Body, func() { cancel(nil) }}
	return resp, nil
}

// missed has all be taken for changed of which the stream tells.
func (l *listening) missed() {
	var asked struct {
		Params struct {
			Notifications struct{ ResourceSubscriptions []string }
		}
	}
	body, err := l.out.GetBody()
	if err == nil {
		err = json.NewDecoder(body).Decode(&asked)
	}
	uris := asked.Params.Notifications.ResourceSubscriptions
	if err != nil || len(uris) == 0 {
		l.way.link.wire.changed("notifications/tools/list_changed", "")
	}
	for _, uri := range uris {
		l.way.link.wire.changed(methodUpdated, uri)
	}
}
