package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
)

// maxRunningBytes bounds what the legs that run hold of their calls
// together. No request waits for them that would take room of a transport.
const maxRunningBytes = 64 << 20

// size is what a leg holds of its call, in bytes.
func size(leg *call.Request) (bytes int) {
	bytes = len(leg.Arguments)
	if leg.Resume != nil {
		for key, answer := range leg.Resume.Responses {
			bytes += len(key) + len(answer)
		}
	}
	return bytes
}

// mayBegin returns a [*state.FullError] when a leg has to wait for others; mu is held.
func (t *Tasks) checkRoom(leg *call.Request) error {
	if t.bytes+size(leg) > maxRunningBytes {
		return &state.FullError{What: "running tasks", Wait: time.Second}
	}
	return nil
}

// Why a leg is ended before its time.
var (
	// ErrCancelled is the cause where the client has cancelled the task, and ErrStopped
	// where the server shuts down.
	ErrCancelled = errors.New("the client cancelled the task")
	ErrStopped   = errors.New("the server is shutting down")
	errExpired   = errors.New("the time to live of the task is over")
)

// What clients are told of a task that has no result.
const (
	msgCancelled = "cancelled by its client"
	msgStopped   = "the server was stopped while the task ran, and what it did is not known; check before you make the call again"
	msgNoRoom    = "the server has no room to keep what the task has come to"
	msgNotStored = "the server could not keep what the task has come to"
)

// begin runs a leg of a task in the background; mu is held. used are the keys
// that the client was asked under before. mayBegin has let it begin.
func (t *Tasks) runLeg(ctx context.Context, store Store, task state.Task, leg call.Request, used []string) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	ctx, release := context.WithTimeoutCause(ctx, task.Created.Add(task.TTL).Sub(t.options.Now()), errExpired)
	t.legs[task.ID] = end
	t.bytes += size(&leg)
	t.running.Begin()
	go func() {
		defer t.running.End()
		defer release()
		result := t.options.Run(ctx, leg)
		cut := result.Err != nil && ctx.Err() != nil && errors.Is(result.Err, context.Cause(ctx))
		t.finish(store, task, &leg, func(s *state.Task) error { return t.apply(s, leg, used, result, cut) })
	}()
}

// apply stores how a leg ended in its task. cut says that its context ended it, with nothing
// to tell.
func (t *Tasks) apply(s *state.Task, leg call.Request, used []string, r call.Result, cut bool) error {
	switch {
	case cut:
		s.Status, s.Message = state.Failed, msgStopped
	case r.Ask != nil:
		return t.suspend(s, leg, used, r.Ask)
	case r.Err != nil:
		s.Status, s.Result = state.Failed, encodeResult(r)
	default:
		s.Status, s.Result = state.Completed, encodeResult(r)
	}
	return nil
}

// settle stores what a task has come to when its leg has ended. One that was
// cancelled or has expired meanwhile stays what it is.
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
		t.options.Logger.Error("a task cannot be kept", slog.String("tool", task.Tool),
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

// isOver reports whether a task could not be changed because it is no more, or
// has ended, or because the store has.
func isGone(err error) bool {
	return errors.Is(err, state.ErrEnded) || errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrClosed)
}

// giveUp ends a task without a result; mu is held. When not even that can be
// stored, it is tried again whenever somebody asks for the task.
func (t *Tasks) abandon(store Store, owner state.Owner, id, reason string) (state.Task, error) {
	now, err := store.UpdateTask(owner, id, func(s *state.Task) error {
		s.Status, s.Message, s.Result = state.Failed, reason, nil
		return nil
	})
	if err == nil || isGone(err) {
		delete(t.unsaved, id)
	} else {
		t.unsaved[id] = reason
	}
	return now, err
}

// Drain refuses what is new, and waits for the legs that run. It returns the
// error of ctx when that is done first.
func (t *Tasks) Drain(ctx context.Context) error {
	t.mu.Lock()
	t.running.StartDrain()
	t.mu.Unlock()
	return t.wait(ctx)
}

func (t *Tasks) wait(ctx context.Context) error {
	if err := t.running.Drain(ctx); err != nil {
		return fmt.Errorf("drain: tasks still run: %w", err)
	}
	return nil
}

// Close refuses what is new, ends the legs that still run, and waits for them
// until ctx is done; their tasks have failed then. The store may be closed
// afterwards. Tasks that wait for their clients go on when there are Tasks of
// the same store again.
func (t *Tasks) Close(ctx context.Context) error {
	t.mu.Lock()
	t.running.StartDrain()
	for _, end := range t.legs {
		end(ErrStopped)
	}
	t.mu.Unlock()
	err := t.wait(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for id := range t.timers {
		t.stopTimer(id)
	}
	return err
}

// suspend has a task wait for what its leg has asked.
func (t *Tasks) suspend(s *state.Task, leg call.Request, used []string, a *call.Ask) error {
	w := suspended{Call: storedCall{leg.Arguments, leg.Can}, State: a.State, Until: t.options.Now().Add(a.Wait), Wait: a.Wait, Keys: map[string]string{}, Used: slices.Clone(used)}
	open := slices.Clone(a.Requests)
	for i := range open {
		key := w.freshKey(open[i].Key)
		w.Keys[key], w.Used = open[i].Key, append(w.Used, key)
		open[i].Key = key
	}
	s.Status = state.InputRequired
	return w.store(s, open)
}

// await sees to it that a task waits no longer than it may; mu is held.
func (t *Tasks) startTimer(store Store, s state.Task) {
	w, err := decodeSuspended(s)
	if err != nil || t.closed || t.timers[s.ID] != nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(w.Until.Sub(t.options.Now()), func() {
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

// answered says that a task waits no longer; mu is held.
func (t *Tasks) stopTimer(id string) {
	if timer := t.timers[id]; timer != nil {
		timer.Stop()
		delete(t.timers, id)
	}
}

// errUnchanged leaves a task as it is.
var errUnchanged = errors.New("the task is as it should be")

// expire ends a task that waits when its client should have answered by now,
// and returns what the task is then; mu is held.
func (t *Tasks) expire(store Store, s state.Task) (now state.Task, changed bool, err error) {
	now, err = store.UpdateTask(s.Owner, s.ID, func(s *state.Task) error {
		w, err := decodeSuspended(*s)
		switch {
		case s.Status != state.InputRequired || err == nil && t.options.Now().Before(w.Until):
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
