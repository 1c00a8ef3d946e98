package mcp

import "sync"

// batch is what came in one text: one message, or several that are answered
// together.
type batch struct {
	origin  origin
	isBatch bool
	pending []pending
	replies []Reply // of what does not wait; nil where all does
	served  func()  // called when the text is no longer needed, on a connection
	// alone is the room of one message, which most texts hold.
	alone [1]pending
}

// newBatch returns the batch of one message, which is none yet.
func newBatch() *batch {
	b := &batch{}
	b.pending = b.alone[:]
	return b
}

// replied takes the reply to a message that does not wait.
func (b *batch) replied(i int, r Reply) {
	if b.replies == nil {
		b.replies = make([]Reply, len(b.pending))
	}
	b.replies[i] = r
}

// slow reports whether serving may take long.
func (b *batch) slow() bool {
	for i := range b.pending {
		if p := &b.pending[i]; p.waits && p.handler.slow {
			return true
		}
	}
	return false
}

// mayEndLate has its one request answered late when it comes to that.
func (b *batch) mayEndLate() {
	if !b.isBatch {
		b.pending[0].alone = b
	}
}

// left reports whether its one request was answered late: then nobody has to
// do with it any more.
func (b *batch) left() bool { return !b.isBatch && b.pending[0].left }

// answer answers its one request, while the goroutine that serves it is held.
func (b *batch) answer(r *result, f *fault) {
	p := &b.pending[0]
	reply := p.reply(r, f)
	p.end()
	if conn := b.origin.conn; conn != nil {
		conn.finish(b, reply)
		return
	}
	defer p.server.work.done()
	b.origin.late.Late(reply)
}

// serve serves what is pending, all of it at once, and returns the one reply.
func (b *batch) serve() Reply {
	if !b.isBatch {
		switch p := &b.pending[0]; {
		case p.waits:
			return p.serve()
		case b.replies == nil:
			return Reply{}
		}
		return b.replies[0]
	}
	var all sync.WaitGroup
	for i := range b.pending {
		if p := &b.pending[i]; p.waits {
			all.Go(func() { b.replies[i] = p.serve() })
		}
	}
	all.Wait()
	return b.join()
}

// join puts the answers into one array, in the order of the messages.
func (b *batch) join() Reply {
	var joined Reply
	text := []byte{'['}
	for _, r := range b.replies {
		joined.Last = joined.Last || r.Last
		if r.Frame.IsZero() {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = r.Frame.Append(text)
	}
	if len(text) > 1 {
		joined.Frame = Frame{head: append(text, ']')}
	}
	return joined
}
