package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// streamLifetime ends streams of events. The browser opens a new one.
const streamLifetime = time.Hour

// events writes server-sent events (SSE) to a browser.
type events struct {
	ctx  context.Context
	w    http.ResponseWriter
	to   *http.ResponseController
	sent map[string]string // the last data of each event, for sendChanged
}

// stream answers a request with events until send returns, the browser is gone or the console is
// closed. The number of streams is bounded.
func (c *Console) stream(w http.ResponseWriter, r *http.Request, send func(*events) error) {
	select {
	case c.streams <- struct{}{}:
		defer func() { <-c.streams }()
	default:
		http.Error(w, "Too many open pages with live data.", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), streamLifetime)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	e := &events{ctx: ctx, w: w, to: http.NewResponseController(w), sent: map[string]string{}}
	_ = e.to.SetReadDeadline(time.Time{}) // else the deadline of the request ends its context
	if err := send(e); err != nil && ctx.Err() == nil && !errors.Is(err, errDone) {
		_ = e.send("failed", "") // the browser connects again
	}
}

// pollPeriod is the time between two reads of the state for a page.
const pollPeriod = 2 * time.Second

// poll answers a request with events that send sends again and again.
func (c *Console) poll(w http.ResponseWriter, r *http.Request, send func(*events) error) {
	c.stream(w, r, func(e *events) error {
		ticker := time.NewTicker(pollPeriod)
		defer ticker.Stop()
		for {
			if err := send(e); err != nil {
				return err
			}
			select {
			case <-ticker.C:
			case <-e.ctx.Done():
				return context.Cause(e.ctx)
			}
		}
	})
}

// sendRendered sends a part of a page as the event with its name, unless it has not changed.
func (c *Console) sendRendered(e *events, page, part string, body any) error {
	content, err := c.render(page, part, body)
	if err != nil {
		return err
	}
	return e.sendChanged(part, string(content))
}

// errDone ends a stream that has sent all of its events.
var errDone = errors.New("all events were sent")

// send sends an event. Data that was rendered by [Console.render] is visible; other data has no text
// of the server.
func (e *events) send(name, data string) error {
	_ = e.to.SetWriteDeadline(time.Now().Add(writePatience))
	var b strings.Builder
	fmt.Fprintf(&b, "event: %s\n", name)
	for line := range strings.SplitSeq(data, "\n") {
		b.WriteString("data: ")
		b.WriteString(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	if _, err := e.w.Write([]byte(b.String())); err != nil {
		return err
	}
	return e.to.Flush()
}

// sendChanged sends an event unless the last one with its name had the same data.
func (e *events) sendChanged(name, data string) error {
	if last, ok := e.sent[name]; ok && last == data {
		return nil
	}
	e.sent[name] = data
	return e.send(name, data)
}
