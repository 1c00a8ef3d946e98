package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/internal/base/state"
)

func (s *store) CreateTask(t state.Task) (state.Task, error) {
	t = state.NewTask(t, s.Now())
	r, err := t.Record()
	if err != nil {
		return t, err
	}
	data := s.cipher.seal("task", t.ID, r.Data)
	var runner replica
	err = s.withRoom(state.TaskKind, func(bool) error {
		return s.asReplica("task", func(me replica) error {
			runner = me
			var outcome int
			var soonest *int64
			err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
				return c.QueryRow(ctx, s.q(`SELECT outcome, soonest FROM {s}.create_task_1($1, $2, $3, $4, $5, $6, $7, $8, $9)`),
					[]byte(t.ID), digest(r.Owner), me.id, me.fence, int16(r.Phase), r.Expires, r.Size, data, limitsOf(s.options.Limits(state.TaskKind))).Scan(&outcome, &soonest)
			})
			if err != nil {
				return fmt.Errorf("write a task: %w", err)
			}
			return s.outcomeError(state.TaskKind, outcome, soonest)
		})
	})
	if err != nil && !errors.As(err, new(*state.FullError)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unstarted[t.ID] = runner
	}
	t.Runner = runner.name()
	return t, err
}

func (s *store) Task(owner state.Owner, id string) (state.Task, error) {
	if _, err := s.replica(); err != nil {
		return state.Task{}, err
	}
	var data []byte
	var ran replica
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, s.q(`SELECT data, replica, fence FROM {s}.tasks WHERE id = $1 AND owner = $2 AND expires > {s}.clock_1($3)`), []byte(id), digest(owner.Key()), s.given()).Scan(&data, &ran.id, &ran.fence)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return state.Task{}, state.ErrNotFound
	}
	if err != nil {
		return state.Task{}, fmt.Errorf("read a task: %w", err)
	}
	return s.decodeTask(id, data, ran)
}

