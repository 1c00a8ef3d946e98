package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/internal/base/state"
)

// A replica is an open store under one id. The fence grows with each registration.
type replica struct {
	id    string
	fence int64
}

// store is a [state.Store].
type store struct {
	// Fixed at creation.
	database
	options state.Options
	counter *counter
	hooks   hooks
	// ctx ends when the store is closed, and with it all operations.
	ctx          context.Context
	cancel       context.CancelFunc
	background   sync.WaitGroup
	pollRequests chan struct{}
	repairs      chan bool
	// turns bound the connections that wait for the same row to one of this replica.
	turns [64]chan struct{}
	seed  maphash.Seed

	received int64 // the last message; used by start, and then by pollAlways only

	// registering is held while the replica takes a new id.
	registering sync.Mutex

	mu     sync.Mutex // guards all fields below
	closed bool
	keys   []storedKey
	registration
	startedWork
	// watches and receivers hear of changes and messages of other replicas.
	watches   map[string]*watch
	receivers []func(state.Message)
}

// database is the schema of a store, and its connections. It is fixed at creation.
type database struct {
	pool     *pgxpool.Pool
	beatPool *pgxpool.Pool // one connection, for heartbeats
	config   *pgx.ConnConfig
	address  string
	schema   string
	quoted   string
	channel  string
	cipher   *atRest
}

// registration is this store as a replica that others know by its heartbeats.
type registration struct {
	me replica
	// former are the ids under which this replica was presumed dead.
	former map[string]bool
	// clock is the time of the database at the local time measured, which has a monotonic reading.
	clock    time.Time
	measured time.Time
	// beaten is the time of the last heartbeat. Others are not removed before removeFrom.
	beaten, removeFrom time.Time
	failure            error // of the last heartbeat
	// about returns what this replica says about itself; nil says nothing.
	about    func() state.ReplicaInfo
	lastInfo []byte // the JSON of what it returned last
}

// startedWork is the work that goroutines of this replica do or wait for.
type startedWork struct {
	flights   map[state.Nonce]*flight
	unsettled map[state.Nonce]unsettled
	// unstarted are tasks that this replica may have been given to run, and does not run.
	unstarted map[string]replica
	// resultsAgain is the time of the next attempt after a failed one for a result.
	resultsAgain time.Time
}

func newStore(config *pgxpool.Config, schema string, o state.Options, h hooks) *store {
	s := &store{
		database: database{config: config.ConnConfig, address: address(config.ConnConfig), schema: schema, quoted: pgx.Identifier{schema}.Sanitize(), channel: "mcpd_state_" + schema},
		options:  o, hooks: h, pollRequests: make(chan struct{}, 1), repairs: make(chan bool, 1), seed: maphash.MakeSeed(),
		registration: registration{former: map[string]bool{}, beaten: time.Now()},
		startedWork:  startedWork{flights: map[state.Nonce]*flight{}, unsettled: map[state.Nonce]unsettled{}, unstarted: map[string]replica{}},
		watches:      map[string]*watch{},
	}
	for i := range s.turns {
		s.turns[i] = make(chan struct{}, 1)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	one := config.Copy()
	one.MaxConns, one.MinConns, one.MinIdleConns = 1, 0, 0
	count := one.Copy()
	// A table without statistics may seem small. The plans of count_1 are kept while it grows.
	count.ConnConfig.RuntimeParams["enable_seqscan"], count.ConnConfig.RuntimeParams["jit"] = "off", "off"
	s.counter = newCounter(s)
	for pool, c := range map[**pgxpool.Pool]*pgxpool.Config{&s.pool: config, &s.beatPool: one, &s.counter.pool: count} {
		var err error
		if *pool, err = pgxpool.NewWithConfig(s.ctx, c); err != nil {
			panic("state: a parsed configuration is refused: " + err.Error())
		}
	}
	return s
}

func (s *store) closePools() {
	s.pool.Close()
	s.beatPool.Close()
	s.counter.pool.Close()
}

// run starts the goroutines beside the methods. Close waits for them.
func (s *store) run() {
	if !s.hooks.noListen {
		s.background.Go(s.listenAlways)
	}
	s.background.Go(s.pollAlways)
	if !s.hooks.frozen {
		s.background.Go(s.beatAlways)
		s.background.Go(s.repairAlways)
	}
}

// q returns a statement with the name of the schema.
func (s *store) q(text string) string { return strings.ReplaceAll(text, "{s}", s.quoted) }

// Outcomes of the functions of the schema; the first four are phases of a claim.
const (
	claimed   = 0
	answered  = 1
	notStored = 2
	lost      = 3
	expired   = 10
	elsewhere = 11 // another replica works at the claim
	dead      = 12 // this replica was presumed dead
	full      = 13
)

// do runs an operation with a connection. The operation ends with an error after opTimeout. If the
// connection is lost, as when the database is restarted, it runs again with another one: op must
// allow that, or return a finalError.
func (s *store) do(op func(ctx context.Context, c *pgxpool.Conn) error) error {
	return s.doWithin(s.pool, opTimeout, op)
}

func (s *store) doWithin(pool *pgxpool.Pool, limit time.Duration, op func(ctx context.Context, c *pgxpool.Conn) error) error {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	for try := 0; ; try++ {
		err := pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return op(ctx, c) })
		if refused := (refusal{}); errors.As(err, &refused) {
			return refused.error
		}
		deadlock := sqlState(err) == "40P01" || sqlState(err) == "40001"
		if try == 3 || !deadlock && !isLost(err) || ctx.Err() != nil || errors.As(err, new(finalError)) {
			return s.explain(err)
		}
		if !deadlock {
			pool.Reset() // the other connections are lost, too
		}
	}
}

