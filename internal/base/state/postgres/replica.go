package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/internal/base/state"
)

// beatAlways sends the heartbeat until the store is closed.
func (s *store) beatAlways() {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
		stale, err := s.sendBeat()
		if err == nil {
			select {
			case s.repairs <- stale:
			default: // the work before is not done
			}
		}
		s.mu.Lock()
		was := s.failure != nil
		if s.failure = err; s.ctx.Err() != nil {
			s.failure = nil // Close caused the error, and not the database
		}
		is := s.failure != nil
		s.mu.Unlock()
		if is && !was {
			s.options.Logger.Warn("reach state database", slog.String("database", s.address), slog.String("error", err.Error()))
		}
		if was && !is {
			s.options.Logger.Info("state database reached again", slog.String("database", s.address))
		}
	}
}

// repairAlways does what is due after heartbeats, which do not wait for it.
func (s *store) repairAlways() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case stale := <-s.repairs:
			if err := s.repair(stale); err != nil && s.ctx.Err() == nil {
				s.options.Logger.Warn("reach state database", slog.String("database", s.address), slog.String("error", err.Error()))
			}
		}
	}
}

// repair removes replicas that are presumed dead, if any, and repairs the work and the places of limits of
// this replica.
func (s *store) repair(stale bool) (err error) {
	s.counter.renew()
	if stale {
		err = s.removeDead("")
	}
	s.settle()
	return cmp.Or(err, s.release(), s.failUnstarted())
}

// beat sends one heartbeat, and does what is due after it.
func (s *store) beat() error {
	stale, err := s.sendBeat()
	if err != nil {
		return err
	}
	return s.repair(stale)
}

// sendBeat sends one heartbeat, over a connection for it alone: a busy replica is not dead. stale is true if
// others are to be removed.
func (s *store) sendBeat() (stale bool, err error) {
	me, err := s.replica()
	if err != nil {
		return false, err
	}
	var alive bool
	var now int64
	info := s.info(me)
	sent := time.Now()
	err = s.doWithin(s.beatPool, beatTimeout, func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, s.q(`WITH mine AS (UPDATE {s}.replicas SET beat = {s}.clock_1(NULL), info = coalesce($3, info) WHERE id = $1 AND fence = $2 RETURNING 1),
			t AS (SELECT {s}.clock_1(NULL) AS now)
			SELECT EXISTS (SELECT 1 FROM mine), EXISTS (SELECT 1 FROM {s}.replicas, t WHERE id <> $1 AND beat < t.now - 10000), now FROM t`),
			me.id, me.fence, info).Scan(&alive, &stale, &now)
	})
	if err != nil {
		return false, fmt.Errorf("send a heartbeat: %w", err)
	}
	if !alive {
		if err := s.registerAgain(me); err != nil {
			return false, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setClock(now, sent)
	// If the database was away for this replica, it may have been away for all.
	if time.Since(s.beaten) > deadAfter {
		s.removeFrom = time.Now().Add(deadAfter)
	}
	s.beaten = time.Now()
	return stale && time.Now().After(s.removeFrom), nil
}

// registerAgain registers this replica again after it was presumed dead as old. What it had started is lost.
func (s *store) registerAgain(old replica) error {
	s.registering.Lock()
	defer s.registering.Unlock()
	if me, err := s.replica(); err != nil || me != old {
		return err
	}
	if err := s.register(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.former[old.id] = true
	running := 0
	for _, f := range s.flights {
		if f.phase == working && f.replica == old {
			f.phase = fenced
			f.end(state.Claim{}, state.ErrLost)
			running++
		}
	}
	s.options.Logger.Warn("state store presumed this server dead", slog.String("database", s.address), slog.Int("lost", running))
	return nil
}

// Errors of an operation that starts work for a replica. After errDead it runs again, under a new id.
var (
	errDead      = errors.New("this replica was presumed dead")
	errStillDead = errors.New("this server was presumed dead again")
)

// asReplica writes a record for this replica. If op returns errDead, asReplica takes a new id and calls
// op again, once.
func (s *store) asReplica(record string, op func(me replica) error) error {
	for range 2 {
		me, err := s.replica()
		if err != nil {
			return err
		}
		if err := op(me); !errors.Is(err, errDead) {
			return err
		}
		if err := s.registerAgain(me); err != nil {
			return err
		}
	}
	return fmt.Errorf("write a %s: %w", record, errStillDead)
}

// outcomeError returns the error for the outcome of a statement that starts work.
func (s *store) outcomeError(k state.Kind, outcome int, soonest *int64) error {
	switch outcome {
	case dead:
		return errDead
	case full:
		return s.fullError(k, soonest)
	}
	return nil
}

// removeDead deletes the replicas that are presumed dead or, with an id, one, loses their claims and fails
// their tasks.
func (s *store) removeDead(one string) error {
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error { return s.removeDeadIn(ctx, c.Conn(), one) })
	if err != nil {
		return fmt.Errorf("end the work of other replicas: %w", err)
	}
	return nil
}

// removeDeadIn locks replicas, claims, tasks and usage in this order, as all operations do.
func (s *store) removeDeadIn(ctx context.Context, c *pgx.Conn, one string) error {
	s.mu.Lock()
	me := s.me
	s.mu.Unlock()
	tx, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	rows, err := tx.Query(ctx, s.q(`SELECT {s}.bury_1($1, $2, $3)`), me.id, one, s.channel)
	if err != nil {
		return err
	}
	removed, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(removed) == 0 {
		return err
	}
	if err := s.failTasks(ctx, tx, me, removed, nil); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	if one == "" {
		s.options.Logger.Warn("presume replica dead", slog.Int("count", len(removed)))
	}
	s.requestPoll()
	return nil
}

// failTasks fails the tasks of replicas, or only one of them. A task that this version cannot read stays.
func (s *store) failTasks(ctx context.Context, tx pgx.Tx, me replica, replicas []string, one []byte) error {
	rows, err := tx.Query(ctx, s.q(`SELECT id, owner, size, data FROM {s}.tasks WHERE replica = ANY ($1) AND status < 2 AND ($2::bytea IS NULL OR id = $2) ORDER BY id FOR UPDATE`), replicas, one)
	if err != nil {
		return err
	}
	type row struct {
		ID, Owner []byte
		Size      int64
		Data      []byte
	}
	open, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return err
	}
	var owners [][]byte
	var counts, grown []int64
	for _, r := range open {
		record, ok, err := s.interrupted(string(r.ID), r.Data)
		if err != nil {
			s.options.Logger.Warn("read task of dead replica", slog.String("error", err.Error()))
		}
		if !ok {
			continue
		}
		_, err = tx.Exec(ctx, s.q(`UPDATE {s}.tasks SET status = $2, size = $3, data = $4, version = version + 1, fence = 0 WHERE id = $1`),
			r.ID, int16(record.Phase), record.Size, s.cipher.seal("task", record.ID, record.Data))
		if err == nil {
			_, err = tx.Exec(ctx, `SELECT pg_notify($1, $2)`, s.channel, me.id+" task "+record.ID)
		}
		if err != nil {
			return err
		}
		owners, counts, grown = append(owners, r.Owner), append(counts, 0), append(grown, record.Size-r.Size)
	}
	if len(owners) == 0 {
		return nil
	}
	_, err = tx.Exec(ctx, s.q(`SELECT {s}.adjust_1(3::smallint, $1, $2, $3)`), owners, counts, grown)
	return err
}

