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

// tokenKey is the member of _meta that identifies a request (2025-11-25 basic/utilities/
// progress). The request of every call has one.
const tokenKey = "progressToken"

// messageFilter inspects the messages of one connection in both directions. It is safe for
// concurrent use.
type messageFilter struct {
	limits      jsonguard.Limits
	inputPolicy InputPolicy
	// changed receives change notifications: the method for a changed list, and the URI of an
	// updated resource.
	changed func(method, uri string)
	breaker circuitBreaker
	rate    *rate.Limiter
	ready   atomic.Bool // the handshake is done
	// slots holds a token for each unanswered request of the server that goes to no client.
	slots chan struct{}
	// ctx is done, and done closed, when the connection can no longer be used.
	ctx    context.Context
	cancel context.CancelFunc
	done   <-chan struct{}

	mu sync.Mutex
	// calls are the running calls by token. sent are the calls with sent requests, by JSON of
	// the request id.
	calls map[string]*Call
	sent  map[string]*Call
	// requests are the unanswered requests of the server, by id.
	requests map[any]*serverRequest
	cause    error // why the connection can no longer be used
	// running waits for the calls and their cleanup. No call is added once there is a cause.
	running sync.WaitGroup
}

func newMessageFilter(limits jsonguard.Limits, policy InputPolicy, changed func(method, uri string)) *messageFilter {
	ctx, cancel := context.WithCancel(context.Background())
	return &messageFilter{
		limits: limits, inputPolicy: policy, changed: changed, rate: rate.NewLimiter(rate.Every(throttleInterval), throttleBurst), slots: make(chan struct{}, maxServerRequests), ctx: ctx, cancel: cancel, done: ctx.Done(),
		calls: map[string]*Call{}, sent: map[string]*Call{}, requests: map[any]*serverRequest{},
	}
}

// The rate limit of messages that answer no call. Further messages are read later, which delays
// this server alone.
const (
	throttleBurst    = 1000
	throttleInterval = time.Millisecond
)

// throttle waits until the rate limit admits one more message, or the connection ends.
func (f *messageFilter) throttle() { _ = f.rate.Wait(f.ctx) }

type message struct {
	id, result, params, fault json.RawMessage
	method                    string
}

// errNotJSONRPC rejects JSON that is not a JSON-RPC message.
var errNotJSONRPC = errors.New("the server sent an invalid JSON-RPC message")

// parse decodes a message that has passed the guard. Names are case-sensitive. Some servers
// send notifications with a null id.
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

// open registers a call and adds it to running. The error says why the connection cannot make
// calls.
func (f *messageFilter) open(c *Call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause == nil {
		f.calls[c.token] = c
		f.running.Add(1)
	}
	return f.cause
}

func (f *messageFilter) close(c *Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.calls, c.token)
	for id, other := range f.sent {
		if other == c {
			delete(f.sent, id)
		}
	}
	f.detachRequests(c)
}

// outgoing registers a message of the client. It returns the stream of its response, or nil for
// an answer that must not be sent. For an answer, call sent once it has been sent or cannot be.
func (f *messageFilter) outgoing(text []byte) (s *stream, sent func()) {
	s = &stream{}
	m, err := parse(text)
	switch {
	case err != nil || m.id == nil:
		return s, nil
	case m.method == "":
		wanted, sent := f.answering(m.id)
		if !wanted {
			s = nil
		}
		return s, sent
	}
	s.answers = idOf(m.id)
	token := tokenOf(m.params, "_meta", tokenKey)
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.calls[token]; c != nil {
		f.sent[string(m.id)] = c
		c.sent.Store(true)
		s.call = c
	}
	return s, nil
}

// tokenOf returns the JSON of a nested member, or "".
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

// incoming handles a message of the server. It returns what the client library sees, or nil. An
// error ends the call of the stream, or the connection if the stream is shared.
func (f *messageFilter) incoming(text []byte, s *stream) ([]byte, error) {
	m, err := f.check(text)
	if err != nil {
		return nil, err
	}
	switch {
	case m.method == "" && m.id != nil && m.fault == nil && s.isListen:
		f.throttle()
		return nil, nil // it announces the end of the stream
	case m.method == "" && m.id != nil:
		s.noteResponse(idOf(m.id))
		return f.response(m, text), nil
	case m.method != "" && m.id != nil:
		f.throttle()
		return f.serverRequest(m, s)
	case m.method != "":
		f.throttle()
		return f.notification(m, text, s.call), nil
	}
	return nil, errNotJSONRPC
}

// check validates a message and decodes it.
func (f *messageFilter) check(text []byte) (message, error) {
	if err := jsonguard.Check(text, f.limits); err != nil {
		return message{}, fmt.Errorf("the server sent a message that is rejected: %w", err)
	}
	return parse(text)
}

