package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mcpd/mcpd/call"
)

// Call is a running call at a server.
type Call struct {
	// Fixed at creation.
	token        string // JSON of the progress token
	method       string
	cancel       context.CancelCauseFunc
	done         chan struct{} // closed when the call has ended
	readsAtStart uint64        // breaker.reads when the call started

	sent       atomic.Bool                  // the request has been written
	requestErr atomic.Pointer[requestError] // why the HTTP request failed

	unsentAnswers int // answers to the server's requests that are not sent; guarded by the filter

	mu          sync.Mutex
	listener    Listener
	hasResponse bool
	cancelErr   error // the cancellation cause before a response
	result      json.RawMessage
	fault       *call.RPCError
	err         error
	// pending are the input requests that wait for a response, in order.
	pending        []*pendingRequest
	lastKey        int
	pendingChanged chan struct{} // holds a token after pending has changed
}

func newCall(token int64, r Request, l Listener, cancel context.CancelCauseFunc) *Call {
	return &Call{
		token: strconv.Quote("mcpd-" + strconv.FormatInt(token, 36)), cancel: cancel, listener: l,
		done: make(chan struct{}), pendingChanged: make(chan struct{}, 1),
		method: r.Method,
	}
}

// canNotify reports whether the call may receive notifications and input requests before it
// ends.
func (c *Call) canNotify() bool {
	return c.method == MethodTool || c.method == MethodRead || c.method == MethodPrompt
}

// placeholderResults are empty results. The client library sees them instead of results that it
// does not handle.
var placeholderResults = map[string]string{
	MethodTool:                 `{"content":[]}`,
	MethodRead:                 `{"contents":[]}`,
	MethodPrompt:               `{"messages":[]}`,
	MethodComplete:             `{"completion":{"values":[]}}`,
	"prompts/list":             `{"prompts":[]}`,
	"resources/list":           `{"resources":[]}`,
	"resources/templates/list": `{"resourceTemplates":[]}`,
}

// placeholder returns the result that the client library sees. The library caches lists of
// tools, because their schemas decide the headers of calls. The placeholder drops ttlMs, so the
// library does not serve lists from that cache.
func (c *Call) placeholder(result json.RawMessage) string {
	if c.method != "tools/list" {
		return placeholderResults[c.method]
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(result, &members) != nil || members["tools"] == nil {
		return `{"tools":[]}`
	}
	return `{"tools":` + string(members["tools"]) + `}`
}

// setResponse stores the response of the server. It drops a response after a cancellation.
func (c *Call) setResponse(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasResponse || c.cancelErr != nil {
		return
	}
	c.hasResponse = true
	if m.fault == nil {
		c.result = m.result
		return
	}
	c.fault = &call.RPCError{}
	if json.Unmarshal(m.fault, c.fault) != nil {
		c.fault = &call.RPCError{Code: codeInternal, Message: "the server sent an invalid error"}
	}
}

// codeInternal is the code of an internal error (JSON-RPC 2.0 section 5.1).
const codeInternal = -32603

// end ends the call. err is used if there is no response.
func (c *Call) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hasResponse {
		if c.err = cmp.Or(c.cancelErr, err); c.err == nil {
			c.err = errors.New("the server did not respond")
		}
	}
	close(c.done)
}

func (c *Call) progress(params json.RawMessage) {
	var p struct {
		Progress float64
		Total    *float64
		Message  string
	}
	if json.Unmarshal(params, &p) == nil {
		if l := c.currentListener(); l != nil {
			l.Progress(p.Progress, p.Total, p.Message)
		}
	}
}

func (c *Call) log(params json.RawMessage) {
	var p struct {
		Level, Logger string
		Data          json.RawMessage
	}
	l := c.currentListener()
	if json.Unmarshal(params, &p) != nil || l == nil {
		return
	}
	var message string
	if json.Unmarshal(p.Data, &message) == nil {
		p.Data = nil
	}
	l.Log(p.Level, message, p.Data)
}

func (c *Call) currentListener() Listener {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listener
}

// attach replaces the listener; nil removes it.
func (c *Call) attach(l Listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listener = l
}

