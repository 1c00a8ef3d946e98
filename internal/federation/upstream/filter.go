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
type messageFilter struct {
	limits      jsonguard.Limits
	inputPolicy InputPolicy
	// changed is told of what the server says of itself: that a list has changed, by its
	// method, and of a resource its URI.
	changed func(method, uri string)
	breaker circuitBreaker
	rate    *rate.Limiter
	ready   atomic.Bool // the handshake is over
	// owed holds a token for each request of the server that has no answer yet, and that no
	// client is asked for.
	slots chan struct{}
	// over is done, and so dead closed, when the connection cannot be used any more.
	ctx    context.Context
	cancel context.CancelFunc
	done   <-chan struct{}

	mu sync.Mutex
	// calls are those that have not ended, by their tokens, and sent those whose requests
	// have been sent, by the JSON of their ids.
	calls map[string]*Call
	sent  map[string]*Call
	// asked are requests of the server that have not been answered, by their ids.
	requests map[any]*serverRequest
	cause    error // why the connection cannot be used any more
	// running are those calls, and what is left of them when they have ended. None is added
	// once there is a cause.
	running sync.WaitGroup
}

func newMessageFilter(limits jsonguard.Limits, may InputPolicy, changed func(method, uri string)) *messageFilter {
	over, end := context.WithCancel(context.Background())
	return &messageFilter{
		limits: limits, inputPolicy: may, changed: changed, rate: rate.NewLimiter(rate.Every(throttleInterval), throttleBurst), slots: make(chan struct{}, maxServerRequests), ctx: over, cancel: end, done: over.Done(),
		calls: map[string]*Call{}, sent: map[string]*Call{}, requests: map[any]*serverRequest{},
	}
}

// The bounds of messages of a server that answer no call: how many at once, and how
// often. More are read later, which holds up that server alone.
const (
	throttleBurst    = 1000
	throttleInterval = time.Millisecond
)

// keepPace waits until one more such message may be read, or the connection is over.
func (w *messageFilter) throttle() { _ = w.rate.Wait(w.ctx) }

type message struct {
	id, result, params, fault json.RawMessage
	method                    string
}

// errNoMessage says that JSON is no message of JSON-RPC.
var errNotJSONRPC = errors.New("the server sends what is no message of JSON-RPC")

// parse takes a message apart that has passed the gate. Names count to the letter. Some
// servers write that what they tell has no id.
func parse(text []byte) (m message, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return m, errNotJSONRPC
	}
	if method := members["method"]; method != nil && json.Unmarshal(method, &m.method) != nil {
		return m, errNotJSONRPC
	}
	m.id, m.result, m.params, m.fault = members["id"], members["result"], members["params"], members["error"]
	if m.method != "" && string(m.id) == "null" {
		m.id = nil
	}
	return m, nil
}

// open begins to watch for the answer to a call, and has running wait for it. The error is
// why no call can be made any more.
func (w *messageFilter) open(c *Call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause == nil {
		w.calls[c.token] = c
		w.running.Add(1)
	}
	return w.cause
}

func (w *messageFilter) close(c *Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, c.token)
	for id, other := range w.sent {
		if other == c {
			delete(w.sent, id)
		}
	}
	w.detachRequests(c)
}

