package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// tokenKey is the member of _meta that names a request (2025-11-25 basic/utilities/
// progress). Every request that the wire has a call for bears one.
const tokenKey = "progressToken"

// wire watches the messages of one connection in both directions. It is safe for
// concurrent use.
type wire struct {
	limits jsonguard.Limits
	may    Asks
	// changed is told of what the server says of itself: that a list has changed, by its
	// method, and of a resource its URI.
	changed func(method, uri string)
	health  breaker
	pace    *rate.Limiter
	ready   atomic.Bool // the handshake is over
	// owed holds a token for each request of the server that has no answer yet, and that no
	// client is asked for.
	owed chan struct{}
	// over is done, and so dead closed, when the connection cannot be used any more.
	over context.Context
	end  context.CancelFunc
	dead <-chan struct{}

	mu sync.Mutex
	// calls are those that have not ended, by their tokens, and sent those whose requests
	// have been sent, by the JSON of their ids.
	calls map[string]*Call
	sent  map[string]*Call
	// asked are requests of the server that have not been answered, by their ids.
	asked map[any]*demand
	cause error // why the connection cannot be used any more
	// running are those calls, and what is left of them when they have ended. None is added
	// once there is a cause.
	running sync.WaitGroup
}

func newWire(limits jsonguard.Limits, may Asks, changed func(method, uri string)) *wire {
	over, end := context.WithCancel(context.Background())
	return &wire{
		limits: limits, may: may, changed: changed, pace: rate.NewLimiter(rate.Every(paceEach), paceBurst), owed: make(chan struct{}, maxOwed), over: over, end: end, dead: over.Done(),
		calls: map[string]*Call{}, sent: map[string]*Call{}, asked: map[any]*demand{},
	}
}

// The bounds of messages of a server that answer no call: how many at once, and how
// often. More are read later, which holds up that server alone.
const (
	paceBurst = 1000
	paceEach  = time.Millisecond
)

// keepPace waits until one more such message may be read, or the connection is over.
func (w *wire) keepPace() { _ = w.pace.Wait(w.over) }

type message struct {
	id, result, params, fault json.RawMessage
	method                    string
}

// errNoMessage says that JSON is no message of JSON-RPC.
var errNoMessage = errors.New("the server sends what is no message of JSON-RPC")

// parse takes a message apart that has passed the gate. Names count to the letter. Some
// servers write that what they tell has no id.
func parse(text []byte) (m message, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return m, errNoMessage
	}
	if method := members["method"]; method != nil && json.Unmarshal(method, &m.method) != nil {
		return m, errNoMessage
	}
	m.id, m.result, m.params, m.fault = members["id"], members["result"], members["params"], members["error"]
	if m.method != "" && string(m.id) == "null" {
		m.id = nil
	}
	return m, nil
}

// open begins to watch for the answer to a call, and has running wait for it. The error is
// why no call can be made any more.
func (w *wire) open(c *Call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause == nil {
		w.calls[c.token] = c
		w.running.Add(1)
	}
	return w.cause
}

func (w *wire) close(c *Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, c.token)
	for id, other := range w.sent {
		if other == c {
			delete(w.sent, id)
		}
	}
	w.forget(c)
}

// outgoing takes note of a message that the client sends. It returns the stream that is
// answered on, nil of an answer that is not to be sent, and of each answer to the server what
// to call once it has been sent, or is not.
func (w *wire) outgoing(text []byte) (on *stream, sent func()) {
	on = &stream{}
	m, err := parse(text)
	switch {
	case err != nil || m.id == nil:
		return on, nil
	case m.method == "":
		wanted, sent := w.settle(m.id)
		if !wanted {
			on = nil
		}
		return on, sent
	}
	on.answers = idOf(m.id)
	token := tokenOf(m.params, "_meta", tokenKey)
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.calls[token]; c != nil {
		w.sent[string(m.id)] = c
		c.sent.Store(true)
		on.of = c
	}
	return on, nil
}

// tokenOf returns the JSON of a member within objects, "" where there is none.
func tokenOf(value json.RawMessage, path ...string) string {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			return ""
		}
		value = members[name]
	}
	return string(value)
}

// incoming takes in what the server sends on a stream. It returns what the client library
// is to see of it, nil for nothing. An error ends the call, or the connection where the
// stream is no call's.
func (w *wire) incoming(text []byte, on *stream) ([]byte, error) {
	m, err := w.pass(text)
	if err != nil {
		return nil, err
	}
	switch {
	case m.method == "" && m.id != nil && m.fault == nil && on.listens:
		w.keepPace()
		return nil, nil // which says that the stream ends
	case m.method == "" && m.id != nil:
		on.took(idOf(m.id))
		return w.response(m, text), nil
	case m.method != "" && m.id != nil:
		w.keepPace()
		return w.request(m, on)
	case m.method != "":
		w.keepPace()
		return w.notification(m, text, on.of), nil
	}
	return nil, errNoMessage
}

