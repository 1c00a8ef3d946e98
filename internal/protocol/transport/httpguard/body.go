package httpguard

import (
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"
)

// checkContent returns a rejection for a body that the server does not accept,
// or nil. It reads only the headers.
func (g *Guard) checkContent(r *http.Request) *rejection {
	if rej := g.checkBody(r); rej != nil {
		return rej
	}
	if r.Method == http.MethodPost && !IsJSON(r.Header) {
		return &notJSON
	}
	return nil
}

// checkBody is checkContent for a body of any type.
func (g *Guard) checkBody(r *http.Request) *rejection {
	for _, coding := range r.Header["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			return &encodedBody
		}
	}
	if r.ContentLength > g.maxBody {
		return &g.tooLarge
	}
	return nil
}

// IsJSON reports whether the media type of a body is application/json, in
// UTF-8. A form, or a cross-site script without a preflight request, cannot
// send that type.
func IsJSON(h http.Header) bool {
	values := h["Content-Type"]
	if len(values) != 1 {
		return false
	}
	switch values[0] {
	case "application/json", "application/json; charset=utf-8", "application/json;charset=utf-8":
		return true // without parsing
	}
	media, params, err := mime.ParseMediaType(values[0])
	if err != nil || media != "application/json" {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

// rejectedBodyTimeout bounds the body of a rejected request: the server reads
// it before it answers, so that the connection can be reused.
const rejectedBodyTimeout = time.Second

// limitBody bounds the body of a request in size, time and budget. The caller
// must call [limitedBody.release] after serving the request.
func (g *Guard) limitBody(w http.ResponseWriter, r *http.Request, rejected bool) *limitedBody {
	limit := g.bodyTimeout
	if rejected {
		limit = min(limit, rejectedBodyTimeout)
	}
	b := &limitedBody{
		ReadCloser: r.Body, raw: r.Body, timer: g.timer, deadline: time.Now().Add(limit),
		control: *http.NewResponseController(w), hold: Hold{budget: g.bodies, client: ClientOf(r, nil)},
	}
	b.hold.owner = b
	if r.ContentLength < 0 {
		// A body with a length has exactly this length, which is already checked.
		b.ReadCloser = http.MaxBytesReader(w, r.Body, g.maxBody)
	}
	g.timer.add(b)
	r.Body = b
	return b
}

// limitedBody reserves budget for the bytes that are read from it, within its
// time. The connection has a read deadline only after that time, or when
// nothing reads it: after the body, a read returns the next request or a
// disconnect.
type limitedBody struct {
	io.ReadCloser
	raw      io.Reader // the body without limits
	timer    *bodyTimer
	deadline time.Time
	control  http.ResponseController
	hold     Hold
	complete bool // read to its end
	retained bool // the budget stays reserved after the request
}

// release returns the budget, unless it is retained. The server reads the rest
// of the body within the same time.
func (b *limitedBody) release() {
	if b.timer.remove(b) {
		// A writer without deadlines has no connection to block.
		_ = b.control.SetReadDeadline(b.deadline)
	}
	if !b.retained {
		b.hold.ReleaseAll()
	}
}

// Abort makes reading the body fail, unless it is complete.
func (b *limitedBody) Abort() { b.timer.abort(b) }

// RetainBody keeps the budget of a body reserved after its request has been
// served, until release is called. Only the handler may call it, after reading the
// body. A body that passed no guard reserves nothing.
func RetainBody(r *http.Request) (release func()) {
	b, ok := r.Body.(*limitedBody)
	if !ok {
		return func() {}
	}
	b.retained = true
	return b.hold.ReleaseAll
}

// ReleaseBody returns the budget of a body when its request has been served
// while the handler continues. It may be called once the handler has read the
// body.
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
			// It completed just when its time ended.
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
	// lingerTimeout and lingerBytes bound the part of a body that is read after
	// the response. lingerIdleTimeout bounds the time without any data.
	lingerTimeout     = 10 * time.Second
	lingerBytes       = 64 << 20
	lingerIdleTimeout = 2 * time.Second
)

// linger reads and discards the rest of a body after an early response. Many
// clients send the whole body before they read the response, and would get a
// connection reset instead.
func (b *limitedBody) linger(w http.ResponseWriter, r *http.Request) {
	if b.complete || r.ProtoMajor != 1 || r.Header["Expect"] != nil || r.Header["Upgrade"] != nil || !b.timer.remove(b) && !b.hold.Lost() {
		return // or nothing more arrives
	}
	b.hold.ReleaseAll()
	// The server reads a part of the body itself before it sends the response.
	now := time.Now()
	if before := now.Add(rejectedBodyTimeout); before.Before(b.deadline) {
		b.deadline = before
	}
	if b.control.SetReadDeadline(b.deadline) != nil || b.control.Flush() != nil {
		return // there is no connection
	}
	_, _ = io.CopyN(io.Discard, &lingerReader{b, now.Add(lingerTimeout)}, lingerBytes)
}

// lingerReader reads a body until it ends, pauses, or takes too long.
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

// bodyTimer aborts bodies that take too long. Most bodies are there at once, so
// it checks the others at intervals instead of setting a deadline for each.
type bodyTimer struct {
	interval time.Duration // fixed at creation

	mu     sync.Mutex
	bodies map[*limitedBody]struct{} // incomplete bodies
	timer  *time.Timer
	armed  bool
}

// newBodyTimer returns a timer for bodies with the maximum duration. It is late
// by at most an eighth of that, and at most a second.
func newBodyTimer(limit time.Duration) *bodyTimer {
	t := &bodyTimer{interval: min(max(limit/8, time.Millisecond), time.Second), bodies: map[*limitedBody]struct{}{}}
	t.timer = time.AfterFunc(time.Hour, t.check)
	t.timer.Stop()
	return t
}

func (t *bodyTimer) add(b *limitedBody) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bodies[b] = struct{}{}
	if !t.armed {
		t.armed = true
		t.timer.Reset(t.interval)
	}
}

// remove reports whether the body was still registered: neither removed nor
// aborted before.
func (t *bodyTimer) remove(b *limitedBody) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.bodies[b]
	delete(t.bodies, b)
	return ok
}

// abort aborts a body, unless it is complete or was aborted before.
func (t *bodyTimer) abort(b *limitedBody) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.bodies[b]; ok {
		t.abortLocked(b, time.Now())
	}
}

// abortLocked makes reading a body fail. The caller holds mu, so that no other
// request of the connection is affected.
func (t *bodyTimer) abortLocked(b *limitedBody, now time.Time) {
	delete(t.bodies, b)
	_ = b.control.SetReadDeadline(now)
}

// check aborts the bodies that ran out of time. It is the function of timer,
// which is stopped while there are no bodies.
func (t *bodyTimer) check() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for b := range t.bodies {
		if now.After(b.deadline) || b.hold.stalled(now) >= progressTimeout {
			t.abortLocked(b, now)
		}
	}
	if t.armed = len(t.bodies) > 0; t.armed {
		t.timer.Reset(t.interval)
	}
}
