package sse

import (
	"errors"
	"sync"

	"github.com/mcpd/mcpd/internal/mcp"
)

// maxBehind is how many bytes may wait for a client before what else there is
// to send waits for it too.
const maxBehind = 256 << 10

// outbox holds what is to be sent, so that a request which brings a message
// need not wait until its answer has gone out on the stream.
type outbox struct {
	mu      sync.Mutex
	changed sync.Cond
	frames  []mcp.Frame
	bytes   int // of frames, and of the one that is being sent
	sending int // the bytes of that one
	ended   bool
}

var errGone = errors.New("the client is gone")

func newOutbox() *outbox {
	o := &outbox{}
	o.changed.L = &o.mu
	return o
}

// put adds a frame. It waits for a client that is far behind.
func (o *outbox) put(f mcp.Frame) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.bytes > maxBehind && !o.ended {
		o.changed.Wait()
	}
	if o.ended {
		return errGone
	}
	o.frames = append(o.frames, f)
	o.bytes += f.Len()
	o.changed.Broadcast()
	return nil
}

// next returns the frame to send once the one before it was sent. False means
// that there will be no more.
func (o *outbox) next() (mcp.Frame, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes -= o.sending
	o.sending = 0
	o.changed.Broadcast()
	for len(o.frames) == 0 && !o.ended {
		o.changed.Wait()
	}
	if len(o.frames) == 0 {
		return mcp.Frame{}, false
	}
	f := o.frames[0]
	o.frames[0] = mcp.Frame{}
	o.frames, o.sending = o.frames[1:], f.Len()
	return f, true
}

// end takes no more frames; what waits is still sent.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.changed.Broadcast()
}

// abandon takes no more frames, and forgets what waits.
func (o *outbox) abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended, o.frames = true, nil
	o.changed.Broadcast()
}
