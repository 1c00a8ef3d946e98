package sse

import (
	"errors"
	"sync"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// maxBehind is how many bytes may wait for a client before what else there is
// to send waits for it too.
const maxBehind = 256 << 10

// outbox holds what is to be sent, so that a request which brings a message
// need not wait until its answer has gone out on the stream.
type outbox struct {
	hold *httpguard.Hold // of what waits, and of what waits to be put in
	drop func()          // ends the connection

	mu      sync.Mutex
	changed sync.Cond
	frames  []mcp.Frame
	bytes   int // of frames, and of the one that is being sent
	sending int // the bytes of that one
	ended   bool
}

var errGone = errors.New("the client is gone")

func newOutbox(h *httpguard.Hold, drop func()) *outbox {
	o := &outbox{hold: h, drop: drop}
	o.changed.L = &o.mu
	return o
}

// put adds a frame. It waits for a client that is far behind. A frame that there is no
// room for is refused, but where a short one finds none either, the client is dropped.
func (o *outbox) put(f mcp.Frame) error {
	if !o.hold.Take(f.Len()) {
		if f.Len() > httpguard.Buffered && !o.hold.Lost() {
			return mcp.ErrCrowded
		}
		o.drop()
		return errGone
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.bytes > maxBehind && !o.ended {
		o.changed.Wait()
	}
	if o.ended {
		o.hold.Release(f.Len())
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
	o.hold.Release(o.sending)
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