// Next waits for the next update of the call: its result, its error, or input requests. If ctx
// is done first, the call continues. Any other error says why the server gives no response.
func (c *Call) Next(ctx context.Context) (Reply, error) {
	for {
		select {
		case <-c.done:
			return c.reply()
		case <-ctx.Done():
			return Reply{}, context.Cause(ctx)
		case <-c.pendingChanged:
			if asked := c.pendingRequests(); len(asked) > 0 {
				return Reply{InputRequests: asked, Suspended: true}, nil
			}
		}
	}
}

// streamError is the cancellation cause of a call with a broken stream.
type streamError struct{ error }

func (e streamError) Unwrap() error { return e.error }

// failStream ends the call because of invalid data on its stream.
func (c *Call) failStream(err error) { c.cancel(streamError{err}) }

func (c *Call) answered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hasResponse
}

// Cancel ends the call with an error unless it has a response. The server is notified.
func (c *Call) Cancel(cause error) {
	c.mu.Lock()
	if !c.hasResponse && c.cancelErr == nil {
		c.cancelErr = cause
	}
	c.mu.Unlock()
	c.cancel(cause)
}

func (c *Call) Ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *Call) reply() (Reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return Reply{}, c.err
	case c.fault != nil:
		return Reply{Error: c.fault}, nil
	}
	return parseInputRequired(c.result)
}

// parseInputRequired returns the input requests in a result (2026-07-28 basic/patterns/mrtr),
// or else the result itself.
func parseInputRequired(result json.RawMessage) (Reply, error) {
	if !mayRequireInput(result) || tokenOf(result, "resultType") != `"input_required"` {
		return Reply{Result: result}, nil
	}
	var asks struct {
		InputRequests map[string]struct {
			Method string
			Params json.RawMessage
		}
		RequestState string
	}
	if err := json.Unmarshal(result, &asks); err != nil {
		return Reply{}, fmt.Errorf("decode input requests: %w", err)
	}
	reply := Reply{State: asks.RequestState}
	for _, key := range slices.Sorted(maps.Keys(asks.InputRequests)) {
		q := asks.InputRequests[key]
		reply.InputRequests = append(reply.InputRequests, call.AskRequest{Key: key, Method: q.Method, Params: q.Params})
	}
	return reply, nil
}

// mayRequireInput reports whether a result may have a member resultType. It avoids decoding
// large results.
func mayRequireInput(result json.RawMessage) bool {
	return bytes.Contains(result, []byte("resultType")) || bytes.Contains(result, []byte(`\u`))
}

type pendingRequest struct {
	call.AskRequest
	answered chan InputResponse
}

// requestInput waits for the response to an input request of the server.
func (c *Call) requestInput(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	c.mu.Lock()
	c.lastKey++
	p := &pendingRequest{AskRequest: call.AskRequest{Key: "q" + strconv.Itoa(c.lastKey), Method: method, Params: params}, answered: make(chan InputResponse, 1)}
	c.pending = append(c.pending, p)
	c.mu.Unlock()
	c.notifyPending()
	select {
	case a := <-p.answered:
		if a.Refusal != "" {
			return nil, errors.New(a.Refusal)
		}
		return a.Result, nil
	case <-ctx.Done():
		c.withdraw(p)
		return nil, ctx.Err()
	case <-c.done:
		c.withdraw(p)
		return nil, errors.New("the call has ended")
	}
}

func (c *Call) withdraw(p *pendingRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = slices.DeleteFunc(c.pending, func(o *pendingRequest) bool { return o == p })
}

func (c *Call) notifyPending() {
	select {
	case c.pendingChanged <- struct{}{}:
	default:
	}
}

func (c *Call) pendingRequests() (asked []call.AskRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pending {
		asked = append(asked, p.AskRequest)
	}
	return asked
}

// Respond responds to input requests by key. Next returns the remaining ones again.
func (c *Call) Respond(answers map[string]InputResponse) {
	c.mu.Lock()
	var remaining []*pendingRequest
	for _, p := range c.pending {
		if a, given := answers[p.Key]; given {
			p.answered <- a
			continue
		}
		remaining = append(remaining, p)
	}
	c.pending = remaining
	c.mu.Unlock()
	if len(remaining) > 0 {
		c.notifyPending()
	}
}
