package upstream

import "context"

// stream is what messages of the server come on: the answer to one request, or what there
// is for all. One goroutine reads it.
type stream struct {
	of      *Call           // whose request it answers; nil where that is no call's
	answers any             // the id of the request (see [idOf]); nil where that is not known
	left    <-chan struct{} // closed when this end has left the stream
	over    bool            // the client library sees no request any more that comes on it
	listens bool            // it tells what changes, and is asked for again when it ends
}

// took takes note of the id of a response: behind its own the client library looks at nothing.
func (s *stream) took(response any) {
	if s.answers != nil && response == s.answers {
		s.over = true
	}
}

// unheard reports whether nobody would answer a request that comes now.
func (s *stream) unheard() bool { return s.over || s.of != nil && s.of.answered() }

// gone reports whether this end has left the stream.
func (s *stream) gone() bool {
	select {
	case <-s.left:
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
