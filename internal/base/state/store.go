// Package state keeps what must outlive a call and a restart.
//
// A [Store] holds five things: the keys that request states are sealed with,
// the claims of request states that were used together with what they were
// answered, journals too large to travel, tasks, and pairs of keys and values.
// Package sqlite keeps them in a file, [NewMemory] in memory; both follow the same
// rules, which contract_test.go checks. A [Sealer] turns the [State] of a call that waits for its
// client into text which the client hands back, and which it can neither read,
// change, use for another call, nor use twice.
//
// Everything but keys and pairs has an owner, an expiry and a bound, and pairs
// have a space and a bound: a store that is full
// refuses and says when to come back ([FullError]), and what has expired is
// gone. The package runs no call and knows no protocol.
package state

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// Store keeps sealing keys, claims, journals, tasks and pairs. It is safe for
// concurrent use. What a method has returned from without an error outlives the
// process, where the store promises that at all.
//
// Besides the errors that each method names, all return [ErrClosed] after Close
// and an error that wraps what the disk said when it failed. A method that
// needs more room than there is returns a [*FullError].
type Store interface {
	// SealingKey returns the key to seal with now. It makes one at first use,
	// and another one every 24 hours.
	SealingKey() (Key, error)
	// KeyByID returns a key that something may still be sealed with, and
	// [ErrTampered] for all others.
	KeyByID(id uint32) (Key, error)

	// PutJournal keeps a journal until it expires.
	PutJournal(owner Owner, nonce Nonce, expires time.Time, journal []byte) error
	// Journal returns the journal kept under a nonce, which nobody may change,
	// or [ErrLost].
	Journal(nonce Nonce) ([]byte, error)

	// Claim asks for the right to use a nonce, which only the first who asks
	// gets: its claim is Won, and it must call Finish or Lose once. Whoever asks
	// later waits for that, unless ctx is done before, and gets the answer, or
	// [ErrLost] when there is none, or [ErrUnkept]. After expires the error is [ErrExpired].
	// A claim that was won before a restart and not finished is lost.
	Claim(ctx context.Context, owner Owner, nonce Nonce, expires time.Time) (Claim, error)
	// Finish stores the answer of a claim that was won, and gives it to all who
	// wait. When it cannot be stored, those get it all the same, and who comes
	// later gets [ErrUnkept], or [ErrLost] where not even that could be stored.
	// The claim has ended in any case. Nobody may change the answer from then on.
	Finish(nonce Nonce, answer []byte) error
	// Lose ends a claim that was won and has no answer.
	Lose(nonce Nonce) error

	// CreateTask stores a new task and returns it. Of t it takes the owner, the
	// tool, the message, the TTL, which must be positive, and the poll interval.
	CreateTask(t Task) (Task, error)
	// Task returns a task of an owner, or [ErrNotFound].
	Task(owner Owner, id string) (Task, error)
	// UpdateTask changes a task of an owner and returns what it is then. Nobody
	// else changes the task meanwhile, and change must not use the store. When
	// it fails, so does UpdateTask, and nothing has changed. A task that has
	// ended is returned with [ErrEnded]; there may be no task: [ErrNotFound].
	UpdateTask(owner Owner, id string, change func(*Task) error) (Task, error)
	// WatchTask returns a channel that has something to receive after one or
	// more changes of a task, and that is closed when the task is swept away or
	// the store closed. Call stop, once or more, when it is of no more use.
	// Without such a task the error is [ErrNotFound].
	WatchTask(owner Owner, id string) (changes <-chan struct{}, stop func(), err error)

	Pairs

	// Sweep removes what has expired. The other methods see nothing that has
	// expired, and sweep while they write; call it now and then for a store that
	// nobody writes to.
	Sweep() error
	// Close ends all that waits with [ErrClosed] and gives up the file. More
	// than one Close is one.
	Close() error
}

// Options say how a store is kept. The zero value is ready for use.
type Options struct {
	// Now tells the time. The default is [time.Now].
	Now func() time.Time
	// Claims bound the request states that were used: 65,536 and 64 MiB of
	// answers, a quarter of each for one owner.
	Claims Limits
	// Journals bound what is kept for request states: 4,096 and 64 MiB, a quarter
	// of each for one owner.
	Journals Limits
	// Tasks bound the tasks: 10,000 and 256 MiB, of which one owner has 1,000
	// and 64 MiB.
	Tasks Limits
	// Pairs bound the pairs of all spaces: 1,000,000 and 256 MiB. What one space
	// has is bounded by its [Room].
	Pairs Limits
}

// store is a Store over rows.
type store struct {
	now func() time.Time

	mu      sync.Mutex
	rows    Rows
	closed  bool
	ledgers [kinds]*ledger
	spaces  *spaces
	keys    []storedKey // the oldest first
	flights map[string]*flight
	watches map[string]map[chan struct{}]bool
	swept   time.Time
}

// NewMemory returns a store that ends with the process.
func NewMemory(o Options) Store {
	s, err := NewStore(newMemoryRows(), o)
	if err != nil {
		panic("state: empty memory cannot be read: " + err.Error())
	}
	return s
}