// refusal is an error of an operation that is not one of the database, and is returned unchanged.
type refusal struct{ error }

// finalError is the error of an operation that may have happened, and must not run again.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// turn waits until no other goroutine changes the same row.
func (s *store) turn(key string) (release func(), err error) {
	t := s.turns[maphash.String(s.seed, key)%uint64(len(s.turns))]
	timer := time.NewTimer(opTimeout)
	defer timer.Stop()
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-s.ctx.Done():
		return nil, state.ErrClosed
	case <-timer.C:
		return nil, s.explain(context.DeadlineExceeded)
	}
}

// Now returns the time of the database, or the result of Options.Now.
func (s *store) Now() time.Time {
	if s.options.Now != nil {
		return s.options.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.Add(time.Since(s.measured))
}

// setClock notes the time of the database, in milliseconds, in the answer to a statement; mu is held.
func (s *store) setClock(now int64, sent time.Time) {
	received := time.Now()
	s.clock, s.measured = time.UnixMilli(now).UTC(), sent.Add(received.Sub(sent)/2)
}

// given returns the time for statements: the result of Options.Now, or nil for the database's.
func (s *store) given() *int64 {
	if s.options.Now == nil {
		return nil
	}
	now := s.options.Now().UnixMilli()
	return &now
}

// replica returns the present id of this replica.
func (s *store) replica() (replica, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return replica{}, state.ErrClosed
	}
	return s.me, nil
}

// limitsOf returns limits as charge_1 takes them.
func limitsOf(l state.Limits) []int64 {
	return []int64{int64(l.Count), l.Bytes, int64(l.OwnerCount), l.OwnerBytes}
}

// digest returns the digest of a name for an index.
func digest(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}

// fullError returns the error for a kind without room.
func (s *store) fullError(k state.Kind, soonest *int64) error {
	first := int64(math.MaxInt64)
	if soonest != nil {
		first = *soonest
	}
	return &state.FullError{What: k.Plural(), Wait: state.WaitUntil(first, s.Now().UnixMilli())}
}

// withRoom runs an operation again after expired records were removed, if it found no room.
func (s *store) withRoom(k state.Kind, op func(final bool) error) error {
	err := op(false)
	if _, isFull := errors.AsType[*state.FullError](err); !isFull {
		return err
	}
	if _, err := s.sweepKind(k, nil); err != nil {
		return err
	}
	return op(true)
}

