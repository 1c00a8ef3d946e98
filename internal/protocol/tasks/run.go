package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
)

// maxRunningBytes bounds the calls of all running legs, in bytes: no request is
// open that would hold the budget of a transport.
const maxRunningBytes = 64 << 20

// A leg is one execution of the call of a task.
type leg struct {
	store Store
	// task is as it was when the leg started.
	task state.Task
	call call.Request
	// used are the keys of earlier requests to the client.
	used []string
	end  context.CancelCauseFunc
}

// size returns the size of a call, in bytes.
func size(r *call.Request) (bytes int) {
	bytes = len(r.Arguments)
	if r.Resume != nil {
		for key, answer := range r.Resume.Responses {
			bytes += len(key) + len(answer)
		}
	}
	return bytes
}

// reserve makes room for a leg, which the caller runs or releases. The error is
// [errDraining], or a [*state.FullError] if the leg must wait for others.
func (t *Tasks) reserve(r *call.Request) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.running.Draining():
		return errDraining
	case t.bytes+size(r) > maxRunningBytes:
		return &state.FullError{What: "running tasks", Wait: time.Second}
	}
	t.bytes += size(r)
	t.running.Begin()
	return nil
}

// release returns what reserve has reserved.
func (t *Tasks) release(r *call.Request) {
	t.mu.Lock()
	t.bytes -= size(r)
	t.mu.Unlock()
	t.running.End()
}

// The causes for cancelling a leg.
var (
	// ErrCancelled: the client cancelled the task. ErrStopped: the server shuts
	// down. ErrLost: the servers that share the store have failed the task.
	ErrCancelled = errors.New("the client cancelled the task")
	ErrStopped   = errors.New("the server is shutting down")
	ErrLost      = errors.New("the state store presumed this server dead")
	errExpired   = errors.New("the time to live of the task has ended")
)

// Messages for clients about a task without a result.
const (
	msgCancelled = "cancelled by its client"
	msgStopped   = "the server was stopped while the task ran, and its effects are unknown; check them before you repeat the call"
	msgNoRoom    = "the server has no room to store the result of the task"
	msgNotStored = "the server could not store the result of the task"
)

// runLeg runs a leg of a task in the background. The caller has reserved it, and
// holds the turn of the task, unless it has just created the task.
func (t *Tasks) runLeg(ctx context.Context, l *leg) {
	id := l.task.ID
	ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	ctx, release := context.WithTimeoutCause(ctx, l.task.Created.Add(l.task.TTL).Sub(t.now(l.store)), errExpired)
	l.end = end
	t.mu.Lock()
	t.legs[id] = l
	delete(t.unsaved, id) // of an earlier leg, whose outcome was stored
	if t.stopping {
		end(ErrStopped)
	}
	t.mu.Unlock()
	_, leave := t.follow(l.store, l.task.Owner, id)
	go func() {
		defer t.release(&l.call)
		defer leave()
		defer release()
		result := t.options.Run(ctx, l.call)
		cut := result.Err != nil && ctx.Err() != nil && errors.Is(result.Err, context.Cause(ctx))
		t.finish(l, func(s *state.Task) error { return t.apply(l, s, result, cut) })
	}()
}

// now returns the time that decides about tasks of a store.
func (t *Tasks) now(store Store) time.Time { return state.Clock(store, t.options.Now)() }

// apply stores the outcome of a leg in its task. cut is true if the context of
// the leg ended it, without a result.
func (t *Tasks) apply(l *leg, s *state.Task, r call.Result, cut bool) error {
	switch {
	case cut:
		s.Status, s.Message = state.Failed, msgStopped
	case r.Ask != nil:
		return t.suspend(l, s, r.Ask)
	case r.Err != nil:
		s.Status, s.Result = state.Failed, encodeResult(r)
	default:
		s.Status, s.Result = state.Completed, encodeResult(r)
	}
	return nil
}

const (
	// finishWithin is the time in which the outcome of a leg is stored again if the
	// store fails: other servers presume this one dead after it.
	finishWithin = 10 * time.Second
	// finishEvery is the time between two attempts.
	finishEvery = 200 * time.Millisecond
)

