package state

import (
	"log/slog"
	"sync"
	"time"
)

// Shared is a store that other processes use at the same time: the replicas of a fleet. They tell
// each other by messages what has changed, if it is not in the store itself.
type Shared interface {
	Store
	// Now returns the time that decides about expiries: the clocks of the processes may differ.
	Now() time.Time
	// Publish sends messages to the other replicas, in their order. It may send them twice. A name
	// that is longer than [MaxName] is sent as "". The names must not be secret.
	Publish(messages []Message) error
	// Receive calls fn with the messages of other replicas since the store was opened, one after the
	// other, until the store is closed. Messages of one replica arrive in their order, within a second
	// while the database can be reached, and later otherwise. fn must not block.
	Receive(fn func(Message))
}

// Message says that something has changed at another replica. It has no content: the receiver reads
// what has changed. The zero Message says that messages were lost, and anything may have changed.
type Message struct {
	Topic Topic
	// Name is what has changed. If it is empty, anything of the topic may have changed.
	Name string
}

// Topic is the kind of a message. Replicas of other versions ignore topics that they do not know.
type Topic string

const (
	// ResourceUpdated has the URI of a resource whose contents have changed.
	ResourceUpdated Topic = "resource.updated"
	// TokenChanged has the row of an OAuth token of a user that was stored, renewed or lost.
	// TokenDropped has the filter of the tokens that an operator dropped: the authorizations in
	// progress that it matches end.
	TokenChanged Topic = "token.changed"
	TokenDropped Topic = "token.dropped"
)

// MaxName is the maximum length of the name in a message, in bytes.
const MaxName = 1 << 10

// maxPending bounds the messages that wait to be sent. Further ones are sent without a name.
const maxPending = 1000

// outbox holds the messages that are to be sent, each once.
type outbox struct {
	mu      sync.Mutex
	pending []Message
	known   map[Message]bool
	sending bool          // a goroutine sends
	closed  bool          // no further messages
	closing chan struct{} // closed by close; nil before the first message
	senders sync.WaitGroup
}

// add adds messages, and starts send unless it runs.
func (o *outbox) add(messages []Message, send func(closing <-chan struct{})) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if o.known == nil {
		o.known, o.closing = map[Message]bool{}, make(chan struct{})
	}
	o.insert(messages)
	if !o.sending {
		o.sending = true
		o.senders.Go(func() { send(o.closing) })
	}
}

// take returns the messages to send. If there are none, the sender must end.
func (o *outbox) take() []Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.pending
	o.pending = nil
	clear(o.known)
	o.sending = len(all) > 0
	return all
}

// putBack returns messages that could not be sent.
func (o *outbox) putBack(unsent []Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	later := o.pending
	o.pending = nil
	clear(o.known)
	o.insert(unsent)
	o.insert(later)
}

// insert adds messages that are not pending; mu is held.
func (o *outbox) insert(messages []Message) {
	for _, m := range messages {
		if len(m.Name) > MaxName || len(o.pending) >= maxPending {
			m.Name = ""
		}
		if !o.known[m] && !o.known[Message{Topic: m.Topic}] {
			o.known[m] = true
			o.pending = append(o.pending, m)
		}
	}
}

// close waits until the pending messages were sent, or an attempt has failed.
func (o *outbox) close() {
	o.mu.Lock()
	if !o.closed && o.closing != nil {
		close(o.closing)
	}
	o.closed = true
	o.mu.Unlock()
	o.senders.Wait()
}

// retryAfter is the time between two attempts to send messages.
const retryAfter = time.Second

// Publish sends messages to the other replicas, if the store has any, in the background. It sends
// them in their order, and tries again while the store fails. It opens a database, but no file.
func (l *Lazy) Publish(topic Topic, names ...string) {
	if l.Database == nil {
		return
	}
	messages := make([]Message, len(names))
	for i, name := range names {
		messages[i] = Message{topic, name}
	}
	l.outbox.add(messages, l.send)
}

// Connect opens a database in the background, so that [Lazy.Receive] gets messages. It does not open
// a file.
func (l *Lazy) Connect() {
	if l.Database != nil {
		l.outbox.add(nil, l.send)
	}
}

// send sends the messages in the outbox until it is empty.
func (l *Lazy) send(closing <-chan struct{}) {
	for warned := false; ; {
		store, err := l.openShared()
		if err == nil {
			batch := l.outbox.take()
			if len(batch) == 0 {
				return
			}
			if store != nil {
				err = store.Publish(batch)
			}
			if err == nil {
				continue
			}
			l.outbox.putBack(batch)
		}
		if !warned {
			l.log().Warn("send messages to other replicas", slog.String("error", err.Error()))
			warned = true
		}
		select {
		case <-closing:
			return
		case <-time.After(retryAfter):
		}
	}
}

// openShared returns the store of several replicas, and opens it; nil without one.
func (l *Lazy) openShared() (Shared, error) {
	l.mu.Lock()
	store := l.store
	l.mu.Unlock()
	if store == nil {
		d, err := l.Database()
		if d == nil || err != nil {
			return nil, err
		}
		if store, err = l.Open(); err != nil {
			return nil, err
		}
	}
	shared, _ := store.(Shared)
	return shared, nil
}
