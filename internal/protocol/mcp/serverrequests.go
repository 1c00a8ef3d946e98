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

// maxServerRequests bounds the requests that wait for one client.
const maxServerRequests = 64

// serverRequests holds the requests to one legacy client without a response.
// Their ids cannot be guessed, and only a response in the same session counts,
// so that no client can answer for another.
type serverRequests struct {
	mu   sync.Mutex
	byID map[string]pendingRequest
}

// pendingRequest is one request without a response.
type pendingRequest struct {
	key string
	to  chan<- clientResponse
}

// clientResponse is the response of a client: a result or an error.
type clientResponse struct {
	key    string
	result json.RawMessage
	err    *call.RPCError
}

// add registers requests before they are sent, and returns an id for each. to
// has capacity for all responses. ok is false if there are too many requests.
func (s *serverRequests) add(requests []call.AskRequest, to chan<- clientResponse) (ids []string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID)+len(requests) > maxServerRequests {
		return nil, false
	}
	if s.byID == nil {
		s.byID = map[string]pendingRequest{}
	}
	for _, r := range requests {
		id := rand.Text()
		s.byID[id] = pendingRequest{r.Key, to}
		ids = append(ids, id)
	}
	return ids, true
}

// deliver delivers the response of a client. It ignores a response to an
// unknown request.
func (s *serverRequests) deliver(m *message) {
	id, _ := jsontext.Text(m.id)
	w, ok := s.take(id)
	if !ok {
		return
	}
	r := clientResponse{key: w.key}
	if jsontext.IsObject(m.result) {
		r.result = bytes.Clone(m.result)
	} else {
		r.err = clientError(m.err)
	}
	w.to <- r
}

// take removes and returns the pending request with the id.
func (s *serverRequests) take(id string) (pendingRequest, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.byID[id]
	delete(s.byID, id)
	return w, ok
}

// maxErrorMessage bounds the message of a client's error, in bytes.
const maxErrorMessage = 1 << 10

// clientError reads the error of a client. A response without a result or an
// error is an error too.
func clientError(object []byte) *call.RPCError {
	e := &call.RPCError{Code: codeInternal, Message: "the client's answer is no result"}
	code, err := strconv.Atoi(string(jsontext.Get(object, "code")))
	message, ok := jsontext.Text(jsontext.Get(object, "message"))
	if err == nil && ok {
		e.Code, e.Message = code, string(bytes.ToValidUTF8([]byte(message[:min(len(message), maxErrorMessage)]), nil))
	}
	return e
}

// capabilitiesOf reads a capabilities object. It ignores features that the
// revision does not have.
func capabilitiesOf(object []byte, version string) (can call.Capabilities) {
	declared, ok := jsontext.Members(object)
	for ok {
		var name, value []byte
		if name, value, ok = declared.Member(); !ok || !jsontext.IsObject(value) {
			continue
		}
		switch string(name) {
		case "elicitation":
			can.URL = jsontext.IsObject(jsontext.Get(value, "url")) && version >= version20251125
			can.Form = (jsontext.IsObject(jsontext.Get(value, "form")) || !jsontext.IsObject(jsontext.Get(value, "url"))) && version >= version20250618
		case "sampling":
			can.Sample = true
			can.SampleTools = jsontext.IsObject(jsontext.Get(value, "tools")) && version >= version20251125
		case "roots":
			can.Roots = true
		case "extensions":
			can.Tasks = jsontext.IsObject(jsontext.Get(value, keyTasks)) && version >= version20260728
		}
	}
	return can
}

// can returns the input that may be requested from the client during the
// request: none for a completion, and none if the client accepts nothing before
// the response.
func (req *request) can(r *call.Request) call.Capabilities {
	switch {
	case r.Argument != "":
		return call.Capabilities{}
	case req.era == modern:
		can := capabilitiesOf(req.meta.capabilities, newestModern)
		can.Tasks = can.Tasks && r.Kind == call.Tools && req.server.tasks != nil
		return can
	case req.origin.emit == nil:
		return call.Capabilities{}
	}
	return req.origin.session.can
}

func missing(can, wanted call.Capabilities) call.Capabilities {
	return call.Capabilities{
		Form: wanted.Form && !can.Form, URL: wanted.URL && !can.URL,
		Sample: wanted.Sample && !can.Sample, SampleTools: wanted.SampleTools && !can.SampleTools,
		Roots: wanted.Roots && !can.Roots,
	}
}

func capabilitiesObject(can call.Capabilities) []byte {
	b := []byte{'{'}
	if can.URL {
		b = appendValue(b, "elicitation", []byte(`{"url":{}}`))
	} else if can.Form {
		b = appendValue(b, "elicitation", []byte(`{}`))
	}
	if can.SampleTools {
		b = appendValue(b, "sampling", []byte(`{"tools":{}}`))
	} else if can.Sample {
		b = appendValue(b, "sampling", []byte(`{}`))
	}
	if can.Roots {
		b = appendValue(b, "roots", []byte(`{}`))
	}
	if can.Tasks {
		b = appendValue(b, "extensions", []byte(`{"`+keyTasks+`":{}}`))
	}
	return append(b, '}')
}