// NewStore returns a store over what rows hold from an earlier time. It ends the
// tasks that an earlier process was at work on.
func NewStore(r Rows, o Options) (Store, error) {
	s := &store{now: o.Now, rows: r, flights: map[string]*flight{}, watches: map[string]map[chan struct{}]bool{}}
	if s.now == nil {
		s.now = time.Now
	}
	s.ledgers = [kinds]*ledger{
		keyKind:     newLedger(Limits{1 << 10, 1 << 20, 1 << 10, 1 << 20}),
		claimKind:   newLedger(o.Claims.or(Limits{1 << 16, 64 << 20, 1 << 14, 16 << 20})),
		journalKind: newLedger(o.Journals.or(Limits{1 << 12, 64 << 20, 1 << 10, 16 << 20})),
		taskKind:    newLedger(o.Tasks.or(Limits{10_000, 256 << 20, 1_000, 64 << 20})),
	}
	s.spaces = &spaces{limits: o.Pairs.or(Limits{1_000_000, 256 << 20, 0, 0}), of: map[string]Usage{}}
	var strange error
	err := r.Each(func(e Entry) {
		if e.Kind < 0 || int(e.Kind) >= kinds {
			strange = errMalformed
			return
		}
		s.ledgers[e.Kind].set(e)
	})
	if err := cmp.Or(err, strange); err != nil {
		return nil, fmt.Errorf("read the records: %w", err)
	}
	if err := r.EachSpace(s.spaces.count); err != nil {
		return nil, fmt.Errorf("read the values: %w", err)
	}
	for _, takeUp := range []func() error{s.loadKeys, s.sweep, s.failTasks} {
		if err := takeUp(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// open locks the store and returns the function that unlocks it, unless the
// store is closed.
func (s *store) open() (unlock func(), err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	return s.mu.Unlock, nil
}

func (s *store) millis() int64 { return s.now().UnixMilli() }

// find returns the entry of a record that has not expired; mu is held.
func (s *store) find(k Kind, id string) (e Entry, ok bool) {
	e, ok = s.ledgers[k].entries[id]
	return e, ok && e.Expires > s.millis()
}

// read returns the data of a record; mu is held.
func (s *store) read(e Entry) ([]byte, error) {
	data, err := s.rows.Get(e.Kind, e.ID)
	if err != nil {
		return nil, fmt.Errorf("read a %s: %w", e.Kind, err)
	}
	return data, nil
}

// write stores a record if there is room; mu is held.
func (s *store) write(e Entry, data []byte) error {
	r := newRecord(e, data)
	if err := s.makeRoom(r.Entry); err != nil {
		return err
	}
	if err := s.rows.Put(r); err != nil {
		return s.failed(r.Kind, err)
	}
	s.ledgers[r.Kind].set(r.Entry)
	return nil
}

// failed returns the error of a write that the disk refused; mu is held.
func (s *store) failed(k Kind, err error) error {
	if s.rows.IsFull(err) {
		return &FullError{What: k.plural(), Wait: s.ledgers[k].wait(s.millis()), Err: err}
	}
	return fmt.Errorf("write a %s: %w", k, err)
}

// makeRoom removes what has expired when that is needed for an entry, or has
// not been done for a minute; mu is held.
func (s *store) makeRoom(e Entry) error {
	l := s.ledgers[e.Kind]
	if err := s.sweepNowAndThen(); err != nil {
		return err
	}
	if !l.fits(e) {
		if err := s.sweep(); err != nil {
			return err
		}
	}
	if !l.fits(e) {
		return &FullError{What: e.Kind.plural(), Wait: l.wait(s.millis())}
	}
	return nil
}

// sweepNowAndThen sweeps when that has not been done for a minute; mu is held.
func (s *store) sweepNowAndThen() error {
	if s.now().Sub(s.swept) < time.Minute {
		return nil
	}
	return s.sweep()
}

func (s *store) Sweep() error {
	for {
		removed, err := s.sweepOnce()
		if err != nil || removed < sweepBatch {
			return err
		}
	}
}

// sweepOnce removes what has expired, and returns how many pairs that were.
func (s *store) sweepOnce() (removed int, err error) {
	unlock, err := s.open()
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := s.sweep(); err != nil {
		return 0, err
	}
	return s.sweepSpaces("")
}

// sweep removes what has expired, but for pairs beyond a batch; mu is held.
func (s *store) sweep() error {
	if err := s.dropKeys(); err != nil {
		return err
	}
	for k := claimKind; int(k) < kinds; k++ {
		ids := s.ledgers[k].expired(s.millis(), func(id string) bool { return k == claimKind && s.flights[id] != nil })
		if err := s.remove(k, ids); err != nil {
			return err
		}
	}
	s.swept = s.now()
	_, err := s.sweepSpaces("")
	return err
}

// remove removes records; mu is held.
func (s *store) remove(k Kind, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := s.rows.Drop(k, ids); err != nil {
		s.ledgers[k].soonest = 0
		return fmt.Errorf("remove a %s: %w", k, err)
	}
	for _, id := range ids {
		s.ledgers[k].remove(id)
		if k == taskKind {
			s.unwatch(id)
		}
	}
	return nil
}

func (s *store) Close() error {
	unlock, err := s.open()
	if err != nil {
		return nil
	}
	defer unlock()
	s.closed = true
	for _, f := range s.flights {
		f.end(Claim{}, ErrClosed)
	}
	for id := range s.watches {
		s.unwatch(id)
	}
	return s.rows.Close()
}

func (s *store) PutJournal(owner Owner, nonce Nonce, expires time.Time, journal []byte) error {
	unlock, err := s.open()
	if err != nil {
		return err
	}
	defer unlock()
	e := Entry{Kind: journalKind, ID: string(nonce[:]), Owner: owner.key(), Expires: expires.UnixMilli()}
	return s.write(e, journal)
}

func (s *store) Journal(nonce Nonce) ([]byte, error) {
	unlock, err := s.open()
	if err != nil {
		return nil, err
	}
	defer unlock()
	e, ok := s.find(journalKind, string(nonce[:]))
	if !ok {
		return nil, ErrLost
	}
	return s.read(e)
}
