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

// Call is a call under way at a server.
type Call struct {
	// Fixed at creation.
	token        string // the JSON of what names it
	method       string
	cancel       context.CancelCauseFunc
	done         chan struct{} // closed when the call has ended
	readsAtStart uint64        // how much had been heard of the server

	sent       atomic.Bool                  // its request has been on its way
	requestErr atomic.Pointer[requestError] // why that came to nothing over HTTP

	unsentAnswers int // questions of the server whose answers have not been sent; guarded by the wire

	mu          sync.Mutex
	listener    Listener
	hasResponse bool
	cancelErr   error // why it was cancelled before it was answered
	result      json.RawMessage
	fault       *call.RPCError
	err         error
	// open are the questions of the server that wait for an answer, in their order.
	pending        []*pendingRequest
	lastKey        int
	pendingChanged chan struct{} // holds a token while somebody should look at open
}

func newCall(token int64, r Request, l Listener, cancel context.CancelCauseFunc) *Call {
	return &Call{
		token: strconv.Quote("mcpd-" + strconv.FormatInt(token, 36)), cancel: cancel, listener: l,
		done: make(chan struct{}), pendingChanged: make(chan struct{}, 1),
		method: r.Method,
	}
}

// listens reports whether somebody may hear of the call before it ends.
func (c *Call) canNotify() bool {
	return c.method == MethodTool || c.method == MethodRead || c.method == MethodPrompt
}

// stubs are results that say nothing: what the client library sees in the place of those
// that it has no part in.
var placeholderResults = map[string]string{
	MethodTool:                 `{"content":[]}`,
	MethodRead:                 `{"contents":[]}`,
	MethodPrompt:               `{"messages":[]}`,
	MethodComplete:             `{"completion":{"values":[]}}`,
	"prompts/list":             `{"prompts":[]}`,
	"resources/list":           `{"resources":[]}`,
	"resources/templates/list": `{"resourceTemplates":[]}`,
}

// stub returns what the client library sees of a result. It keeps lists of tools, whose
// schemas say what of a call stands in headers, and is not to keep them for a time that
// the server says: whoever asks for a list again wants it anew.
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

// take takes in the response of the server. One that crosses a cancellation is too late.
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
		c.fault = &call.RPCError{Code: codeInternal, Message: "the server has answered with an error that cannot be read"}
	}
}

// codeInternal is that of an error inside of a server (JSON-RPC 2.0 section 5.1).
const codeInternal = -32603

// end ends the call; err is why it has no response.
func (c *Call) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hasResponse {
		if c.err = cmp.Or(c.cancelErr, err); c.err == nil {
			c.err = errors.New("the server has not answered")
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

// attach has another listener hear of the call from now on; nil for none.
func (c *Call) attach(l Listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listener = l
}

// Next returns what comes next of the call. It waits until ctx is done, which leaves the
// call as it is. The error is otherwise why the server gives no answer.
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

// streamError is why a call ends whose stream was of no use.
type streamError struct{ error }

func (e streamError) Unwrap() error { return e.error }

// breaks ends the call for what has come on its stream.
func (c *Call) failStream(err error) { c.cancel(streamError{err}) }

func (c *Call) answered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hasResponse
}

// Cancel ends the call with an error, unless its answer is there already. The server is told.
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

// unfinished returns what a result asks for (2026-07-28 basic/patterns/mrtr), or the
// result itself.
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
		return Reply{}, fmt.Errorf("what the server asks cannot be read: %w", err)
	}
	reply := Reply{State: asks.RequestState}
	for _, key := range slices.Sorted(maps.Keys(asks.InputRequests)) {
		q := asks.InputRequests[key]
		reply.InputRequests = append(reply.InputRequests, call.AskRequest{Key: key, Method: q.Method, Params: q.Params})
	}
	return reply, nil
}

// mayAsk reports whether a result may have a member resultType, which few have that are
// large: it is not taken apart for that.
func mayRequireInput(result json.RawMessage) bool {
	return bytes.Contains(result, []byte("resultType")) || bytes.Contains(result, []byte(`\u`))
}

type pendingRequest struct {
	call.AskRequest
	answered chan InputResponse
}

// ask waits for the answer to a question of the server.
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

// Answer answers questions by their keys. Those that stay open are asked again by Next.
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
