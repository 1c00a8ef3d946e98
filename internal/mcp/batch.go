package mcp

import "sync"

// batch is what came in one text: one message, or several that are answered
// together.
type batch struct {
	origin  origin
	isBatch bool
	pending []pending
	replies []Reply // of what does not wait
	served  func()  // called when the text is no longer needed, on a connection
	// alone is their room when there is one message.
	alone struct {
		pending [1]pending
		replies [1]Reply
	}
}

func newBatch(o origin, messages int, isBatch bool) *batch {
	b := &batch{origin: o, isBatch: isBatch}
	if messages == 1 {
		b.pending, b.replies = b.alone.pending[:], b.alone.replies[:]
	} else {
		b.pending, b.replies = make([]pending, messages), make([]Reply, messages)
	}
	return b
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
		if p := &b.pending[0]; p.waits {
			return p.serve()
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