func (s *store) Tasks(most int) (tasks []state.Task, err error) {
	if _, err := s.replica(); err != nil {
		return nil, err
	}
	err = s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		tasks = nil // of an attempt before
		rows, err := c.Query(ctx, s.q(`SELECT id, data, replica, fence FROM {s}.tasks WHERE expires > (SELECT {s}.clock_1($1)) ORDER BY expires DESC, id LIMIT $2`), s.given(), most)
		if err != nil {
			return err
		}
		var id, data []byte
		var ran replica
		_, err = pgx.ForEachRow(rows, []any{&id, &data, &ran.id, &ran.fence}, func() error {
			if t, err := s.decodeTask(string(id), data, ran); err == nil {
				tasks = append(tasks, t.Summary())
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	return tasks, nil
}

func (s *store) decodeTask(id string, data []byte, ran replica) (state.Task, error) {
	data, err := s.cipher.open("task", id, data)
	if err != nil {
		return state.Task{}, fmt.Errorf("read a task: %w", err)
	}
	t, err := state.DecodeTask(id, data)
	if t.Status == state.Working {
		t.Runner = ran.name()
	}
	return t, err
}

// name returns the name of a replica as the runner of a task.
func (r replica) name() string { return fmt.Sprintf("%s %d", r.id, r.fence) }

func (s *store) UpdateTask(owner state.Owner, id string, change func(*state.Task) error) (t state.Task, err error) {
	release, err := s.turn(id)
	if err != nil {
		return state.Task{}, err
	}
	defer release()
	u := taskUpdate{owner: owner, id: id, change: change}
	err = s.withRoom(state.TaskKind, func(bool) error {
		return s.asReplica("task", func(me replica) error {
			return s.do(func(ctx context.Context, c *pgxpool.Conn) (err error) {
				t, err = s.updateIn(ctx, c, me, &u)
				return err
			})
		})
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case u.runner.id == "":
	case err == nil:
		delete(s.unstarted, id)
	case u.sent != nil:
		s.unstarted[id] = u.runner
	}
	return t, err
}

// taskUpdate is a change of a task, which runs again after a lost connection.
type taskUpdate struct {
	owner  state.Owner
	id     string
	change func(*state.Task) error
	// sent is what an earlier try has sent to be committed, and task, version and runner belong to it: the
	// new task, its version, and the replica that runs it from then on.
	sent    []byte
	task    state.Task
	version int64
	runner  replica
}

// committed reports whether an earlier try was committed. The transaction has locked the task, so the
// earlier one has ended. If the task has changed since in another way, the error says that this is unknown.
func (u *taskUpdate) committed(data []byte, ran replica, version int64) (bool, error) {
	switch {
	case u.sent == nil || version == u.version-1:
		return false, nil
	case version == u.version && bytes.Equal(data, u.sent) && (u.runner.id == "" || ran == u.runner):
		return true, nil
	}
	return false, errors.New("the connection was lost during the commit, and the task has changed since")
}

// updateIn changes a task in a transaction of two round trips.
func (s *store) updateIn(ctx context.Context, c *pgxpool.Conn, me replica, u *taskUpdate) (state.Task, error) {
	id := u.id
	var alive bool
	var data []byte
	var ran replica
	var now, version int64
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(s.q(`SELECT {s}.alive_1($1, $2)`), me.id, me.fence).QueryRow(func(row pgx.Row) error { return row.Scan(&alive) })
	b.Queue(s.q(`SELECT data, replica, fence, version, {s}.clock_1($3) FROM {s}.tasks WHERE id = $1 AND owner = $2 AND expires > {s}.clock_1($3) FOR UPDATE`), []byte(id), digest(u.owner.Key()), s.given()).
		QueryRow(func(row pgx.Row) error { return row.Scan(&data, &ran.id, &ran.fence, &version, &now) })
	err := c.SendBatch(ctx, b).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		err = state.ErrNotFound
	} else if err != nil {
		return state.Task{}, fmt.Errorf("read a task: %w", err)
	}
	var old, t state.Task
	done := false
	if err == nil {
		done, err = u.committed(data, ran, version)
	}
	if done {
		_, _ = c.Exec(ctx, "ROLLBACK") // a connection in a transaction is not used again
		s.changedHere(id, version)
		return u.task, nil
	}
	if err == nil {
		old, err = s.decodeTask(id, data, ran)
	}
	// An ended task is reported as such even to a replica that was presumed dead.
	if err == nil && !alive && !old.Status.Ended() {
		err = errDead
	}
	if err == nil {
		t, err = s.changed(old, ran, u.change, time.UnixMilli(now))
	}
	var r state.Record
	if err == nil {
		r, err = t.Record()
	}
	if err != nil {
		if _, failed := c.Exec(ctx, "ROLLBACK"); failed != nil {
			_ = c.Conn().Close(ctx)
		}
		return old, refusal{err}
	}
	runner := replica{}
	if t.Status == state.Working && old.Status != state.Working {
		runner = me
	}
	if t.Status != state.Working {
		t.Runner = ""
	} else if runner.id != "" {
		t.Runner = runner.name()
	}
	var outcome int
	var soonest, newest *int64
	u.sent, u.task, u.version, u.runner = s.cipher.seal("task", id, r.Data), t, version+1, runner
	b = &pgx.Batch{}
	b.Queue(s.q(`SELECT outcome, soonest, newest FROM {s}.update_task_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`), []byte(id), runner.id, runner.fence, int16(r.Phase), r.Expires, r.Size,
		u.sent, limitsOf(s.options.Limits(state.TaskKind)), s.channel, me.id).QueryRow(func(row pgx.Row) error { return row.Scan(&outcome, &soonest, &newest) })
	b.Queue("COMMIT")
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		return old, fmt.Errorf("write a task: %w", err)
	}
	if outcome == full {
		u.sent = nil
		return old, refusal{s.fullError(state.TaskKind, soonest)}
	}
	if newest != nil {
		s.changedHere(id, *newest)
	}
	return t, nil
}

// failUnstarted fails tasks that this replica may have been given to run by a commit whose result did not
// arrive: its caller got an error, and nothing runs.
func (s *store) failUnstarted() error {
	s.mu.Lock()
	open := maps.Clone(s.unstarted)
	s.mu.Unlock()
	for id := range open {
		if err := s.failOne(id); err != nil {
			return fmt.Errorf("fail a task: %w", err)
		}
	}
	return nil
}

func (s *store) failOne(id string) error {
	release, err := s.turn(id)
	if err != nil {
		return err
	}
	defer release()
	s.mu.Lock()
	runner, still := s.unstarted[id] // it may have been started since
	me := s.me
	s.mu.Unlock()
	if !still {
		return nil
	}
	err = s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		tx, err := c.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		if err := s.failTasks(ctx, tx, me, []string{runner.id}, []byte(id)); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unstarted, id)
	s.requestPollLocked()
	return nil
}

// changed returns the task after a change. If this replica was presumed dead while it ran the task, the error
// says so: failTasks has set the fence to 0.
func (s *store) changed(old state.Task, ran replica, change func(*state.Task) error, now time.Time) (state.Task, error) {
	if s.options.Now != nil {
		now = s.options.Now()
	}
	t, err := old.Changed(change, now)
	if errors.Is(err, state.ErrEnded) && ran.fence == 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ran.id == s.me.id || s.former[ran.id] {
			err = fmt.Errorf("%w: %w", state.ErrEnded, state.ErrPresumedDead)
		}
	}
	return t, err
}