// pass lets a message through the gate, and takes it apart.
func (w *wire) pass(text []byte) (message, error) {
	if err := jsonguard.Check(text, w.limits); err != nil {
		return message{}, fmt.Errorf("the server sends what may not pass: %w", err)
	}
	return parse(text)
}

// response gives a result to its call. The client library learns that it has come, and
// sees those alone that no call waits for.
func (w *wire) response(m message, text []byte) []byte {
	w.mu.Lock()
	c := w.sent[string(m.id)]
	delete(w.sent, string(m.id))
	w.mu.Unlock()
	if c == nil {
		w.keepPace()
		return text // of its handshake, or to nothing: then it drops it
	}
	c.take(m)
	if m.fault != nil {
		return text
	}
	return []byte(`{"jsonrpc":"2.0","id":` + string(m.id) + `,"result":` + c.stub(m.result) + `}`)
}

// only returns the call that runs, nil when there are several. The lists that are read
// meanwhile, and completions, are calls of nobody who could be asked or told. Its caller
// holds mu.
func (w *wire) only() *Call {
	var only *Call
	for _, c := range w.calls {
		if !c.listens() {
			continue
		}
		if only != nil {
			return nil
		}
		only = c
	}
	return only
}

// notification tells who it is for.
func (w *wire) notification(m message, text []byte, of *Call) []byte {
	switch m.method {
	case "notifications/progress":
		w.mu.Lock()
		c := w.calls[tokenOf(m.params, tokenKey)]
		w.mu.Unlock()
		if c != nil && (of == nil || of == c) {
			c.progress(m.params)
		}
	case "notifications/message":
		if of == nil {
			w.mu.Lock()
			of = w.only()
			w.mu.Unlock()
		}
		if of != nil {
			of.log(m.params)
		}
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		w.changed(m.method, "")
	case methodUpdated:
		var params struct{ URI string }
		if json.Unmarshal(m.params, &params) == nil {
			w.changed(m.method, params.URI)
		}
	case methodCancelled:
		w.withdraw(idOf(json.RawMessage(tokenOf(m.params, "requestId"))))
		return text
	case "notifications/subscriptions/acknowledged":
		return text
	}
	return nil // of all others the client library wants to know nothing
}

// judge takes note of how a call has ended: by its cause if it was cancelled, and with the
// error. It gives the connection up when it is of no use.
func (w *wire) judge(c *Call, cause, err error) {
	_, cut := cause.(streamError)
	var enough bool
	switch {
	case c.answered():
		w.health.answers()
	case !c.sent.Load(), isTooMuch(err):
	case cut, cause == nil:
		enough = w.health.fails()
	case errors.Is(cause, context.DeadlineExceeded):
		enough = w.health.waits(c.began)
	}
	if enough {
		w.fail(ErrFailing)
	}
}

func (w *wire) fail(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause != nil {
		return
	}
	w.cause = cause
	w.end()
	for _, c := range w.calls {
		c.cancel(cause)
	}
}

// failure is why the connection has ended; nil while it has not.
func (w *wire) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause
}

// maxFailures is how many calls fail in a row before a connection is given up.
const maxFailures = 5

// ErrFailing is why the calls of a connection end whose calls have failed one after the
// other.
var ErrFailing = errors.New("calls of the server have failed one after the other")

// errTooMuch marks what a server sends that is more than may pass: it is alive, and what
// it answers to another call may be less.
var errTooMuch = errors.New("more than may pass")

// breaker counts how calls end that a connection has been of no use to. It is safe for
// concurrent use.
type breaker struct {
	heard atomic.Uint64 // counts what comes of the server, of whatever kind

	mu sync.Mutex
	// failed are calls without an answer since the last that had one. silent are calls whose
	// time was over and that have all begun since the server was heard for the last time,
	// which was at the time since.
	failed, silent int
	since          uint64
}

func (b *breaker) answers() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed, b.silent = 0, 0
}

// fails notes that a call has come to nothing, and reports whether that is enough.
func (b *breaker) fails() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed++
	return b.failed >= maxFailures
}

// waits notes that the time of a call was over which began when so much had been heard,
// and reports whether that is enough. A server that talks may be slow.
func (b *breaker) waits(began uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heard.Load() != began {
		return false
	}
	if b.since != began {
		b.since, b.silent = began, 0
	}
	b.silent++
	return b.silent >= maxFailures
}

// listen returns what is read from the server, of which the breaker hears.
func (b *breaker) listen(r io.ReadCloser) io.ReadCloser { return &heard{r, b} }

type heard struct {
	io.ReadCloser
	by *breaker
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if n > 0 {
		h.by.heard.Add(1)
	}
	return n, err
}

// isTooMuch reports whether a server was refused for how much it sends.
func isTooMuch(err error) bool {
	refused, ok := errors.AsType[*jsonguard.Error](err)
	return errors.Is(err, errTooMuch) || ok && (refused.Kind == jsonguard.TooLarge || refused.Kind == jsonguard.TooDeep || refused.Kind == jsonguard.TooMany)
}
