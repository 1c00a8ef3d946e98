package tasks

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/suspend"
)

// AnswerError says what is wrong with an answer. It is for the client.
type AnswerError struct{ Err error }

// Error returns what is wrong.
func (e *AnswerError) Error() string { return e.Err.Error() }

// Unwrap returns the error inside.
func (e *AnswerError) Unwrap() error { return e.Err }

// Task returns a task as it is now, or [ErrNotFound].
func (t *Tasks) Task(p identity.Principal, id string) (Task, error) {
	store, err := t.options.Store()
	if err != nil {
		return Task{}, err
	}
	t.mu.Lock()
	now, changed, err := t.look(store, state.OwnerOf(p), id)
	t.mu.Unlock()
	if changed {
		t.tell(id)
	}
	if err != nil {
		return Task{}, err
	}
	return seen(now)
}

// look reads a task, and does what has not been done with it yet; mu is held.
func (t *Tasks) look(store Store, owner state.Owner, id string) (now state.Task, changed bool, err error) {
	if now, err = store.Task(owner, id); err != nil {
		return now, false, err
	}
	if reason, known := t.unsaved[id]; known {
		now, err = t.giveUp(store, owner, id, reason)
		return now, err == nil, err
	}
	if now.Status == state.InputRequired {
		// An earlier process may have left it waiting.
		now, changed, err = t.expire(store, now)
		if err == nil && now.Status == state.InputRequired {
			t.await(store, now)
		}
	}
	return now, changed, err
}

// Update passes on what the client answered. When nothing is left to answer,
// the task goes on as a call of the caller; it does not end with ctx. Answers
// that nobody asked for, or asks for any more, are ignored. The error may be
// [ErrNotFound], [ErrDraining], a [*FullError], or an [*AnswerError]: then no
// answer was taken.
func (t *Tasks) Update(ctx context.Context, caller identity.Caller, id string, responses map[string]json.RawMessage) error {
	store, err := t.options.Store()
	if err != nil {
		return err
	}
	owner := state.OwnerOf(caller.Principal)
	t.mu.Lock()
	now, changed, err := t.look(store, owner, id)
	t.mu.Unlock()
	if changed {
		t.tell(id)
	}
	if err != nil {
		return err
	}
	// Answers are checked without mu: their schemas are other people's.
	fit, err := fitting(now, responses)
	if err != nil || len(fit) == 0 {
		return err
	}
	if err := t.take(ctx, store, caller, now, fit); err != nil {
		return err
	}
	t.tell(id)
	return nil
}

func fitting(s state.Task, responses map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	open, err := openOf(s)
	if err != nil {
		return nil, err
	}
	fit := map[string]json.RawMessage{}
	for i := range open {
		answer, given := responses[open[i].Key]
		if !given {
			continue
		}
		if err := suspend.Check(&open[i], answer); err != nil {
			return nil, &AnswerError{err}
		}
		fit[open[i].Key] = answer
	}
	return fit, nil
}

// take stores answers, and begins the next leg when they are complete.
func (t *Tasks) take(ctx context.Context, store Store, caller identity.Caller, s state.Task, answers map[string]json.RawMessage) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running.Draining() {
		return ErrDraining
	}
	leg, used := Leg{Caller: caller, Tool: s.Tool}, []string(nil)
	now, err := store.UpdateTask(s.Owner, s.ID, func(s *state.Task) error {
		h, err := answer(s, answers)
		if err != nil || s.Status != state.Working {
			return err
		}
		leg.Body, leg.Resume, used = h.Body, &call.Resume{State: h.State, Responses: h.Answers}, h.Used
		return t.mayBegin(&leg)
	})
	switch {
	case errors.Is(err, state.ErrEnded) || errors.Is(err, errUnchanged):
		return nil
	case err != nil:
		return err
	case now.Status == state.Working:
		t.answered(s.ID)
		t.begin(ctx, store, now, leg, used)
	}
	return nil
}

// answer gives answers to a task that waits for them. It is at work when none
// is missing any more.
func answer(s *state.Task, answers map[string]json.RawMessage) (h held, err error) {
	open, err := openOf(*s)
	if err != nil {
		return h, err
	}
	if len(open) == 0 {
		return h, errUnchanged
	}
	if h, err = heldOf(*s); err != nil {
		return h, err
	}
	if h.Answers == nil {
		h.Answers = map[string]json.RawMessage{}
	}
	var left []suspend.Request
	for _, r := range open {
		if given, ok := answers[r.Key]; ok {
			h.Answers[h.Keys[r.Key]] = given
		} else {
			left = append(left, r)
		}
	}
	if len(left) > 0 {
		return h, h.store(s, left)
	}
	s.Status, s.Requests, s.Held = state.Working, nil, nil
	return h, nil
}

// Cancel ends a task, and the leg that runs of it; one that has ended stays
// what it is. The error may be [ErrNotFound].
func (t *Tasks) Cancel(p identity.Principal, id string) error {
	store, err := t.options.Store()
	if err != nil {
		return err
	}
	t.mu.Lock()
	_, err = store.UpdateTask(state.OwnerOf(p), id, func(s *state.Task) error {
		s.Status, s.Message = state.Cancelled, cancelled
		return nil
	})
	if end := t.legs[id]; err == nil && end != nil {
		end(ErrCancelled)
	}
	if err == nil {
		t.answered(id)
	}
	t.mu.Unlock()
	if errors.Is(err, state.ErrEnded) {
		return nil
	}
	if err == nil {
		t.tell(id)
	}
	return err
}
