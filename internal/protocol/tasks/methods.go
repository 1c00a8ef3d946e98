package tasks

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/suspend"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// Task returns the current state of a caller's task.
func (t *Tasks) Task(_ context.Context, caller identity.Caller, id string) (*mcp.Task, *call.Error) {
	_, now, err := t.current(caller, id)
	if err != nil {
		return nil, t.failure(caller, err)
	}
	task, err := toTask(now)
	return task, t.failure(caller, err)
}

// current returns the current state of a caller's task, and its store.
func (t *Tasks) current(caller identity.Caller, id string) (Store, state.Task, error) {
	store, err := t.options.Store()
	if err != nil {
		return nil, state.Task{}, err
	}
	t.mu.Lock()
	now, changed, err := t.refresh(store, state.OwnerOf(caller.Principal), id)
	t.mu.Unlock()
	if changed {
		t.notify(id)
	}
	return store, now, err
}

// refresh reads a task and applies pending changes. The caller holds mu.
func (t *Tasks) refresh(store Store, owner state.Owner, id string) (now state.Task, changed bool, err error) {
	if now, err = store.Task(owner, id); err != nil {
		return now, false, err
	}
	if u, known := t.unsaved[id]; known {
		now, err = t.abandon(store, owner, id, u.reason)
		return now, err == nil, err
	}
	if now.Status == state.InputRequired {
		// An earlier process may have suspended it.
		now, changed, err = t.expire(store, now)
		if err == nil && now.Status == state.InputRequired {
			t.startTimer(store, now)
		}
	}
	return now, changed, err
}

// UpdateTask passes input responses to a task. After the last missing response,
// the task continues as a call of the caller; it does not end with ctx.
// UpdateTask ignores responses to unknown or answered requests. On an error it
// stores no response.
func (t *Tasks) UpdateTask(ctx context.Context, caller identity.Caller, id string, responses map[string]json.RawMessage) *call.Error {
	return t.failure(caller, t.update(ctx, caller, id, responses))
}

func (t *Tasks) update(ctx context.Context, caller identity.Caller, id string, responses map[string]json.RawMessage) error {
	store, now, err := t.current(caller, id)
	if err != nil {
		return err
	}
	// Responses are checked without mu: authors of tools and upstream servers
	// wrote the schemas.
	fit, err := validAnswers(now, responses)
	if err != nil || len(fit) == 0 {
		return err
	}
	if err := t.storeAnswers(ctx, store, caller, now, fit); err != nil {
		return err
	}
	t.notify(id)
	return nil
}

func validAnswers(s state.Task, responses map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	open, err := openRequests(s)
	if err != nil {
		return nil, err
	}
	fit := map[string]json.RawMessage{}
	for i := range open {
		answer, given := responses[open[i].Key]
		if !given {
			continue
		}
		if err := suspend.ValidateResponse(&open[i], answer); err != nil {
			return nil, answerError{err}
		}
		fit[open[i].Key] = answer
	}
	return fit, nil
}

// storeAnswers stores responses, and starts the next leg if they are complete.
func (t *Tasks) storeAnswers(ctx context.Context, store Store, caller identity.Caller, s state.Task, answers map[string]json.RawMessage) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running.Draining() {
		return errDraining
	}
	leg, used := call.Request{Name: s.Tool, Caller: caller}, []string(nil)
	now, err := store.UpdateTask(s.Owner, s.ID, func(s *state.Task) error {
		w, err := applyAnswers(s, answers)
		if err != nil || s.Status != state.Working {
			return err
		}
		leg.Arguments, leg.Can, used = w.Call.Arguments, w.Call.Can, w.Used
		leg.Resume = &call.Resume{State: w.State, Responses: w.Answers}
		return t.checkRoom(&leg)
	})
	switch {
	case errors.Is(err, state.ErrEnded) || errors.Is(err, errUnchanged):
		return nil
	case err != nil:
		return err
	case now.Status == state.Working:
		t.stopTimer(s.ID)
		t.runLeg(ctx, store, now, leg, used)
	}
	return nil
}

// applyAnswers adds responses to a suspended task. If none is missing any more,
// its status becomes working.
func applyAnswers(s *state.Task, answers map[string]json.RawMessage) (su suspended, err error) {
	open, err := openRequests(*s)
	if err != nil {
		return su, err
	}
	if len(open) == 0 {
		return su, errUnchanged
	}
	if su, err = decodeSuspended(*s); err != nil {
		return su, err
	}
	if su.Answers == nil {
		su.Answers = map[string]json.RawMessage{}
	}
	var missing []call.AskRequest
	for _, r := range open {
		if given, ok := answers[r.Key]; ok {
			su.Answers[su.Keys[r.Key]] = given
		} else {
			missing = append(missing, r)
		}
	}
	if len(missing) > 0 {
		return su, su.store(s, missing)
	}
	s.Status, s.Requests, s.Held = state.Working, nil, nil
	return su, nil
}

// CancelTask ends a caller's task and its running leg. It does not change an
// ended task.
func (t *Tasks) CancelTask(_ context.Context, caller identity.Caller, id string) *call.Error {
	return t.failure(caller, t.cancel(caller, id))
}

func (t *Tasks) cancel(caller identity.Caller, id string) error {
	store, err := t.options.Store()
	if err != nil {
		return err
	}
	t.mu.Lock()
	_, err = store.UpdateTask(state.OwnerOf(caller.Principal), id, func(s *state.Task) error {
		s.Status, s.Message = state.Cancelled, msgCancelled
		return nil
	})
	if end := t.legs[id]; err == nil && end != nil {
		end(ErrCancelled)
	}
	if err == nil {
		t.stopTimer(id)
	}
	t.mu.Unlock()
	if errors.Is(err, state.ErrEnded) {
		return nil
	}
	if err == nil {
		t.notify(id)
	}
	return err
}
