// Package state stores data that must outlive a call or a restart.
//
// A [Store] holds five things: keys that seal request states, claims of used request
// states with their answers, large journals, tasks, and key-value pairs. Package sqlite
// stores them in a file, package postgres in a database that several processes share, and
// [NewMemory] in memory; package statetest checks that all behave alike. A [Sealer] turns
// the [State] of a waiting call into text for the client. The client cannot read or change
// the text, nor use it for another call or twice.
//
// Everything except keys and pairs has an owner, an expiry and a bound; pairs have a
// space and a bound. A full store rejects new items and returns the time to wait
// ([FullError]). Expired items are removed. The package runs no calls and knows no
// protocol.
package state

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Store stores sealing keys, claims, journals, tasks and pairs. It is safe for
// concurrent use. A change that returned without an error is durable, if the store is
// persistent.
//
// In addition to the errors that each method names, all return [ErrClosed] after Close,
// and an error that wraps a disk error. A method without enough capacity returns a
// [*FullError].
type Store interface {
	// SealingKey returns the current sealing key. It creates one on first use, and a
	// new one every 24 hours.
	SealingKey() (Key, error)
	// KeyByID returns a key that may still be in use, or [ErrTampered].
	KeyByID(id uint32) (Key, error)

	// PutJournal stores a journal until it expires.
	PutJournal(owner Owner, nonce Nonce, expires time.Time, journal []byte) error
	// Journal returns the journal of a nonce, which must not be changed, or [ErrLost].
	Journal(nonce Nonce) ([]byte, error)

	// Claim claims a nonce. The first caller wins: its claim is Won, and it must call
	// Finish or Lose once. Later callers wait for that, or until ctx is done, and get
	// the answer, [ErrLost] without an answer, or [ErrNotStored]. After expires the error
	// is [ErrExpired]. A claim that was won before a restart and not finished is lost.
	Claim(ctx context.Context, owner Owner, nonce Nonce, expires time.Time) (Claim, error)
	// Finish stores the answer of a won claim, and returns it to all waiters. If it
	// cannot be stored, the waiters get it anyway; later callers get [ErrNotStored], or
	// [ErrLost] if not even that could be stored. The claim ends in any case. The
	// answer must not be changed afterwards.
	Finish(nonce Nonce, answer []byte) error
	// Lose ends a won claim without an answer.
	Lose(nonce Nonce) error

	// CreateTask stores a new task and returns it. It uses the owner, the tool, the
	// message, the TTL, which must be positive, and the poll interval of t.
	CreateTask(t Task) (Task, error)
	// Task returns a task of an owner, or [ErrNotFound].
	Task(owner Owner, id string) (Task, error)
	// Tasks returns tasks of all owners without their requests, states and results: those that
	// expire last first, at most this many. It leaves out tasks that cannot be read.
	Tasks(most int) ([]Task, error)
	// UpdateTask changes a task of an owner and returns the new task. The change is
	// atomic, and change must not use the store. If change fails, UpdateTask returns
	// its error and nothing has changed. For an ended task it returns the task and
	// [ErrEnded]; for a missing one [ErrNotFound].
	UpdateTask(owner Owner, id string, change func(*Task) error) (Task, error)
	// WatchTask returns a channel that receives a value after one or more changes of a
	// task. It is closed when the task is removed or the store is closed. Call stop,
	// once or more, to end the subscription. For a missing task the error is
	// [ErrNotFound].
	WatchTask(owner Owner, id string) (changes <-chan struct{}, stop func(), err error)

	Pairs

	// Sweep removes expired items. The other methods ignore expired items, and sweep
	// while they write; call Sweep periodically for an idle store.
	Sweep() error
	// Close ends all waiting calls with [ErrClosed] and releases the file. Further
	// calls do nothing.
	Close() error
}

// Clock returns the clock of a store that several processes share: their clocks may
// differ, so the store has one for all expiries. For another store it returns otherwise.
func Clock(store any, otherwise func() time.Time) func() time.Time {
	if shared, ok := store.(interface{ Now() time.Time }); ok {
		return shared.Now
	}
	return otherwise
}

// Options configure a store. The zero value is ready for use.
type Options struct {
	// Now is the clock. The default is [time.Now].
	Now func() time.Time
	// Logger logs for the operator what no method returns, such as a failed heartbeat. Nil
	// discards.
	Logger *slog.Logger
	// Claims bound the used request states. Default: 65,536 and 64 MiB of answers, a
	// quarter of each per owner.
	Claims Limits
	// Journals bound the journals of request states. Default: 4,096 and 64 MiB, a
	// quarter of each per owner.
	Journals Limits
	// Tasks bound the tasks. Default: 10,000 and 256 MiB, with 1,000 and 64 MiB per
	// owner.
	Tasks Limits
	// Pairs bound the pairs of all spaces. Default: 1,000,000 and 256 MiB. Each space
	// is bounded by its [Room].
	Pairs Limits
	// Results bound the results that replicas share. Default: 65,536 and 256 MiB. There is no limit
	// per owner. ResultTimeout bounds the wait for each. Default: 250 ms.
	Results       Limits
	ResultTimeout time.Duration
}

// Results is a store that keeps results of calls for all replicas, which use them again. It is a cache:
// it forgets results when it is full, or after a crash. Its methods return within [Options].ResultTimeout.
// After a failure they fail at once for a second.
type Results interface {
	// Result returns a result and its age, or nil. A damaged result, or one that was written without
	// the key of the database, counts as missing. The data is untrusted if the database has no key.
	Result(key [32]byte) (data []byte, age time.Duration, err error)
	// PutResult stores a result of a given age until its age is ttl. It removes the oldest results if
	// there is no room. The data has at most [MaxResult] bytes. The key must not be secret if the
	// database has no key.
	PutResult(key [32]byte, data []byte, age, ttl time.Duration) error
}

