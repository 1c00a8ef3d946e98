package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/suspend"
)

// maxRunning bounds what the legs that run hold of their calls together, in
// bytes. No request waits for them that would take room of a transport.
const maxRunning = 64 << 20

// size is what a leg holds of its call, in bytes.
func (l *Leg) size() (bytes int) {
	bytes = len(l.Body)
	if l.Resume != nil {
		for key, answer := range l.Resume.Responses {
			bytes += len(key) + len(answer)
		}
	}
	return bytes
}

// mayBegin returns a [*FullError] when a leg has to wait for others; mu is held.
func (t *Tasks) mayBegin(leg *Leg) error {
	if t.bytes+leg.size() > maxRunning {
		return &FullError{What: "running tasks", Wait: time.Second}
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
	cancelled = "cancelled by its client"
	stopped   = "the server was stopped while the task ran, and what it did is not known; check before you make the call again"
	noRoom    = "the server has no room to keep what the task has come to"
	unkept    = "the server could not keep what the task has come to"
)

// begin runs a leg of a task in the background; mu is held. used are the keys
// that the client was asked under before. mayBegin has let it begin.
func (t *Tasks) begin(ctx context.Context, store Store, task state.Task, leg Leg, used []string) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	ctx, release := context.WithTimeoutCause(ctx, task.Created.Add(task.TTL).Sub(t.options.Now()), errExpired)
	t.legs[task.ID] = end
	t.bytes += leg.size()
	t.running.Begin()
	go func() {
		defer t.running.End()
		defer release()
		outcome := t.options.Runner.Run(ctx, leg)
		t.settle(store, task, &leg, func(s *state.Task) error { return t.apply(s, leg, used, outcome) })
	}()
}

// apply makes the outcome of a leg that of its task.
func (t *Tasks) apply(s *state.Task, leg Leg, used []string, o Outcome) error {
	switch {
	case o.Ask != nil:
		return t.suspend(s, leg, used, o.Ask)
	case o.Cut:
		s.Status, s.Message = state.Failed, stopped
	case o.Failed:
		s.Status, s.Result = state.Failed, o.Result
	default:
		s.Status, s.Result = state.Completed, o.Result
	}
	return nil
}

// settle stores what a task has come to when its leg has ended. One that was
// cancelled or has expired meanwhile stays what it is.
func (t *Tasks) settle(store Store, task state.Task, leg *Leg, change func(*state.Task) error) {
	t.mu.Lock()
	delete(t.legs, task.ID)
	t.bytes -= leg.size()
	now, err := store.UpdateTask(task.Owner, task.ID, change)
	if err != nil && !over(err) {
		reason := unkept
		if full := (*FullError)(nil); errors.As(err, &full) {
			reason = noRoom
		}
		t.options.Logger.Error("a task cannot be kept", slog.String("tool", task.Tool),
			slog.String("request_id", leg.Caller.Agent.RequestID), slog.String("error", err.Error()))
		now, err = t.giveUp(store, task.Owner, task.ID, reason)
	}
	if err == nil && now.Status == state.InputRequired {
		t.await(store, now)
	}
	t.mu.Unlock()
	if err == nil {
		t.tell(task.ID)
	}
}

// over reports whether a task could not be changed because it is no more, or
// has ended, or because the store has.
func over(err error) bool {
	return errors.Is(err, state.ErrEnded) || errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrClosed)
}

