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

// size returns the size of a leg's call, in bytes.
func size(leg *call.Request) (bytes int) {
	bytes = len(leg.Arguments)
	if leg.Resume != nil {
		for key, answer := range leg.Resume.Responses {
			bytes += len(key) + len(answer)
		}
	}
	return bytes
}

// checkRoom returns a [*state.FullError] if a leg must wait for others. The
// caller holds mu.
func (t *Tasks) checkRoom(leg *call.Request) error {
	if t.bytes+size(leg) > maxRunningBytes {
		return &state.FullError{What: "running tasks", Wait: time.Second}
	}
	return nil
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

// runLeg runs a leg of a task in the background. used are the keys of earlier
// requests to the client. The caller holds mu and has called checkRoom.
func (t *Tasks) runLeg(ctx context.Context, store Store, task state.Task, leg call.Request, used []string) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	ctx, release := context.WithTimeoutCause(ctx, task.Created.Add(task.TTL).Sub(t.now(store)), errExpired)
	t.legs[task.ID] = end
	t.bytes += size(&leg)
	t.running.Begin()
	_, leave := t.follow(store, task.Owner, task.ID)
	go func() {
		defer t.running.End()
		defer leave()
		defer release()
		result := t.options.Run(ctx, leg)
		cut := result.Err != nil && ctx.Err() != nil && errors.Is(result.Err, context.Cause(ctx))
		t.finish(store, task, &leg, func(s *state.Task) error { return t.apply(store, s, leg, used, result, cut) })
	}()
}

// now returns the time that decides about tasks of a store.
func (t *Tasks) now(store Store) time.Time { return state.Clock(store, t.options.Now)() }

// apply stores the outcome of a leg in its task. cut is true if the context of
// the leg ended it, without a result.
func (t *Tasks) apply(store Store, s *state.Task, leg call.Request, used []string, r call.Result, cut bool) error {
	switch {
	case cut:
		s.Status, s.Message = state.Failed, msgStopped
	case r.Ask != nil:
		return t.suspend(store, s, leg, used, r.Ask)
	case r.Err != nil:
		s.Status, s.Result = state.Failed, encodeResult(r)
	default:
		s.Status, s.Result = state.Completed, encodeResult(r)
	}
	return nil
}

// finish stores the outcome of a leg. It does not change a task that was
// cancelled or has expired.
func (t *Tasks) finish(store Store, task state.Task, leg *call.Request, change func(*state.Task) error) {
	t.mu.Lock()
	delete(t.legs, task.ID)
	t.bytes -= size(leg)
	now, err := store.UpdateTask(task.Owner, task.ID, change)
	if err != nil && !isGone(err) {
		reason := msgNotStored
		if full := (*state.FullError)(nil); errors.As(err, &full) {
			reason = msgNoRoom
		}
		t.options.Logger.Error("store task", slog.String("tool", task.Tool),
			slog.String("request_id", leg.Caller.Agent.RequestID), slog.String("error", err.Error()))
		now, err = t.abandon(store, task.Owner, task.ID, reason)
	}
	if err == nil && now.Status == state.InputRequired {
		t.startTimer(store, now)
	}
	t.mu.Unlock()
	if err == nil {
		t.notify(task.ID)
	}
}

// isGone reports whether a task could not be changed because it was deleted or
// has ended, or because the store is closed.
func isGone(err error) bool {
	return errors.Is(err, state.ErrEnded) || errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrClosed)
}

// abandon ends a task without a result. If the store fails, abandon runs again when a client reads the
// task here, and saveLater tries again: other servers show the task as running until then. The caller
// holds mu.
func (t *Tasks) abandon(store Store, owner state.Owner, id, reason string) (state.Task, error) {
	now, err := fail(store, owner, id, reason)
	if err == nil || isGone(err) {
		delete(t.unsaved, id)
		return now, err
	}
	t.unsaved[id] = unsaved{store, owner, reason}
	if t.saving == nil && !t.closed {
		t.saving = time.AfterFunc(saveEvery, t.saveLater)
	}
	return now, err
}

func fail(store Store, owner state.Owner, id, reason string) (state.Task, error) {
	return store.UpdateTask(owner, id, func(s *state.Task) error {
		s.Status, s.Message, s.Result = state.Failed, reason, nil
		return nil
	})
}

// saveEvery is the time between two attempts to store the ends of tasks.
const saveEvery = 5 * time.Second

// saveLater stores the ends of unsaved tasks. It does not hold mu meanwhile, as a store that is away may
// take seconds: nothing else changes these tasks.
func (t *Tasks) saveLater() {
	t.mu.Lock()
	open := maps.Clone(t.unsaved)
	t.mu.Unlock()
	var saved []string
	for id, u := range open {
		_, err := fail(u.store, u.owner, id, u.reason)
		if err != nil && !isGone(err) {
			break
		}
		saved = append(saved, id)
	}
	t.mu.Lock()
	for _, id := range saved {
		delete(t.unsaved, id)
	}
	t.saving = nil
	if len(t.unsaved) > 0 && !t.closed {
		t.saving = time.AfterFunc(saveEvery, t.saveLater)
	}
	t.mu.Unlock()
	for _, id := range saved {
		t.notify(id)
	}
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
	for _, end := range t.legs {
		end(ErrStopped)
	}
	t.mu.Unlock()
	err := t.wait(ctx)
	t.followers.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.saving != nil {
		t.saving.Stop()
	}
	for id := range t.timers {
		t.stopTimer(id)
	}
	return err
}

// suspend makes a task wait for the input requests of its leg.
func (t *Tasks) suspend(store Store, s *state.Task, leg call.Request, used []string, a *call.Ask) error {
	su := suspended{Call: storedCall{leg.Arguments, leg.Can}, State: a.State, Until: t.now(store).Add(a.Wait), Wait: a.Wait, Keys: map[string]string{}, Used: slices.Clone(used)}
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
		current := !t.closed && t.timers[s.ID] == timer
		changed := false
		if current {
			delete(t.timers, s.ID)
			_, changed, _ = t.expire(store, s)
		}
		t.mu.Unlock()
		if changed {
			t.notify(s.ID)
		}
	})
	t.timers[s.ID] = timer
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
// state. The caller holds mu.
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
	t.stopTimer(s.ID)
	return now, true, nil
}
