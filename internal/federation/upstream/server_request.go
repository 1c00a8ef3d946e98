package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// demand is a request of the server that has not been answered.
type serverRequest struct {
	call      *Call // whose client is asked; nil where nobody is, or the call has ended
	holdsSlot bool  // it holds a token of the wire
	withdrawn bool  // the server has withdrawn it, and wants no answer
	method    string
	// params are those of the server until somebody is asked, and refusal is why nobody is.
	params  json.RawMessage
	refusal error
}

const (
	// maxOwed is how many requests of a server wait for answers at once that no client is
	// asked for. What comes behind them is read when one of these has been sent.
	maxServerRequests = 64
	// maxOpen is how many questions of a server wait for their answers at once, of one call.
	maxInputRequests = 16
	// maxID bounds the id of a request of the server, in bytes of JSON: its answer holds it.
	maxID = 256
)

// markKey is the member of _meta by which a request of the server is known again when the
// client library has taken it apart.
const requestMarkKey = "mcpd/asked"

// carrier is the method of all requests that the client library gives to [Link.hear], and
// unknown that of those that it is to refuse.
const (
	carrierMethod = methodRoots
	unknownMethod = "unknown"
)

var (
	// errNobody refuses what a server asks, and errBusy what it asks behind too much else.
	errNoClient = errors.New("nobody may be asked this")
	errBusy     = errors.New("too many questions are open")
	// errUntaken is why a connection ends whose server lets answers wait.
	errAnswerNotRead = fmt.Errorf("the server has not taken an answer to its own request within %s", sendTimeout)
)

// asks are the methods of requests that go to clients of calls.
func isInputRequest(method string) bool {
	return method == methodElicit || method == methodSample || method == methodRoots
}

// request takes in a request of the server, and returns what the client library is to see
// of it: nothing that the server has chosen but its id, as the library repeats in its answer
// what it cannot decode. It waits while too many others have no answer. One is dropped whose
// id is that of another, or that the library would not see.
func (w *messageFilter) serverRequest(m message, s *stream) ([]byte, error) {
	id := idOf(m.id)
	if id == nil {
		return nil, errNotJSONRPC
	}
	if s.isAbandoned() {
		return nil, nil
	}
	d := w.register(id, m, s.call)
	if d == nil {
		return nil, nil
	}
	if d.holdsSlot {
		select {
		case w.slots <- struct{}{}:
		case <-s.closed:
			w.drop(id)
			return nil, nil
		case <-w.done:
			w.drop(id)
			return nil, w.failure()
		}
	}
	return d.placeholder(m.id), nil
}

// demand takes note of a request; nil where there is another one of its id.
func (w *messageFilter) register(id any, m message, of *Call) *serverRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.requests[id] != nil {
		return nil
	}
	d := &serverRequest{method: m.method}
	if isInputRequest(m.method) {
		w.route(d, m.params, of)
	}
	d.holdsSlot = d.call == nil
	w.requests[id] = d
	return d
}

// drop forgets a request that the client library has not seen.
func (w *messageFilter) drop(id any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.requests, id)
}

// address finds the call whose client a request goes to. What nobody is asked is not kept.
// Its caller holds mu.
func (w *messageFilter) route(d *serverRequest, params json.RawMessage, of *Call) {
	if of == nil {
		of = w.soleCall()
	}
	switch {
	case of == nil || w.calls[of.token] != of || !w.inputPolicy.allows(d.method):
		d.refusal = errNoClient
	case of.unsentAnswers == maxInputRequests:
		d.refusal = errBusy
	default:
		of.unsentAnswers++
		d.call, d.params = of, params
	}
}

// seen returns what the client library sees of a request.
func (d *serverRequest) placeholder(id json.RawMessage) []byte {
	text := `{"jsonrpc":"2.0","id":` + string(id)
	mark, _ := json.Marshal(string(id)) // which no string fails
	switch {
	case isInputRequest(d.method):
		text += `,"method":"` + carrierMethod + `","params":{"_meta":{"` + requestMarkKey + `":` + string(mark) + `}}}`
	case d.method == methodPing:
		text += `,"method":"` + methodPing + `"}`
	default:
		text += `,"method":"` + unknownMethod + `"}`
	}
	return []byte(text)
}

// demanded returns a request of the server by its mark, and what it asks, once.
func (w *messageFilter) takeRequest(mark string) (d serverRequest, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.requests[idOf(json.RawMessage(mark))]
	if found == nil || found.withdrawn {
		return d, errNoClient
	}
	d, found.params = *found, nil
	return d, d.refusal
}

// forget has nobody be asked for a call any more, of which nothing is kept. The ids of its
// questions are taken until their answers are on their way. Its caller holds mu.
func (w *messageFilter) detachRequests(c *Call) {
	for _, d := range w.requests {
		if d.call == c {
			d.call, d.params, d.refusal = nil, nil, errNoClient
			c.unsentAnswers--
		}
	}
}

// withdraw takes note that the server wants no answer to its request any more (2025-11-25
// basic/utilities/cancellation). The client library ends what it does for it, and answers
// nevertheless.
func (w *messageFilter) markWithdrawn(id any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.requests[id]; d != nil {
		d.withdrawn = true
	}
}

// settle takes note that the request of an id is being answered, and reports whether the
// server wants that. It returns what to call once the answer has been sent, or cannot be:
// until then it counts.
func (w *messageFilter) answering(text json.RawMessage) (wanted bool, sent func()) {
	id := idOf(text)
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.requests[id]
	delete(w.requests, id)
	wanted = d == nil || !d.withdrawn
	switch {
	case d != nil && d.holdsSlot:
		return wanted, func() { <-w.slots }
	case d == nil || d.call == nil:
		return wanted, func() {}
	}
	return wanted, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		d.call.unsentAnswers--
	}
}

// idOf returns the id of a request of the server as the client library has it; nil for what
// is none, or is too long.
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

// stream is what messages of the server come on: the answer to one request, or what there
// is for all. One goroutine reads it.
type stream struct {
	call     *Call           // whose request it answers; nil where that is no call's
	answers  any             // the id of the request (see [idOf]); nil where that is not known
	closed   <-chan struct{} // closed when this end has left the stream
	ignored  bool            // the client library sees no request any more that comes on it
	isListen bool            // it tells what changes, and is asked for again when it ends
}

// took takes note of the id of a response: behind its own the client library looks at nothing.
func (s *stream) noteResponse(response any) {
	if s.answers != nil && response == s.answers {
		s.ignored = true
	}
}

// unheard reports whether nobody would answer a request that comes now.
func (s *stream) isAbandoned() bool { return s.ignored || s.call != nil && s.call.answered() }

// gone reports whether this end has left the stream.
func (s *stream) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// callKey is the key of the call in the context of all that is sent for it. The client
// library goes on with the stream of a call by a request that says nothing of it.
type callKey struct{}

// callOf returns the call of a context, nil for none.
func callOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}
