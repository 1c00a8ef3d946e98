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
func (g *Gate) checkContent(r *http.Request) *refusal {
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
const dropTime = time.Second

// bound ends the body of a request at the bounds of size, time and the budget.
// [boundBody.leave] must be called when the request has been served.
func (g *Gate) bound(w http.ResponseWriter, r *http.Request, refused bool) *boundBody {
	limit := g.bodyTime
	if refused {
		limit = min(limit, dropTime)
	}
	b := &boundBody{
		ReadCloser: r.Body, raw: r.Body, clock: g.clock, until: time.Now().Add(limit),
		deadlines: *http.NewResponseController(w), hold: Hold{budget: g.bodies, client: ClientOf(r, nil)},
	}
	b.hold.owner = b
	if r.ContentLength < 0 {
		// Any other is as long as it says, which has been looked at.
		b.ReadCloser = http.MaxBytesReader(w, r.Body, g.maxBody)
	}
	g.clock.add(b)
	r.Body = b
	return b
}

// boundBody takes room for what is read of it, within its time. The connection
// has a read deadline only once that is up, or nobody reads on: what is read
// behind the body is the next request, or that the client is gone.
type boundBody struct {
	io.ReadCloser
	raw       io.Reader // the body without bounds
	clock     *clock
	until     time.Time
	deadlines http.ResponseController
	hold      Hold
	whole     bool // all of it was read
	kept      bool // the room stays taken when the request has been served
}

// leave gives back the room, unless somebody keeps it. What has not come of the
// body is read by the server, within the same time.
func (b *boundBody) leave() {
	if b.clock.remove(b) {
		// Where the writer knows no deadlines there is no connection to hold up.
		_ = b.deadlines.SetReadDeadline(b.until)
	}
	if !b.kept {
		b.hold.Give()
	}
}

// Cut has who reads the body give up, unless it has come whole.
func (b *boundBody) Cut() { b.clock.end(b) }

// Keep has the body of a request, which its handler has read, take its room
// until give is called, though the request be served before. Only the handler
// may call Keep; a body that passed no gate takes no room.
func Keep(r *http.Request) (give func()) {
	b, ok := r.Body.(*boundBody)
	if !ok {
		return func() {}
	}
	b.kept = true
	return b.hold.Give
}

// Leave gives back the room of a body, when its request has been served though
// the handler goes on. Anyone may call it once the handler has read the body.
func Leave(body io.ReadCloser) {
	if b, ok := body.(*boundBody); ok {
		b.hold.Give()
	}
}

// Read reads from the body.
func (b *boundBody) Read(p []byte) (int, error) {
	b.hold.begin()
	n, err := b.ReadCloser.Read(p)
	if !b.hold.Take(n) {
		return 0, ErrCrowded
	}
	b.hold.Move(n)
	if err == io.EOF {
		b.whole = true
		if !b.clock.remove(b) {
			// It came whole when its time was just up.
			_ = b.deadlines.SetReadDeadline(time.Time{})
		}
		if !b.hold.Pin() {
			return 0, ErrCrowded
		}
	}
	if err != nil && b.hold.Lost() {
		return 0, ErrCrowded
	}
	return n, err
}

const (
	// lingerTime and lingerBytes bound what is read of a body after its answer, and
	// lingerPause for how long nothing may come.
	lingerTime  = 10 * time.Second
	lingerBytes = 64 << 20
	lingerPause = 2 * time.Second
)

// linger reads and drops what still comes of a body that was answered before it was read
// to its end. Many clients read no answer before they have sent all, and would see the
// connection reset instead of it.
func (b *boundBody) linger(w http.ResponseWriter, r *http.Request) {
	if b.whole || r.ProtoMajor != 1 || r.Header["Expect"] != nil || r.Header["Upgrade"] != nil || !b.clock.remove(b) && !b.hold.Lost() {
		return // or nothing more comes
	}
	b.hold.Give()
	// The server reads a part of the body itself before it sends the answer.
	now := time.Now()
	if before := now.Add(dropTime); before.Before(b.until) {
		b.until = before
	}
	if b.deadlines.SetReadDeadline(b.until) != nil || b.deadlines.Flush() != nil {
		return // there is no connection
	}
	_, _ = io.CopyN(io.Discard, &lingering{b, now.Add(lingerTime)}, lingerBytes)
}

// lingering reads what comes of a body until it ends, pauses, or takes too long.
type lingering struct {
	body  *boundBody
	until time.Time
}

func (l *lingering) Read(p []byte) (int, error) {
	next := time.Now().Add(lingerPause)
	if l.until.Before(next) {
		next = l.until
	}
	_ = l.body.deadlines.SetReadDeadline(next)
	return l.body.raw.Read(p)
}

// clock ends bodies that take too long to come. Most are there at once, so that
// it looks at what is left now and then, instead of setting a deadline for each.
type clock struct {
	every time.Duration // fixed at creation

	mu     sync.Mutex
	bodies map[*boundBody]struct{} // that have not come whole
	timer  *time.Timer
	armed  bool
}

// newClock returns a clock for bodies that may take so long. It is late by an
// eighth of that at most, and never by more than a second.
func newClock(most time.Duration) *clock {
	c := &clock{every: min(max(most/8, time.Millisecond), time.Second), bodies: map[*boundBody]struct{}{}}
	c.timer = time.AfterFunc(time.Hour, c.look)
	c.timer.Stop()
	return c
}

func (c *clock) add(b *boundBody) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies[b] = struct{}{}
	if !c.armed {
		c.armed = true
		c.timer.Reset(c.every)
	}
}

// remove reports whether the body was still looked at: it had not been removed
// before, nor ended.
func (c *clock) remove(b *boundBody) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.bodies[b]
	delete(c.bodies, b)
	return ok
}

// end ends a body, unless it has come whole or was ended before.
func (c *clock) end(b *boundBody) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.bodies[b]; ok {
		c.cut(b, time.Now())
	}
}

// cut has reading a body fail; mu is held, so that it hits no request but this one.
func (c *clock) cut(b *boundBody, now time.Time) {
	delete(c.bodies, b)
	_ = b.deadlines.SetReadDeadline(now)
}

// look ends the bodies whose time is up. It is the function of timer, which
// rests while there are no bodies.
func (c *clock) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for b := range c.bodies {
		if now.After(b.until) || b.hold.stalled(now) >= slowTime {
			c.cut(b, now)
		}
	}
	if c.armed = len(c.bodies) > 0; c.armed {
		c.timer.Reset(c.every)
	}
}
