package postgres

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
)

const (
	// countTimeout bounds one batch.
	countTimeout = 2 * time.Second
	// resetFor is the time after a failed batch in which its statement may still reach the database.
	resetFor = time.Minute
	// batchCharges is the number of charges after which a batch takes no further request.
	batchCharges = 512
	// maxCounters bounds the keys of one limit with counters of their own, about. Beyond it, new keys of the
	// limit share a counter. Each limit has its own bound: a key may depend on what callers send.
	maxCounters = 250_000
	// nameSize is the size of the digest of a limit, with which its keys begin.
	nameSize = 8
	// awayAfter is the age of a heartbeat after which another replica sweeps.
	awayAfter = 5 * time.Second
	// maxSpan bounds an interval and the time of a burst in nanoseconds, so that no sum exceeds a bigint.
	maxSpan = math.MaxInt64 / 5
)

// A counter counts calls against limits for all replicas. It is the [call.LimitStore] of the store.
//
// Each replica has at most one statement under way. Requests that arrive meanwhile make up the next
// batch, in the order of their arrival, so that a busy key costs one statement per batch and not per
// call. count_1 decides a batch while it holds the locks of its keys, so no limit is exceeded.
//
// The database has one number of running calls for each key and replica. This replica knows its own
// places, and writes the absolute number when it frees one. It writes all its numbers again after a
// statement whose result was lost, and over a new connection, since a crash of the database empties the
// tables.
type counter struct {
	// Fixed at creation.
	s    *store
	pool *pgxpool.Pool // one connection

	mu      sync.Mutex
	queue   []*request
	sending bool // a goroutine sends batches
	failing bool // the last batch failed
	held    map[string]*holding
	// stale are the keys whose number of running calls in the database may be wrong.
	stale map[string]bool
	rows  map[string]int64 // counters in the database, about, by digest of the limit
	// overflown is set when a key has no counter of its own.
	overflown bool
	// conn and me sent the last batch; conn is nil if the next one writes all
	// numbers of this replica again.
	conn *pgx.Conn
	me   replica
	// Until resetUntil, each heartbeat writes all numbers again.
	resetUntil time.Time
	secret     []byte
}

// A holding is the running calls of this replica that count for a key. A call has a place: its id in the
// holding.
type holding struct {
	ends map[string]time.Time // by place
	// soonest is not after the first end.
	soonest time.Time
}

// A request is one Take, or one Release without charges. verdict and err are set before done is closed.
type request struct {
	charges []charge
	done    chan struct{}
	verdict call.LimitVerdict
	err     error
	tries   int
	// abandoned is set when no caller waits for the request; mu of the counter is held.
	abandoned bool
}

// A charge is a charge in the form of count_1.
type charge struct {
	key             string
	limit           *call.LimitCharge
	interval, burst int64 // 0 without a rate
	most            int64
	hold            time.Duration
	place           string
	mustAdd         bool // the key belongs to the overflow
}

func newCounter(s *store) *counter {
	return &counter{s: s, rows: map[string]int64{}, held: map[string]*holding{}, stale: map[string]bool{}}
}

// SharedLimits returns the limits that all replicas count together, with a secret that they share.
func (s *store) SharedLimits() (*call.SharedLimits, error) {
	if _, err := s.replica(); err != nil {
		return nil, err
	}
	c := s.counter
	c.mu.Lock()
	secret := c.secret
	c.mu.Unlock()
	if secret == nil {
		var err error
		if secret, err = c.loadSecret(); err != nil {
			return nil, fmt.Errorf("read the secret of limits: %w", err)
		}
	}
	return &call.SharedLimits{Store: c, Secret: secret}, nil
}