// interrupted returns the record of a task after the end of its replica; ok is false if it can continue.
func (s *store) interrupted(id string, data []byte) (r state.Record, ok bool, err error) {
	data, err = s.cipher.open("task", id, data)
	if err != nil {
		return state.Record{}, false, err
	}
	t, err := state.DecodeTask(id, data)
	if err != nil {
		return state.Record{}, false, err
	}
	if t, ok = t.Interrupted(s.Now()); !ok {
		return state.Record{}, false, nil
	}
	r, err = t.Record()
	return r, err == nil, err
}

// listenAlways receives the notifications of other replicas until the store is closed.
func (s *store) listenAlways() {
	for s.ctx.Err() == nil {
		_ = s.listen() // the heartbeat reports a database that is away
		select {
		case <-s.ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}

// quiet is the time without a notification after which the listening connection is tested.
const quiet = 30 * time.Second

func (s *store) listen() error {
	ctx, cancel := context.WithTimeout(s.ctx, opTimeout)
	defer cancel()
	c, err := pgx.ConnectConfig(ctx, s.config.Copy())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{s.channel}.Sanitize()); err != nil {
		return err
	}
	s.requestPoll() // for what was missed
	for {
		ctx, cancel := context.WithTimeout(s.ctx, quiet)
		n, err := c.WaitForNotification(ctx)
		cancel()
		if err == nil {
			s.handleNotification(n.Payload)
			continue
		}
		if s.ctx.Err() != nil || c.IsClosed() {
			return err
		}
		ctx, cancel = context.WithTimeout(s.ctx, opTimeout)
		err = c.Ping(ctx)
		cancel()
		if err != nil {
			return err
		}
	}
}

// handleNotification handles a notification: the id of a replica, "claim", "task" or "message", and the
// nonce, the task or the number.
func (s *store) handleNotification(payload string) {
	words := strings.SplitN(payload, " ", 3)
	if len(words) != 3 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if words[0] == s.me.id {
		return
	}
	if words[1] == "claim" || words[1] == "message" || s.watches[words[2]] != nil {
		s.requestPollLocked()
	}
}

// requestPoll makes pollAlways look at once.
func (s *store) requestPoll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requestPollLocked()
}

func (s *store) requestPollLocked() {
	select {
	case s.pollRequests <- struct{}{}:
	default: // one look covers both
	}
}

// pollAlways looks for the ends of claims, the changes of tasks and the messages of other replicas: after a
// notification, and each second, as notifications can be lost with their connection.
func (s *store) pollAlways() {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
			if s.hooks.noPoll {
				continue
			}
		case <-s.pollRequests:
		}
		s.pollClaims()
		s.pollTasks()
		s.pollMessages()
	}
}

func (s *store) pollClaims() {
	s.mu.Lock()
	waiting := map[state.Nonce]*flight{}
	var nonces [][]byte
	for nonce, f := range s.flights {
		if f.phase == remote {
			waiting[nonce] = f
			nonces = append(nonces, nonce[:])
		}
	}
	s.mu.Unlock()
	if len(nonces) == 0 {
		return
	}
	type row struct {
		Nonce  []byte
		Phase  *int16
		Answer []byte
	}
	var found []row
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, s.q(`SELECT n, phase, answer FROM unnest($1::bytea[]) AS n LEFT JOIN {s}.claims ON nonce = n`), nonces)
		if err == nil {
			found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		}
		return err
	})
	if err != nil {
		return // the next look may succeed; the waiters have contexts
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range found {
		if len(r.Nonce) != len(state.Nonce{}) {
			continue
		}
		nonce := state.Nonce(r.Nonce)
		f := waiting[nonce]
		switch {
		case f == nil || s.flights[nonce] != f || r.Phase != nil && *r.Phase == claimed:
		case r.Phase == nil: // expired, or released
			f.again = true
			s.endFlight(nonce, nil)
		default:
			delete(s.flights, nonce)
			f.end(s.endedClaim(int(*r.Phase), string(r.Nonce), r.Answer))
		}
	}
}