// A watch is a task with its watchers; mu is held.
type watch struct {
	version  int64
	watchers map[chan struct{}]bool
}

func (s *store) WatchTask(owner state.Owner, id string) (changes <-chan struct{}, stop func(), err error) {
	if _, err := s.replica(); err != nil {
		return nil, nil, err
	}
	var version int64
	err = s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, s.q(`SELECT version FROM {s}.tasks WHERE id = $1 AND owner = $2 AND expires > {s}.clock_1($3)`), []byte(id), digest(owner.Key()), s.given()).Scan(&version)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, state.ErrNotFound
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read a task: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, state.ErrClosed
	}
	w := s.watches[id]
	if w == nil {
		w = &watch{version: version, watchers: map[chan struct{}]bool{}}
		s.watches[id] = w
	}
	watcher := make(chan struct{}, 1)
	w.watchers[watcher] = true
	return watcher, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(w.watchers, watcher)
		if len(w.watchers) == 0 && s.watches[id] == w {
			delete(s.watches, id)
		}
	}, nil
}

// changedHere notifies the watchers of a change by this replica.
func (s *store) changedHere(id string, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify(id, version)
}

// notify notifies the watchers of a task unless they know the version; mu is held.
func (s *store) notify(id string, version int64) {
	w := s.watches[id]
	if w == nil || version <= w.version {
		return
	}
	w.version = version
	for watcher := range w.watchers {
		select {
		case watcher <- struct{}{}:
		default: // the pending notification covers this change
		}
	}
}

// unwatch closes the channels of the watchers of a removed task; mu is held.
func (s *store) unwatch(id string) {
	for watcher := range s.watches[id].watchers {
		close(watcher)
	}
	delete(s.watches, id)
}

func (s *store) pollTasks() {
	s.mu.Lock()
	var ids [][]byte
	missing := map[string]*watch{}
	for id, w := range s.watches {
		ids = append(ids, []byte(id))
		missing[id] = w
	}
	s.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	type row struct {
		ID      []byte
		Version int64
	}
	var found []row
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, s.q(`SELECT id, version FROM {s}.tasks WHERE id = ANY ($1) AND expires > (SELECT {s}.clock_1($2))`), ids, s.given())
		if err == nil {
			found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		}
		return err
	})
	if err != nil {
		return // the next look may succeed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range found {
		delete(missing, string(r.ID))
		s.notify(string(r.ID), r.Version)
	}
	for id, w := range missing {
		if s.watches[id] == w {
			s.unwatch(id)
		}
	}
}