func (s *store) PutJournal(owner state.Owner, nonce state.Nonce, expires time.Time, journal []byte) error {
	if _, err := s.replica(); err != nil {
		return err
	}
	r := state.NewRecord(state.Entry{Kind: state.JournalKind, ID: string(nonce[:]), Owner: owner.Key(), Expires: expires.UnixMilli()}, journal)
	limits := s.options.Limits(state.JournalKind)
	if r.Size > min(limits.Bytes, limits.OwnerBytes) {
		return s.neverFits() // it is not sent, only to be refused
	}
	data := s.cipher.seal("journal", r.ID, journal)
	return s.withRoom(state.JournalKind, func(bool) error {
		var outcome int
		var soonest *int64
		err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
			return c.QueryRow(ctx, s.q(`SELECT outcome, soonest FROM {s}.put_journal_1($1, $2, $3, $4, $5, $6)`),
				nonce[:], digest(r.Owner), r.Expires, r.Size, data, limitsOf(limits)).Scan(&outcome, &soonest)
		})
		if err != nil {
			return fmt.Errorf("write a journal: %w", err)
		}
		if outcome == full {
			return s.fullError(state.JournalKind, soonest)
		}
		return nil
	})
}

// neverFits returns the error for a journal that is larger than all together may be.
func (s *store) neverFits() error {
	var soonest *int64
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, s.q(`SELECT min(expires) FROM {s}.journals`)).Scan(&soonest)
	})
	if err != nil {
		return fmt.Errorf("write a journal: %w", err)
	}
	return s.fullError(state.JournalKind, soonest)
}

func (s *store) Journal(nonce state.Nonce) ([]byte, error) {
	if _, err := s.replica(); err != nil {
		return nil, err
	}
	var data []byte
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, s.q(`SELECT data FROM {s}.journals WHERE nonce = $1 AND expires > {s}.clock_1($2)`), nonce[:], s.given()).Scan(&data)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, state.ErrLost
	}
	if err == nil {
		data, err = s.cipher.open("journal", string(nonce[:]), data)
	}
	if err != nil {
		return nil, fmt.Errorf("read a journal: %w", err)
	}
	return data, nil
}

// sweepBatch is the number of records to remove in one statement.
const sweepBatch = 1 << 10

// pairKind is the kind of pairs in the usage table.
const pairKind = state.TaskKind + 1

func (s *store) Sweep() error {
	if err := s.sweepRecords(); err != nil {
		return err
	}
	return s.sweepResults()
}

// sweepRecords removes everything that has expired, except results.
func (s *store) sweepRecords() error {
	if _, err := s.replica(); err != nil {
		return err
	}
	for k := state.ClaimKind; k <= pairKind; k++ {
		for removed := int64(sweepBatch); removed == sweepBatch; {
			var err error
			if removed, err = s.sweepKind(k, nil); err != nil {
				return err
			}
		}
	}
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, s.q(`SELECT {s}.forget_1()`))
		return err
	})
	if err == nil {
		err = s.dropKeys()
	}
	if err == nil {
		err = s.counter.sweep()
	}
	s.requestPoll()
	return err
}

// sweepKind removes a batch of expired records of a kind, or of pairs of a space.
func (s *store) sweepKind(k state.Kind, space []byte) (removed int64, err error) {
	err = s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, s.q(`SELECT {s}.sweep_1($1, $2, $3, $4)`), int16(k), space, s.given(), sweepBatch).Scan(&removed)
	})
	if err != nil {
		return 0, fmt.Errorf("remove expired state: %w", err)
	}
	return removed, nil
}

// Close reports what this replica had started as lost or failed. If the database is away, the other
// replicas do that.
func (s *store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for nonce, f := range s.flights {
		f.end(state.Claim{}, state.ErrClosed)
		delete(s.flights, nonce)
	}
	for id := range s.watches {
		s.unwatch(id)
	}
	me := s.me
	s.mu.Unlock()
	s.cancel()
	s.background.Wait()
	defer s.closePools()
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	err := s.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return s.removeDeadIn(ctx, c.Conn(), me.id) })
	if err != nil {
		s.options.Logger.Warn("close state store", slog.String("database", s.address), slog.String("error", err.Error()))
	}
	return nil
}
