package httpguard

import (
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"
)

// checkContent returns why the body of a request may not enter, or nil. Only
// what the headers say is looked at.
func (g *Guard) checkContent(r *http.Request) *rejection {
	for _, coding := range r.Header["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			return &encodedBody
		}
	}
	if r.ContentLength > g.maxBody {
		return &g.tooLarge
	}
	if r.Method == http.MethodPost && !IsJSON(r.Header) {
		return &notJSON
	}
	return nil
}

// IsJSON reports whether the media type of a body is application/json, in UTF-8. A form,
// or a script of another site that does not ask first, cannot send that type.
func IsJSON(h http.Header) bool {
	values := h["Content-Type"]
	if len(values) != 1 {
		return false
	}
	switch values[0] {
	case "application/json", "application/json; charset=utf-8", "application/json;charset=utf-8":
		return true // without the work of parsing
	}
	media, params, err := mime.ParseMediaType(values[0])
	if err != nil || media != "application/json" {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

// dropTime is how long the body of a refused request may take: the server
// reads it before it answers, so that the connection can be used again.
const rejectedBodyTimeout = time.Second

// bound ends the body of a request at the bounds of size, time and the budget.
// [boundBody.leave] must be called when the request has been served.
func (g *Guard) limitBody(w http.ResponseWriter, r *http.Request, refused bool) *limitedBody {
	limit := g.bodyTimeout
	if refused {
		limit = min(limit, rejectedBodyTimeout)
	}
	b := &limitedBody{
		ReadCloser: r.Body, raw: r.Body, timer: g.timer, deadline: time.Now().Add(limit),
		control: *http.NewResponseController(w), hold: Hold{budget: g.bodies, client: ClientOf(r, nil)},
	}
	b.hold.owner = b
	if r.ContentLength < 0 {
		// Any other is as long as it says, which has been looked at.
		b.ReadCloser = http.MaxBytesReader(w, r.Body, g.maxBody)
	}
	g.timer.add(b)
	r.Body = b
	return b
}

// boundBody takes room for what is read of it, within its time. The connection
// has a read deadline only once that is up, or nobody reads on: what is read
// behind the body is the next request, or that the client is gone.
type limitedBody struct {
	io.ReadCloser
	raw      io.Reader // the body without bounds
	timer    *bodyTimer
	deadline time.Time
	control  http.ResponseController
	hold     Hold
	complete bool // all of it was read
	retained bool // the room stays taken when the request has been served
}

// leave gives back the room, unless somebody keeps it. What has not come of the
// body is read by the server, within the same time.
func (b *limitedBody) release() {
	if b.timer.remove(b) {
		// Where the writer knows no deadlines there is no connection to hold up.
		_ = b.control.SetReadDeadline(b.deadline)
	}
	if !b.retained {
		b.hold.ReleaseAll()
	}
}

// Cut has who reads the body give up, unless it has come whole.
func (b *limitedBody) Abort() { b.timer.abort(b) }

// Keep has the body of a request, which its handler has read, take its room
// until give is called, though the request be served before. Only the handler
// may call Keep; a body that passed no gate takes no room.
func RetainBody(r *http.Request) (give func()) {
	b, ok := r.Body.(*limitedBody)
	if !ok {
		return func() {}
	}
	b.retained = true
	return b.hold.ReleaseAll
}

// Leave gives back the room of a body, when its request has been served though
// the handler goes on. Anyone may call it once the handler has read the body.
func ReleaseBody(body io.ReadCloser) {
	if b, ok := body.(*limitedBody); ok {
		b.hold.ReleaseAll()
	}
}

// Read reads from the body.
func (b *limitedBody) Read(p []byte) (int, error) {
	b.hold.start()
	n, err := b.ReadCloser.Read(p)
	if !b.hold.Take(n) {
		return 0, ErrOverBudget
	}
	b.hold.Progress(n)
	if err == io.EOF {
		b.complete = true
		if !b.timer.remove(b) {
			// It came whole when its time was just up.
			_ = b.control.SetReadDeadline(time.Time{})
		}
		if !b.hold.Pin() {
			return 0, ErrOverBudget
		}
	}
	if err != nil && b.hold.Lost() {
		return 0, ErrOverBudget
	}
	return n, err
}

const (
	// lingerTime and lingerBytes bound what is read of a body after its answer, and
	// lingerPause for how long nothing may come.
	lingerTimeout     = 10 * time.Second
	lingerBytes       = 64 << 20
	lingerIdleTimeout = 2 * time.Second
)

// linger reads and drops what still comes of a body that was answered before it was read
// to its end. Many clients read no answer before they have sent all, and would see the
// connection reset instead of it.
func (b *limitedBody) linger(w http.ResponseWriter, r *http.Request) {
	if b.complete || r.ProtoMajor != 1 || r.Header["Expect"] != nil || r.Header["Upgrade"] != nil || !b.timer.remove(b) && !b.hold.Lost() {
		return // or nothing more comes
	}
	b.hold.ReleaseAll()
	// The server reads a part of the body itself before it sends the answer.
	now := time.Now()
	if before := now.Add(rejectedBodyTimeout); before.Before(b.deadline) {
		b.deadline = before
	}
	if b.control.SetReadDeadline(b.deadline) != nil || b.control.Flush() != nil {
		return // there is no connection
	}
	_, _ = io.CopyN(io.Discard, &lingerReader{b, now.Add(lingerTimeout)}, lingerBytes)
}

// lingering reads what comes of a body until it ends, pauses, or takes too long.
type lingerReader struct {
	body  *limitedBody
	until time.Time
}

func (l *lingerReader) Read(p []byte) (int, error) {
	next := time.Now().Add(lingerIdleTimeout)
	if l.until.Before(next) {
		next = l.until
	}
	_ = l.body.control.SetReadDeadline(next)
	return l.body.raw.Read(p)
}

// clock ends bodies that take too long to come. Most are there at once, so that
// it looks at what is left now and then, instead of setting a deadline for each.
type bodyTimer struct {
	interval time.Duration // fixed at creation

	mu     sync.Mutex
	bodies map[*limitedBody]struct{} // that have not come whole
	timer  *time.Timer
	armed  bool
}

// newClock returns a clock for bodies that may take so long. It is late by an
// eighth of that at most, and never by more than a second.
func newBodyTimer(most time.Duration) *bodyTimer {
	c := &bodyTimer{interval: min(max(most/8, time.Millisecond), time.Second), bodies: map[*limitedBody]struct{}{}}
	c.timer = time.AfterFunc(time.Hour, c.check)
	c.timer.Stop()
	return c
}

func (c *bodyTimer) add(b *limitedBody) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies[b] = struct{}{}
	if !c.armed {
		c.armed = true
		c.timer.Reset(c.interval)
	}
}

// remove reports whether the body was still looked at: it had not been removed
// before, nor ended.
func (c *bodyTimer) remove(b *limitedBody) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.bodies[b]
	delete(c.bodies, b)
	return ok
}

// end ends a body, unless it has come whole or was ended before.
func (c *bodyTimer) abort(b *limitedBody) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.bodies[b]; ok {
		c.abortLocked(b, time.Now())
	}
}

// cut has reading a body fail; mu is held, so that it hits no request but this one.
func (c *bodyTimer) abortLocked(b *limitedBody, now time.Time) {
	delete(c.bodies, b)
	_ = b.control.SetReadDeadline(now)
}

// look ends the bodies whose time is up. It is the function of timer, which
// rests while there are no bodies.
func (c *bodyTimer) check() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for b := range c.bodies {
		if now.After(b.deadline) || b.hold.stalled(now) >= progressTimeout {
			c.abortLocked(b, now)
		}
	}
	if c.armed = len(c.bodies) > 0; c.armed {
		c.timer.Reset(c.interval)
	}
}