// giveUp ends a task without a result; mu is held. When not even that can be
// stored, it is tried again whenever somebody asks for the task.
func (t *Tasks) giveUp(store Store, owner state.Owner, id, reason string) (state.Task, error) {
	now, err := store.UpdateTask(owner, id, func(s *state.Task) error {
		s.Status, s.Message, s.Result = state.Failed, reason, nil
		return nil
	})
	if err == nil || over(err) {
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
	for id := range t.waits {
		t.answered(id)
	}
	return err
}

// held is what is needed to go on with a task that waits for its client.
type held struct {
	Body  json.RawMessage `json:"body,omitempty"`
	State string          `json:"state"`
	// Until is when the client must have answered, Wait how long it had.
	Until time.Time     `json:"until"`
	Wait  time.Duration `json:"wait"`
	// Keys are the keys of the call, by those that the client knows.
	Keys map[string]string `json:"keys"`
	// Answers are what the client has answered, by the keys of the call.
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
	// Used are all keys that the client has seen.
	Used []string `json:"used"`
}

// suspend has a task wait for what its leg has asked.
func (t *Tasks) suspend(s *state.Task, leg Leg, used []string, a *call.Ask) error {
	h := held{Body: leg.Body, State: a.State, Until: t.options.Now().Add(a.Wait), Wait: a.Wait, Keys: map[string]string{}, Used: slices.Clone(used)}
	open := slices.Clone(a.Requests)
	for i := range open {
		key := h.unused(open[i].Key)
		h.Keys[key], h.Used = open[i].Key, append(h.Used, key)
		open[i].Key = key
	}
	s.Status = state.InputRequired
	return h.store(s, open)
}

// unused returns the key, or one like it that the client has not seen (SEP-2663,
// Task Update Requests): a body may ask under the same key again.
func (h *held) unused(key string) string {
	wanted := key
	for n := 2; slices.Contains(h.Used, key); n++ {
		key = wanted + "-" + strconv.Itoa(n)
	}
	return key
}

// store writes what is open and what is held into a task.
func (h *held) store(s *state.Task, open []suspend.Request) (err error) {
	if s.Requests, err = json.Marshal(open); err == nil {
		s.Held, err = json.Marshal(h)
	}
	if err != nil {
		return fmt.Errorf("encode what a task waits for: %w", err)
	}
	return nil
}

func heldOf(s state.Task) (h held, err error) {
	if err := json.Unmarshal(s.Held, &h); err != nil {
		return h, fmt.Errorf("read what a task goes on with: %w", err)
	}
	return h, nil
}

// openOf returns what a task has asked and its client has not answered.
func openOf(s state.Task) (open []suspend.Request, err error) {
	if s.Status != state.InputRequired {
		return nil, nil
	}
	if err := json.Unmarshal(s.Requests, &open); err != nil {
		return nil, fmt.Errorf("read what a task asks: %w", err)
	}
	return open, nil
}

// await sees to it that a task waits no longer than it may; mu is held.
func (t *Tasks) await(store Store, s state.Task) {
	h, err := heldOf(s)
	if err != nil || t.closed || t.waits[s.ID] != nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(h.Until.Sub(t.options.Now()), func() {
		t.mu.Lock()
		current := !t.closed && t.waits[s.ID] == timer
		changed := false
		if current {
			delete(t.waits, s.ID)
			_, changed, _ = t.expire(store, s)
		}
		t.mu.Unlock()
		if changed {
			t.tell(s.ID)
		}
	})
	t.waits[s.ID] = timer
}

// answered says that a task waits no longer; mu is held.
func (t *Tasks) answered(id string) {
	if timer := t.waits[id]; timer != nil {
		timer.Stop()
		delete(t.waits, id)
	}
}

// errUnchanged leaves a task as it is.
var errUnchanged = errors.New("the task is as it should be")

// expire ends a task that waits when its client should have answered by now,
// and returns what the task is then; mu is held.
func (t *Tasks) expire(store Store, s state.Task) (now state.Task, changed bool, err error) {
	now, err = store.UpdateTask(s.Owner, s.ID, func(s *state.Task) error {
		h, err := heldOf(*s)
		switch {
		case s.Status != state.InputRequired || err == nil && t.options.Now().Before(h.Until):
			return errUnchanged
		case err != nil:
			return err
		}
		s.Status, s.Result = state.Failed, t.options.Runner.Unanswered(h.Wait)
		return nil
	})
	if errors.Is(err, errUnchanged) || errors.Is(err, state.ErrEnded) {
		return now, false, nil
	}
	if err != nil {
		return now, false, err
	}
	t.answered(s.ID)
	return now, true, nil
}
