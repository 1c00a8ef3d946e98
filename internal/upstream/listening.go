package upstream

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
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

// Read reads what is let through.
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
// more, or the server has none.
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
		if err != nil || slices.Contains(passing, resp.StatusCode) {
			continue
		}
		if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
			_ = resp.Body.Close()
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

// passing are the statuses of servers that may do better soon.
var passing = []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// ask asks for the stream.
func (l *listening) ask() (*http.Response, error) {
	body, err := l.out.GetBody()
	if err != nil {
		return nil, err
	}
	out := l.out.Clone(l.out.Context())
	out.Body = body
	resp, err := l.way.next.RoundTrip(out)
	if err == nil && slices.Contains(passing, resp.StatusCode) {
		_ = resp.Body.Close()
	}
	return resp, err
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