// response passes a result to its call. The client library sees a placeholder, or the original
// if no call waits for it.
func (f *messageFilter) response(m message, text []byte) []byte {
	f.mu.Lock()
	c := f.sent[string(m.id)]
	delete(f.sent, string(m.id))
	f.mu.Unlock()
	if c == nil {
		f.throttle()
		return text // part of the handshake, or dropped by the library
	}
	c.setResponse(m)
	if m.fault != nil {
		return text
	}
	return []byte(`{"jsonrpc":"2.0","id":` + string(m.id) + `,"result":` + c.placeholder(m.result) + `}`)
}

// soleCall returns the only running call, or nil if there are several. Lists and completions do
// not count: they have no client for input requests and notifications. The caller holds mu.
func (f *messageFilter) soleCall() *Call {
	var only *Call
	for _, c := range f.calls {
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

// notification routes a notification.
func (f *messageFilter) notification(m message, text []byte, c *Call) []byte {
	switch m.method {
	case "notifications/progress":
		f.mu.Lock()
		sender := f.calls[tokenOf(m.params, tokenKey)]
		f.mu.Unlock()
		if sender != nil && (c == nil || c == sender) {
			sender.progress(m.params)
		}
	case "notifications/message":
		if c == nil {
			f.mu.Lock()
			c = f.soleCall()
			f.mu.Unlock()
		}
		if c != nil {
			c.log(m.params)
		}
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		f.changed(m.method, "")
	case methodUpdated:
		var params struct{ URI string }
		if json.Unmarshal(m.params, &params) == nil {
			f.changed(m.method, params.URI)
		}
	case methodCancelled:
		f.markWithdrawn(idOf(json.RawMessage(tokenOf(m.params, "requestId"))))
		return text
	case "notifications/subscriptions/acknowledged":
		return text
	}
	return nil // the client library needs no others
}

// recordOutcome records how a call ended: cause is set if it was cancelled. It ends the
// connection if too many calls have failed.
func (f *messageFilter) recordOutcome(c *Call, cause, err error) {
	_, cut := cause.(streamError)
	var enough bool
	switch {
	case c.answered():
		f.breaker.recordSuccess()
	case !c.sent.Load(), isOversized(err):
	case cut, cause == nil:
		enough = f.breaker.recordFailure()
	case errors.Is(cause, context.DeadlineExceeded):
		enough = f.breaker.recordTimeout(c.readsAtStart)
	}
	if enough {
		f.fail(ErrCircuitOpen)
	}
}

func (f *messageFilter) fail(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause != nil {
		return
	}
	f.cause = cause
	f.cancel()
	for _, c := range f.calls {
		c.cancel(cause)
	}
}

// failure says why the connection has ended; nil while it has not.
func (f *messageFilter) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cause
}

// maxFailures is the number of consecutive failures that opens the circuit breaker.
const maxFailures = 5

// ErrCircuitOpen ends the calls of a connection after maxFailures.
var ErrCircuitOpen = errors.New("too many calls to the server have failed in a row")

// errOversized marks data beyond a limit: the server is alive, and the next response may be
// smaller.
var errOversized = errors.New("more than may pass")

// circuitBreaker counts consecutive failures of a connection. It is safe for concurrent use.
type circuitBreaker struct {
	reads atomic.Uint64 // counts reads from the server of any kind

	mu sync.Mutex
	// failed counts failures since the last response. timeouts counts calls that timed out
	// without any read since they started; all of them started at timeoutsSince.
	failed, timeouts int
	timeoutsSince    uint64
}

func (b *circuitBreaker) recordSuccess() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed, b.timeouts = 0, 0
}

// recordFailure counts a failed call, and reports whether the limit is reached.
func (b *circuitBreaker) recordFailure() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed++
	return b.failed >= maxFailures
}

// recordTimeout counts a timed out call that started at a count of reads, and reports whether
// the limit is reached. A server that sends data may be slow.
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

// countReads returns a reader that counts reads from the server.
func (b *circuitBreaker) countReads(r io.ReadCloser) io.ReadCloser { return &countingReader{r, b} }

type countingReader struct {
	io.ReadCloser
	by *circuitBreaker
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if n > 0 {
		r.by.reads.Add(1)
	}
	return n, err
}

// isOversized reports whether data of a server was rejected for its size.
func isOversized(err error) bool {
	rejection, ok := errors.AsType[*jsonguard.Error](err)
	return errors.Is(err, errOversized) || ok && (rejection.Kind == jsonguard.TooLarge || rejection.Kind == jsonguard.TooDeep || rejection.Kind == jsonguard.TooMany)
}