// outgoing takes note of a message that the client sends. It returns the stream that is
// answered on, nil of an answer that is not to be sent, and of each answer to the server what
// to call once it has been sent, or is not.
func (w *messageFilter) outgoing(text []byte) (on *stream, sent func()) {
	on = &stream{}
	m, err := parse(text)
	switch {
	case err != nil || m.id == nil:
		return on, nil
	case m.method == "":
		wanted, sent := w.answering(m.id)
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
		on.call = c
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
func (w *messageFilter) incoming(text []byte, on *stream) ([]byte, error) {
	m, err := w.check(text)
	if err != nil {
		return nil, err
	}
	switch {
	case m.method == "" && m.id != nil && m.fault == nil && on.isListen:
		w.throttle()
		return nil, nil // which says that the stream ends
	case m.method == "" && m.id != nil:
		on.noteResponse(idOf(m.id))
		return w.response(m, text), nil
	case m.method != "" && m.id != nil:
		w.throttle()
		return w.serverRequest(m, on)
	case m.method != "":
		w.throttle()
		return w.notification(m, text, on.call), nil
	}
	return nil, errNotJSONRPC
}

// pass lets a message through the gate, and takes it apart.
func (w *messageFilter) check(text []byte) (message, error) {
	if err := jsonguard.Check(text, w.limits); err != nil {
		return message{}, fmt.Errorf("the server sends what may not pass: %w", err)
	}
	return parse(text)
}

// response gives a result to its call. The client library learns that it has come, and
// sees those alone that no call waits for.
func (w *messageFilter) response(m message, text []byte) []byte {
	w.mu.Lock()
	c := w.sent[string(m.id)]
	delete(w.sent, string(m.id))
	w.mu.Unlock()
	if c == nil {
		w.throttle()
		return text // of its handshake, or to nothing: then it drops it
	}
	c.setResponse(m)
	if m.fault != nil {
		return text
	}
	return []byte(`{"jsonrpc":"2.0","id":` + string(m.id) + `,"result":` + c.placeholder(m.result) + `}`)
}

// only returns the call that runs, nil when there are several. The lists that are read
// meanwhile, and completions, are calls of nobody who could be asked or told. Its caller
// holds mu.
func (w *messageFilter) soleCall() *Call {
	var only *Call
	for _, c := range w.calls {
		if !c.canNotify() {
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
func (w *messageFilter) notification(m message, text []byte, of *Call) []byte {
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
			of = w.soleCall()
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
		w.markWithdrawn(idOf(json.RawMessage(tokenOf(m.params, "requestId"))))
		return text
	case "notifications/subscriptions/acknowledged":
		return text
	}
	return nil // of all others the client library wants to know nothing
}

// judge takes note of how a call has ended: by its cause if it was cancelled, and with the
// error. It gives the connection up when it is of no use.
func (w *messageFilter) recordOutcome(c *Call, cause, err error) {
	_, cut := cause.(streamError)
	var enough bool
	switch {
	case c.answered():
		w.breaker.recordSuccess()
	case !c.sent.Load(), isOversized(err):
	case cut, cause == nil:
		enough = w.breaker.recordFailure()
	case errors.Is(cause, context.DeadlineExceeded):
		enough = w.breaker.recordTimeout(c.readsAtStart)
	}
	if enough {
		w.fail(ErrCircuitOpen)
	}
}

func (w *messageFilter) fail(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause != nil {
		return
	}
	w.cause = cause
	w.cancel()
	for _, c := range w.calls {
		c.cancel(cause)
	}
}

// failure is why the connection has ended; nil while it has not.
func (w *messageFilter) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause
}

// maxFailures is how many calls fail in a row before a connection is given up.
const maxFailures = 5

// ErrFailing is why the calls of a connection end whose calls have failed one after the
// other.
var ErrCircuitOpen = errors.New("calls of the server have failed one after the other")

// errTooMuch marks what a server sends that is more than may pass: it is alive, and what
// it answers to another call may be less.
var errOversized = errors.New("more than may pass")

// breaker counts how calls end that a connection has been of no use to. It is safe for
// concurrent use.
type circuitBreaker struct {
	reads atomic.Uint64 // counts what comes of the server, of whatever kind

	mu sync.Mutex
	// failed are calls without an answer since the last that had one. silent are calls whose
	// time was over and that have all begun since the server was heard for the last time,
	// which was at the time since.
	failed, timeouts int
	timeoutsSince    uint64
}

func (b *circuitBreaker) recordSuccess() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed, b.timeouts = 0, 0
}

// fails notes that a call has come to nothing, and reports whether that is enough.
func (b *circuitBreaker) recordFailure() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed++
	return b.failed >= maxFailures
}

// waits notes that the time of a call was over which began when so much had been heard,
// and reports whether that is enough. A server that talks may be slow.
func (b *circuitBreaker) recordTimeout(began uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reads.Load() != began {
		return false
	}
	if b.timeoutsSince != began {
		b.timeoutsSince, b.timeouts = began, 0
	}
	b.timeouts++
	return b.timeouts >= maxFailures
}

// listen returns what is read from the server, of which the breaker hears.
func (b *circuitBreaker) countReads(r io.ReadCloser) io.ReadCloser { return &countingReader{r, b} }

type countingReader struct {
	io.ReadCloser
	by *circuitBreaker
}

func (h *countingReader) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if n > 0 {
		h.by.reads.Add(1)
	}
	return n, err
}

// isTooMuch reports whether a server was refused for how much it sends.
func isOversized(err error) bool {
	refused, ok := errors.AsType[*jsonguard.Error](err)
	return errors.Is(err, errOversized) || ok && (refused.Kind == jsonguard.TooLarge || refused.Kind == jsonguard.TooDeep || refused.Kind == jsonguard.TooMany)
}
