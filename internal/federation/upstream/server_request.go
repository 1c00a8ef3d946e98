package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// serverRequest is an unanswered request of the server.
type serverRequest struct {
	call      *Call // the call with the client to ask; nil if no client is asked or the call has ended
	holdsSlot bool  // it holds one of the filter's slots
	withdrawn bool  // the server has cancelled it and wants no answer
	method    string
	// params are set until the client is asked. refusal says why no client is asked.
	params  json.RawMessage
	refusal error
}

const (
	// maxServerRequests bounds the unanswered requests of a server that go to no client. Later
	// requests are read when one of these has been answered.
	maxServerRequests = 64
	// maxInputRequests bounds the unanswered input requests of one call.
	maxInputRequests = 16
	// maxID bounds the id of a request in bytes of JSON: the answer repeats it.
	maxID = 256
)

// requestMarkKey is the member of _meta that identifies a request of the server after the
// client library has decoded it.
const requestMarkKey = "mcpd/asked"

// carrierMethod is the method of all requests that the client library passes to
// [Conn.interceptRequests]. The library rejects requests with unknownMethod.
const (
	carrierMethod = methodRoots
	unknownMethod = "unknown"
)

var (
	// errNoClient refuses an input request, and errBusy one beyond the limit.
	errNoClient = errors.New("input requests are not allowed")
	errBusy     = errors.New("too many questions are open")
	// errAnswerNotRead ends the connection to a server that does not read answers.
	errAnswerNotRead = fmt.Errorf("the server did not read an answer to its request within %s", sendTimeout)
)

// isInputRequest reports whether requests of a method go to clients of calls.
func isInputRequest(method string) bool {
	return method == methodElicit || method == methodSample || method == methodRoots
}

// serverRequest registers a request of the server and returns the request that the client
// library sees. That request holds nothing from the server but the id, because the library
// repeats in its answer what it cannot decode. serverRequest blocks while too many others are
// unanswered. It drops a request with an id in use, and one that the library would not see.
func (f *messageFilter) serverRequest(m message, s *stream) ([]byte, error) {
	id := idOf(m.id)
	if id == nil {
		return nil, errNotJSONRPC
	}
	if s.isAbandoned() {
		return nil, nil
	}
	r := f.register(id, m, s.call)
	if r == nil {
		return nil, nil
	}
	if r.holdsSlot {
		select {
		case f.slots <- struct{}{}:
		case <-s.closed:
			f.drop(id)
			return nil, nil
		case <-f.done:
			f.drop(id)
			return nil, f.failure()
		}
	}
	return r.placeholder(m.id), nil
}

// register registers a request; it returns nil if its id is in use.
func (f *messageFilter) register(id any, m message, c *Call) *serverRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.requests[id] != nil {
		return nil
	}
	r := &serverRequest{method: m.method}
	if isInputRequest(m.method) {
		f.route(r, m.params, c)
	}
	r.holdsSlot = r.call == nil
	f.requests[id] = r
	return r
}

// drop removes a request that the client library has not seen.
func (f *messageFilter) drop(id any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.requests, id)
}

// route finds the call with the client for a request. It stores nothing of a refused request.
// The caller holds mu.
func (f *messageFilter) route(r *serverRequest, params json.RawMessage, c *Call) {
	if c == nil {
		c = f.soleCall()
	}
	switch {
	case c == nil || f.calls[c.token] != c || !f.inputPolicy.allows(r.method):
		r.refusal = errNoClient
	case c.unsentAnswers == maxInputRequests:
		r.refusal = errBusy
	default:
		c.unsentAnswers++
		r.call, r.params = c, params
	}
}

// placeholder returns the request that the client library sees.
func (r *serverRequest) placeholder(id json.RawMessage) []byte {
	text := `{"jsonrpc":"2.0","id":` + string(id)
	mark, _ := json.Marshal(string(id)) // strings always encode
	switch {
	case isInputRequest(r.method):
		text += `,"method":"` + carrierMethod + `","params":{"_meta":{"` + requestMarkKey + `":` + string(mark) + `}}}`
	case r.method == methodPing:
		text += `,"method":"` + methodPing + `"}`
	default:
		text += `,"method":"` + unknownMethod + `"}`
	}
	return []byte(text)
}

// takeRequest returns a request of the server by its mark, with its parameters. The parameters
// are returned once.
func (f *messageFilter) takeRequest(mark string) (r serverRequest, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.requests[idOf(json.RawMessage(mark))]
	if found == nil || found.withdrawn {
		return r, errNoClient
	}
	r, found.params = *found, nil
	return r, r.refusal
}

// detachRequests detaches requests from an ended call and drops their parameters. Their ids
// stay in use until their answers are written. The caller holds mu.
func (f *messageFilter) detachRequests(c *Call) {
	for _, r := range f.requests {
		if r.call == c {
			r.call, r.params, r.refusal = nil, nil, errNoClient
			c.unsentAnswers--
		}
	}
}

// markWithdrawn records that the server has cancelled its request (2025-11-25
// basic/utilities/cancellation). The client library cancels the work, and answers nevertheless.
func (f *messageFilter) markWithdrawn(id any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.requests[id]; r != nil {
		r.withdrawn = true
	}
}

// answering removes a request that is being answered, and reports whether the server still
// wants the answer. Call sent when the answer has been written or cannot be; until then it
// counts.
func (f *messageFilter) answering(text json.RawMessage) (wanted bool, sent func()) {
	id := idOf(text)
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.requests[id]
	delete(f.requests, id)
	wanted = r == nil || !r.withdrawn
	switch {
	case r != nil && r.holdsSlot:
		return wanted, func() { <-f.slots }
	case r == nil || r.call == nil:
		return wanted, func() {}
	}
	return wanted, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		r.call.unsentAnswers--
	}
}

// idOf returns the id of a server request as the client library decodes it, or nil if it is
// invalid or too long.
func idOf(text json.RawMessage) any {
	if len(text) > maxID {
		return nil
	}
	var id any
	_ = json.Unmarshal(text, &id)
	switch id := id.(type) {
	case string:
		return id
	case float64:
		return int64(id)
	}
	return nil
}

// stream is the source of messages: the response to one request, or a shared stream. One
// goroutine reads it.
type stream struct {
	call     *Call           // the call of the request, or nil
	answers  any             // id of the request (see [idOf]), or nil if unknown
	closed   <-chan struct{} // closed when this side has closed the stream
	ignored  bool            // the client library ignores further requests on it
	isListen bool            // it carries change notifications and is reopened when it ends
}

// noteResponse records the id of a response: the client library ignores what follows its own
// response.
func (s *stream) noteResponse(response any) {
	if s.answers != nil && response == s.answers {
		s.ignored = true
	}
}

// isAbandoned reports whether a request that arrives now would get no answer.
func (s *stream) isAbandoned() bool { return s.ignored || s.call != nil && s.call.answered() }

// isClosed reports whether this side has closed the stream.
func (s *stream) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// callKey is the context key of the call for all its requests. The client library resumes the
// stream of a call with a request that does not name the call.
type callKey struct{}

// callOf returns the call of a context, or nil.
func callOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}