// LimitUsage is how much of a limit the servers of a store use together. Rate and Concurrency have the keys
// with the largest shares in use, largest first. Keys is the number of keys with counters.
type LimitUsage struct {
	Keys              int
	Rate, Concurrency []LimitShare
}

// LimitShare is the share of a bound that a key of the store uses, from 0 to 1. Rest stands for all keys that
// have no counter of their own.
type LimitShare struct {
	Key   string
	Rest  bool
	Share float64
}

// MaxResult bounds a result of [Results] in bytes.
const MaxResult = 1<<20 + 1<<10

// Limits returns the limits of a kind of records, with defaults.
func (o Options) Limits(k Kind) Limits {
	switch k {
	case ClaimKind:
		return o.Claims.or(Limits{1 << 16, 64 << 20, 1 << 14, 16 << 20})
	case JournalKind:
		return o.Journals.or(Limits{1 << 12, 64 << 20, 1 << 10, 16 << 20})
	case TaskKind:
		return o.Tasks.or(Limits{10_000, 256 << 20, 1_000, 64 << 20})
	}
	return Limits{1 << 10, 1 << 20, 1 << 10, 1 << 20}
}

// PairLimits returns the limits of all pairs, with defaults.
func (o Options) PairLimits() Limits { return o.Pairs.or(Limits{1_000_000, 256 << 20, 0, 0}) }

// ResultLimits returns the limits of shared results, with defaults.
func (o Options) ResultLimits() Limits { return o.Results.or(Limits{1 << 16, 256 << 20, 0, 0}) }

// store is a Store over rows.
type store struct {
	now func() time.Time

	mu      sync.Mutex
	rows    Rows
	closed  bool
	ledgers [kinds]*ledger
	spaces  *spaces
	keys    []storedKey // oldest first
	flights map[string]*flight
	watches map[string]map[chan struct{}]bool
	swept   time.Time
}

// NewMemory returns a store in memory.
func NewMemory(o Options) Store {
	s, err := NewStore(newMemoryRows(), o)
	if err != nil {
		panic("state: empty memory cannot be read: " + err.Error())
	}
	return s
}

// NewStore returns a store over existing rows. It fails the tasks that an earlier
// process was running.
func NewStore(r Rows, o Options) (Store, error) {
	s := &store{now: o.Now, rows: r, flights: map[string]*flight{}, watches: map[string]map[chan struct{}]bool{}}
	if s.now == nil {
		s.now = time.Now
	}
	s.ledgers = [kinds]*ledger{
		KeyKind:     newLedger(o.Limits(KeyKind)),
		ClaimKind:   newLedger(o.Limits(ClaimKind)),
		JournalKind: newLedger(o.Limits(JournalKind)),
		TaskKind:    newLedger(o.Limits(TaskKind)),
	}
	s.spaces = &spaces{limits: o.PairLimits(), of: map[string]Usage{}}
	var invalid error
	err := r.Each(func(e Entry) {
		if e.Kind < 0 || int(e.Kind) >= kinds {
			invalid = errMalformed
			return
		}
		s.ledgers[e.Kind].set(e)
	})
	if err := cmp.Or(err, invalid); err != nil {
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

// open locks the store and returns the function to unlock it, unless the store is
// closed.
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

// write stores a record if it fits; mu is held.
func (s *store) write(e Entry, data []byte) error {
	r := NewRecord(e, data)
	if err := s.makeRoom(r.Entry); err != nil {
		return err
	}
	if err := s.rows.Put(r); err != nil {
		return s.failed(r.Kind, err)
	}
	s.ledgers[r.Kind].set(r.Entry)
	return nil
}

// failed returns the error of a failed write; mu is held.
func (s *store) failed(k Kind, err error) error {
	if s.rows.IsFull(err) {
		return &FullError{What: k.Plural(), Wait: s.ledgers[k].wait(s.millis()), Err: err}
	}
	return fmt.Errorf("write a %s: %w", k, err)
}

// makeRoom removes expired records if an entry needs capacity, or if a minute has
// passed; mu is held.
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
		return &FullError{What: e.Kind.Plural(), Wait: l.wait(s.millis())}
	}
	return nil
}

// sweepNowAndThen sweeps if a minute has passed; mu is held.
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

// sweepOnce removes expired items, and returns the number of removed pairs.
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

// sweep removes expired items, but only one batch of pairs; mu is held.
func (s *store) sweep() error {
	if err := s.dropKeys(); err != nil {
		return err
	}
	for k := ClaimKind; int(k) < kinds; k++ {
		ids := s.ledgers[k].expired(s.millis(), func(id string) bool { return k == ClaimKind && s.flights[id] != nil })
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
		if k == TaskKind {
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
	e := Entry{Kind: JournalKind, ID: string(nonce[:]), Owner: owner.Key(), Expires: expires.UnixMilli()}
	return s.write(e, journal)
}

func (s *store) Journal(nonce Nonce) ([]byte, error) {
	unlock, err := s.open()
	if err != nil {
		return nil, err
	}
	defer unlock()
	e, ok := s.find(JournalKind, string(nonce[:]))
	if !ok {
		return nil, ErrLost
	}
	return s.read(e)
}