// loadSecret reads the secret, which the first replica makes. It encrypts one of an old key again.
func (c *counter) loadSecret() (secret []byte, err error) {
	var rows map[string]int64
	err = c.s.do(func(ctx context.Context, conn *pgxpool.Conn) error {
		made := make([]byte, 32)
		rand.Read(made)
		if _, err := conn.Exec(ctx, c.s.q(`INSERT INTO {s}.secrets VALUES ('limits', $1) ON CONFLICT DO NOTHING`), c.s.cipher.seal("secret", "limits", made)); err != nil {
			return err
		}
		var sealed []byte
		err := conn.QueryRow(ctx, c.s.q(`SELECT secret FROM {s}.secrets WHERE name = 'limits'`)).Scan(&sealed)
		if err != nil {
			return err
		}
		if rows, err = c.countRows(ctx, conn); err != nil {
			return err
		}
		if secret, err = c.s.cipher.open("secret", "limits", sealed); err != nil {
			return err
		}
		if !c.s.cipher.isCurrent(sealed) {
			_, err = conn.Exec(ctx, c.s.q(`UPDATE {s}.secrets SET secret = $1 WHERE name = 'limits' AND secret = $2`), c.s.cipher.seal("secret", "limits", secret), sealed)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.secret, c.rows = secret, rows
	return secret, nil
}

// countRows counts the counters of each limit.
func (c *counter) countRows(ctx context.Context, conn *pgxpool.Conn) (map[string]int64, error) {
	counted, err := conn.Query(ctx, c.s.q(`SELECT substring(key FOR $1), count(*) FROM {s}.counters GROUP BY 1 ORDER BY 2 DESC LIMIT 10000`), nameSize)
	if err != nil {
		return nil, err
	}
	rows := map[string]int64{}
	var limit []byte
	var n int64
	_, err = pgx.ForEachRow(counted, []any{&limit, &n}, func() error {
		rows[string(limit)] = n
		return nil
	})
	return rows, err
}

// Take implements [call.LimitStore].
func (c *counter) Take(ctx context.Context, charges []call.LimitCharge) (call.LimitVerdict, error) {
	r := &request{charges: make([]charge, len(charges)), done: make(chan struct{})}
	for i := range charges {
		r.charges[i] = chargeOf(&charges[i])
	}
	if err := c.send(ctx, r); err != nil {
		return call.LimitVerdict{}, err
	}
	return r.verdict, r.err
}

func chargeOf(l *call.LimitCharge) charge {
	c := charge{key: counterKey(l.Limit, l.Key), limit: l, most: int64(max(l.Concurrency, 0)), hold: min(l.Hold, maxSpan), place: l.Place}
	if l.Calls > 0 && l.Per > 0 {
		calls := int64(l.Calls)
		c.interval = min((int64(l.Per)-1)/calls+1, maxSpan)
		c.burst = maxSpan
		if burst := int64(max(l.Burst, 1)); burst < maxSpan/c.interval {
			c.burst = burst * c.interval
		}
	}
	return c
}

// counterKey returns the key in the database: the digests of the limit and of its key.
func counterKey(limit, key string) string {
	return string(digest(limit)[:nameSize]) + string(digest(key)[nameSize:])
}

// overflowKey returns the key that keys of a limit without a counter share.
// All legs of a call have the same: later ones have no rate, and hold places.
func overflowKey(l *call.LimitCharge) string {
	calls, per := l.Calls, l.Per
	if l.Concurrency > 0 {
		calls, per = 0, 0
	}
	return counterKey(l.Limit, fmt.Sprintf("overflow %d %d %d %s", calls, per, l.Concurrency, l.Limit))
}

// Release implements [call.LimitStore]. A place that could not be freed is freed by a later batch.
func (c *counter) Release(ctx context.Context, charges []call.LimitCharge) error {
	freed := false
	c.mu.Lock()
	for i := range charges {
		l := &charges[i]
		freed = c.free(counterKey(l.Limit, l.Key), l.Place) || c.overflown && c.free(overflowKey(l), l.Place) || freed
	}
	away := c.away()
	c.mu.Unlock()
	if !freed || away {
		return nil
	}
	r := &request{done: make(chan struct{})}
	if err := c.send(ctx, r); err != nil {
		return err
	}
	return r.err
}

// free removes a place of a key, if it is held; mu is held.
func (c *counter) free(key, place string) bool {
	h := c.held[key]
	if h == nil {
		return false
	}
	if _, held := h.ends[place]; !held {
		return false
	}
	delete(h.ends, place)
	c.stale[key] = true
	return true
}

// renew writes the numbers of running calls again if that may be needed, and so finds out whether the
// database has them.
func (c *counter) renew() {
	now := c.s.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.held {
		c.prune(key, now)
	}
	again := now.Before(c.resetUntil)
	if again {
		c.conn = nil
	}
	if again || len(c.held)+len(c.stale) > 0 {
		_ = c.add(&request{done: make(chan struct{})}) // the store is closed
	}
}

// errAway is the error while neither heartbeats nor batches reach the database, so that calls do not
// wait in vain.
var errAway = errors.New("the state database cannot be reached")

// send waits until a request is decided, or ctx ends.
func (c *counter) send(ctx context.Context, r *request) error {
	c.mu.Lock()
	err := c.add(r)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-r.done:
		return nil
	default:
		r.abandoned = true
		return context.Cause(ctx)
	}
}

// add adds a request to the next batch; mu is held.
func (c *counter) add(r *request) error {
	if len(r.charges) > 0 && c.away() {
		return errAway
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.closed {
		return state.ErrClosed
	}
	c.queue = append(c.queue, r)
	if !c.sending {
		c.sending = true
		c.s.background.Go(c.sendAll)
	}
	return nil
}

// away reports whether the database is away; mu is held.
func (c *counter) away() bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.failure != nil && c.failing
}

// sendAll sends batches until no request is left.
func (c *counter) sendAll() {
	for {
		runtime.Gosched() // the callers of the last batch may have requests for this one
		b := c.next()
		if b == nil {
			return
		}
		c.complete(b, c.run(b))
	}
}

// A batch is the arguments and the results of count_1.
type batch struct {
	requests []*request
	// asserted are the keys whose number of running calls is written.
	asserted map[string]bool
	// reset removes the numbers of all other keys.
	reset   bool
	keys    [][]byte
	may     []bool // the key may be added
	charges []int64
	reply   []int64
}

// next returns the next batch, or nil.
func (c *counter) next() *batch {
	now := c.s.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &batch{asserted: map[string]bool{}}
	slots := map[string]bool{}
	taken, charges := 0, 0
	for _, r := range c.queue {
		if charges > 0 && charges+len(r.charges) > batchCharges {
			break
		}
		taken++
		if r.abandoned {
			continue
		}
		b.requests = append(b.requests, r)
		charges += len(r.charges)
		for i := range r.charges {
			a := &r.charges[i]
			slots[a.key] = slots[a.key] || a.mustAdd
			if a.most > 0 {
				c.prune(a.key, now)
			}
		}
	}
	c.queue = slices.Delete(c.queue, 0, taken)
	if len(b.requests) == 0 { // and the queue is empty
		c.sending = false
		return nil
	}
	bound := int64(cmp.Or(c.s.hooks.counters, maxCounters))
	index := make(map[string]int64, len(slots))
	for _, key := range slices.Sorted(maps.Keys(slots)) {
		b.keys, b.may = append(b.keys, []byte(key)), append(b.may, slots[key] || c.rows[key[:nameSize]] < bound)
		index[key] = int64(len(b.keys))
	}
	for n, r := range b.requests {
		for _, a := range r.charges {
			b.charges = append(b.charges, int64(n+1), index[a.key], a.interval, a.burst, a.most, int64(a.hold))
		}
	}
	return b
}

// prune removes the places of a key whose hold has ended; mu is held.
func (c *counter) prune(key string, now time.Time) {
	h := c.held[key]
	if h == nil || now.Before(h.soonest) {
		return
	}
	h.soonest = now.Add(maxSpan)
	for place, ends := range h.ends {
		if !ends.After(now) {
			delete(h.ends, place)
			c.stale[key] = true
		} else if ends.Before(h.soonest) {
			h.soonest = ends
		}
	}
}

// run sends a batch.
func (c *counter) run(b *batch) error {
	return c.s.asReplica("count", func(me replica) error {
		err := c.s.doWithin(c.pool, countTimeout, func(ctx context.Context, conn *pgxpool.Conn) error {
			keys, running, left := c.assert(b, conn.Conn(), me)
			return conn.QueryRow(ctx, c.s.q(`SELECT {s}.count_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`),
				me.fence, c.s.givenNanos(), b.reset, keys, running, left, b.keys, b.may, len(b.requests), b.charges).Scan(&b.reply)
		})
		switch {
		case err != nil:
			return err
		case len(b.reply) != 3+2*len(b.requests):
			return fmt.Errorf("count calls: the database returned %d numbers", len(b.reply))
		case b.reply[0] == dead:
			return errDead
		}
		return nil
	})
}

// assert returns the keys whose numbers of running calls the batch writes, the numbers, and the nanoseconds
// that are left of the longest hold.
func (c *counter) assert(b *batch, conn *pgx.Conn, me replica) (keys [][]byte, running []int32, left []int64) {
	now := c.s.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn != c.conn || me != c.me {
		for key := range c.held {
			c.stale[key] = true
		}
		c.conn, c.me, b.reset = conn, me, true
	}
	maps.Copy(b.asserted, c.stale)
	clear(c.stale)
	for _, key := range slices.Sorted(maps.Keys(b.asserted)) {
		n, last := 0, now
		if h := c.held[key]; h != nil {
			n = len(h.ends)
			for _, ends := range h.ends {
				if ends.After(last) {
					last = ends
				}
			}
		}
		keys, running, left = append(keys, []byte(key)), append(running, int32(n)), append(left, int64(last.Sub(now)))
	}
	return keys, running, left
}

// complete gives the results of a batch to its requests.
func (c *counter) complete(b *batch, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = err != nil
	if err != nil {
		c.conn = nil // so that the next batch writes all numbers again
		c.resetUntil = c.s.Now().Add(resetFor)
		maps.Copy(c.stale, b.asserted)
	} else {
		c.noteAdded(b, b.reply[2])
		for key := range b.asserted {
			if h := c.held[key]; h != nil && len(h.ends) == 0 {
				delete(c.held, key)
			}
		}
	}
	first := int64(1) // the number of the first charge of a request
	for n, r := range b.requests {
		r.err = err
		if err != nil || c.decided(r, first, b.reply[3+2*n], b.reply[4+2*n], b) {
			close(r.done)
		}
		first += int64(len(r.charges))
	}
}

// noteAdded notes that a batch has added counters. The database does not say of which limits: those with
// keys in the batch may be counted too high, by these keys at most, until the next sweep; mu is held.
func (c *counter) noteAdded(b *batch, added int64) {
	if added == 0 {
		return
	}
	of := map[string]int64{}
	for _, key := range b.keys {
		of[string(key[:nameSize])]++
	}
	for limit, keys := range of {
		c.rows[limit] += min(keys, added)
	}
}

// decided notes the reply to a request, or returns false if it must be sent again; mu is held.
func (c *counter) decided(r *request, first, over, wait int64, b *batch) bool {
	switch {
	case over < 0 && c.retry(r, int(-over-first), b):
		return false
	case over < 0:
		r.err = errors.New("the counter of a limit is removed again and again")
	case over > 0:
		r.verdict = call.LimitVerdict{Over: int(over - first), Busy: wait < 0, Wait: time.Duration(max(wait, -wait))}
	default:
		r.verdict.Taken = true
		c.hold(r, time.Unix(0, b.reply[1]))
	}
	return true
}

// retry puts a request into the next batch, since a charge has no counter: it was just removed, or there
// are too many. mu is held.
func (c *counter) retry(r *request, i int, b *batch) bool {
	a := &r.charges[i]
	if r.tries++; r.tries > 2*len(r.charges)+2 {
		return false
	}
	if n, _ := slices.BinarySearchFunc(b.keys, []byte(a.key), bytes.Compare); !b.may[n] {
		a.key, a.mustAdd, c.overflown = overflowKey(a.limit), true, true
	}
	c.queue = append(c.queue, r)
	return true
}

// hold notes the places of a request; mu is held. If no caller waits for it, its places are free.
func (c *counter) hold(r *request, now time.Time) {
	for _, a := range r.charges {
		if a.most == 0 {
			continue
		}
		if r.abandoned {
			c.stale[a.key] = true
			continue
		}
		h, ends := c.held[a.key], now.Add(a.hold)
		if h == nil {
			h = &holding{ends: map[string]time.Time{}, soonest: ends}
			c.held[a.key] = h
		}
		if ends.Before(h.soonest) {
			h.soonest = ends
		}
		h.ends[a.place] = ends
	}
}

// sweep removes counters in their initial state, and the numbers of dead replicas. The oldest replica whose
// heartbeats arrive does it for all.
func (c *counter) sweep() error {
	me, err := c.s.replica()
	if err != nil {
		return err
	}
	const most = 16 * sweepBatch // a statement starts at the first row
	for removed := int64(most); removed == most; {
		err := c.s.do(func(ctx context.Context, conn *pgxpool.Conn) error {
			// sweep_counters_1 requires the id of the oldest replica. It is given for one that is away.
			return conn.QueryRow(ctx, c.s.q(`SELECT CASE WHEN $1 = (SELECT id FROM {s}.replicas WHERE beat > {s}.clock_1(NULL) - $4::bigint ORDER BY fence LIMIT 1)
				THEN {s}.sweep_counters_1((SELECT id FROM {s}.replicas ORDER BY fence LIMIT 1), $2, $3) ELSE 0 END`),
				me.id, c.s.givenNanos(), most, awayAfter.Milliseconds()).Scan(&removed)
		})
		if err != nil {
			return fmt.Errorf("remove counters of limits: %w", err)
		}
	}
	var rows map[string]int64
	err = c.s.do(func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		rows, err = c.countRows(ctx, conn)
		return err
	})
	if err != nil {
		return fmt.Errorf("count counters of limits: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = rows
	return nil
}

// givenNanos returns the time of Options.Now in nanoseconds, or nil for the database's.
func (s *store) givenNanos() *int64 {
	if s.options.Now == nil {
		return nil
	}
	now := s.options.Now().UnixNano()
	return &now
}