// finish stores the outcome of a leg, and tries again while the store fails. It does
// not change a task that was cancelled, has expired, or was continued meanwhile.
func (t *Tasks) finish(l *leg, change func(*state.Task) error) {
	for until := time.Now().Add(finishWithin); ; time.Sleep(finishEvery) {
		done, changed := t.tryFinish(l, change, !time.Now().Before(until))
		if changed {
			t.notify(l.task.ID)
		}
		if done {
			return
		}
	}
}

// tryFinish stores the outcome of a leg once. If that fails the last time, the task
// fails.
func (t *Tasks) tryFinish(l *leg, change func(*state.Task) error, last bool) (done, changed bool) {
	id := l.task.ID
	defer t.turns.take(id)()
	if t.leg(id) != l {
		return true, false // an earlier attempt was stored, and the task continued here
	}
	now, err := updateRunning(l.store, l.task, change)
	if err != nil && !isGone(err) {
		reason := msgNotStored
		if full := (*state.FullError)(nil); errors.As(err, &full) {
			reason = msgNoRoom
		} else if !last {
			return false, false
		}
		t.options.Logger.Error("store task", slog.String("tool", l.task.Tool),
			slog.String("request_id", l.call.Caller.Agent.RequestID), slog.String("error", err.Error()))
		now, err = t.abandon(unsaved{l.store, l.task, reason})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.legs, id)
	if err == nil && now.Status == state.InputRequired {
		t.startTimer(l.store, now)
	}
	return true, err == nil
}

// leg returns the running leg of a task, or nil.
func (t *Tasks) leg(id string) *leg {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.legs[id]
}

// updateRunning changes a task as long as the leg that began with it is the present
// one. Otherwise it returns the task unchanged: an earlier attempt was stored although
// it returned an error, and another server may run the next leg.
func updateRunning(store Store, began state.Task, change func(*state.Task) error) (state.Task, error) {
	now, err := store.UpdateTask(began.Owner, began.ID, func(s *state.Task) error {
		if s.Status != state.Working || s.Runner != began.Runner {
			return errUnchanged
		}
		return change(s)
	})
	if errors.Is(err, errUnchanged) {
		err = nil
	}
	return now, err
}

// isGone reports whether a task could not be changed because it was deleted or
// has ended, or because the store is closed.
func isGone(err error) bool {
	return errors.Is(err, state.ErrEnded) || errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrClosed)
}

