package mcp

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// maxOutgoing bounds the requests that wait for one client at once.
const maxOutgoing = 64

// outgoing are the requests to one legacy client that it has not answered yet.
// Their ids cannot be guessed, and an answer counts in the session alone that
// was asked: nobody answers for another.
type outgoing struct {
	mu   sync.Mutex
	byID map[string]waiting
}

// waiting is one request that waits for its answer.
type waiting struct {
	key string
	to  chan<- clientAnswer
}

// clientAnswer is the answer of a client: a result, or an error.
type clientAnswer struct {
	key    string
	result json.RawMessage
	err    *call.RPCError
}

// add makes known that the requests are about to be sent, and returns an id
// for each. to has room for all the answers. False means that there are too many.
func (o *outgoing) add(requests []call.AskRequest, to chan<- clientAnswer) (ids []string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.byID)+len(requests) > maxOutgoing {
		return nil, false
	}
	if o.byID == nil {
		o.byID = map[string]waiting{}
	}
	for _, r := range requests {
		id := rand.Text()
		o.byID[id] = waiting{r.Key, to}
		ids = append(ids, id)
	}
	return ids, true
}

// answered passes on the answer of the client. One that nobody waits for is
// ignored.
func (o *outgoing) answered(m *message) {
	id, _ := jsontext.Text(m.id)
	w, ok := o.take(id)
	if !ok {
		return
	}
	r := clientAnswer{key: w.key}
	if jsontext.IsObject(m.result) {
		r.result = bytes.Clone(m.result)
	} else {
		r.err = answeredError(m.err)
	}
	w.to <- r
}

// take returns what waits for the id, which nothing does from now on.
func (o *outgoing) take(id string) (waiting, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w, ok := o.byID[id]
	delete(o.byID, id)
	return w, ok
}

// maxAnswerMessage bounds the message of a client's error, in bytes.
const maxAnswerMessage = 1 << 10

// answeredError reads the error of a client. An answer that is neither a result
// nor an error is an error too.
func answeredError(object []byte) *call.RPCError {
	e := &call.RPCError{Code: codeInternal, Message: "the client's answer is no result"}
	code, err := strconv.Atoi(string(jsontext.Get(object, "code")))
	message, ok := jsontext.Text(jsontext.Get(object, "message"))
	if err == nil && ok {
		e.Code, e.Message = code, string(bytes.ToValidUTF8([]byte(message[:min(len(message), maxAnswerMessage)]), nil))
	}
	return e
}