// abandon ends a task without a result. If the store fails, abandon runs again when a client reads the
// task here, and saveLater tries again: other servers show the task as running until then. The caller
// holds the turn of the task.
func (t *Tasks) abandon(u unsaved) (state.Task, error) {
	now, err := updateRunning(u.store, u.task, func(s *state.Task) error {
		s.Status, s.Message, s.Result = state.Failed, u.reason, nil
		return nil
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil || isGone(err) {
		delete(t.unsaved, u.task.ID)
		return now, err
	}
	t.unsaved[u.task.ID] = u
	if t.saving == nil && !t.closed {
		t.saving = time.AfterFunc(saveEvery, t.saveLater)
	}
	return now, err
}

// saveEvery is the time between two attempts to store the ends of tasks.
const saveEvery = 5 * time.Second

// saveLater stores the ends of unsaved tasks, until the first error.
func (t *Tasks) saveLater() {
	t.mu.Lock()
	t.saving = nil
	open := slices.Collect(maps.Keys(t.unsaved))
	fired := t.fired()
	t.mu.Unlock()
	if !fired {
		return
	}
	defer t.background.Done()
	for _, id := range open {
		saved, err := t.save(id)
		if saved {
			t.notify(id)
		}
		if err != nil {
			return // abandon has set the next time
		}
	}
}

// save stores the end of an unsaved task.
func (t *Tasks) save(id string) (saved bool, err error) {
	defer t.turns.take(id)()
	t.mu.Lock()
	u, known := t.unsaved[id]
	t.mu.Unlock()
	if !known {
		return false, nil
	}
	if _, err = t.abandon(u); err != nil && !isGone(err) {
		return false, err
	}
	return true, nil
}

// fired notes that a timer has fired, which calls background.Done at its end. It
// returns false after Close. The caller holds mu.
func (t *Tasks) fired() bool {
	if !t.closed {
		t.background.Add(1)
	}
	return !t.closed
}

// Drain rejects new tasks, and waits for running legs. It returns the error of
// ctx if that ends first.
func (t *Tasks) Drain(ctx context.Context) error {
	t.mu.Lock()
	t.running.StartDrain()
	t.mu.Unlock()
	return t.wait(ctx)
}

func (t *Tasks) wait(ctx context.Context) error {
	if err := t.running.Drain(ctx); err != nil {
		return fmt.Errorf("drain: tasks are still running: %w", err)
	}
	return nil
}

// Close rejects new tasks, cancels running legs, and waits for them until ctx
// is done; their tasks fail. The store may be closed afterwards. Suspended
// tasks continue with the next Tasks of the same store.
func (t *Tasks) Close(ctx context.Context) error {
	t.mu.Lock()
	t.running.StartDrain()
	t.stopping = true
	for _, l := range t.legs {
		l.end(ErrStopped)
	}
	t.mu.Unlock()
	err := t.wait(ctx)
	t.followers.close()
	t.mu.Lock()
	t.closed = true
	if t.saving != nil {
		t.saving.Stop()
	}
	for id := range t.timers {
		t.stopTimer(id)
	}
	t.mu.Unlock()
	t.background.Wait()
	return err
}

// suspend makes a task wait for the input requests of its leg.
func (t *Tasks) suspend(l *leg, s *state.Task, a *call.Ask) error {
	su := suspended{Call: storedCall{l.call.Arguments, l.call.Can}, State: a.State, Until: t.now(l.store).Add(a.Wait), Wait: a.Wait, Keys: map[string]string{}, Used: slices.Clone(l.used)}
	open := slices.Clone(a.Requests)
	for i := range open {
		key := su.freshKey(open[i].Key)
		su.Keys[key], su.Used = open[i].Key, append(su.Used, key)
		open[i].Key = key
	}
	s.Status = state.InputRequired
	return su.store(s, open)
}

// startTimer starts the timeout of a suspended task. The caller holds mu.
func (t *Tasks) startTimer(store Store, s state.Task) {
	w, err := decodeSuspended(s)
	if err != nil || t.closed || t.timers[s.ID] != nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(w.Until.Sub(t.now(store)), func() {
		t.mu.Lock()
		fired := t.fired()
		t.mu.Unlock()
		if !fired {
			return
		}
		defer t.background.Done()
		if t.expireAt(store, s, timer) {
			t.notify(s.ID)
		}
	})
	t.timers[s.ID] = timer
}

// expireAt ends a suspended task if the task still has this timer.
func (t *Tasks) expireAt(store Store, s state.Task, timer *time.Timer) (changed bool) {
	defer t.turns.take(s.ID)()
	t.mu.Lock()
	current := t.timers[s.ID] == timer
	if current {
		delete(t.timers, s.ID)
	}
	t.mu.Unlock()
	if current {
		_, changed, _ = t.expire(store, s) // the next read of the task tries again
	}
	return changed
}

// stopTimer stops the timeout of a task. The caller holds mu.
func (t *Tasks) stopTimer(id string) {
	if timer := t.timers[id]; timer != nil {
		timer.Stop()
		delete(t.timers, id)
	}
}

// errUnchanged leaves a task unchanged.
var errUnchanged = errors.New("the task is unchanged")

// expire ends a suspended task after its deadline, and returns its present
// state. The caller holds the turn of the task.
func (t *Tasks) expire(store Store, s state.Task) (now state.Task, changed bool, err error) {
	now, err = store.UpdateTask(s.Owner, s.ID, func(s *state.Task) error {
		w, err := decodeSuspended(*s)
		switch {
		case s.Status != state.InputRequired || err == nil && t.now(store).Before(w.Until):
			return errUnchanged
		case err != nil:
			return err
		}
		s.Status, s.Result = state.Failed, encodeResult(call.Result{Err: &call.Error{
			Code: call.Timeout, Message: fmt.Sprintf("the client did not answer within %v", w.Wait),
		}})
		return nil
	})
	if errors.Is(err, errUnchanged) || errors.Is(err, state.ErrEnded) {
		return now, false, nil
	}
	if err != nil {
		return now, false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopTimer(s.ID)
	return now, true, nil
}
