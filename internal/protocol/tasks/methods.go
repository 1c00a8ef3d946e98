package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

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
	now, changed, err := t.refresh(store, state.OwnerOf(caller.Principal), id)
	if changed {
		t.notify(id)
	}
	return store, now, err
}

// refresh reads a task and applies pending changes.
func (t *Tasks) refresh(store Store, owner state.Owner, id string) (now state.Task, changed bool, err error) {
	defer t.turns.take(id)()
	if now, err = store.Task(owner, id); err != nil {
		return now, false, err
	}
	t.mu.Lock()
	u, known := t.unsaved[id]
	t.mu.Unlock()
	if known {
		now, err = t.abandon(u)
		return now, err == nil, err
	}
	if now.Status == state.InputRequired {
		// An earlier process may have suspended it.
		now, changed, err = t.expire(store, now)
		if err == nil && now.Status == state.InputRequired {
			t.mu.Lock()
			t.startTimer(store, now)
			t.mu.Unlock()
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
	// Responses are checked without the turn of the task: authors of tools and upstream servers
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
	defer t.turns.take(s.ID)()
	if t.running.Draining() {
		return errDraining
	}
	next, reserved := leg{store: store, call: call.Request{Name: s.Tool, Caller: caller}}, false
	now, err := store.UpdateTask(s.Owner, s.ID, func(s *state.Task) error {
		w, err := applyAnswers(s, answers)
		if err != nil || s.Status != state.Working || reserved { // a store may call this again
			return err
		}
		next.call.Arguments, next.call.Can, next.used = w.Call.Arguments, w.Call.Can, w.Used
		next.call.Resume = &call.Resume{State: w.State, Responses: w.Answers}
		err = t.reserve(&next.call)
		reserved = err == nil
		return err
	})
	if err == nil && now.Status == state.Working {
		t.mu.Lock()
		t.stopTimer(s.ID)
		t.mu.Unlock()
		next.task = now
		t.runLeg(ctx, &next)
		return nil
	}
	if reserved {
		t.release(&next.call)
	}
	if errors.Is(err, state.ErrEnded) || errors.Is(err, errUnchanged) {
		return nil
	}
	return err
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
	if err = t.cancelIn(store, state.OwnerOf(caller.Principal), id); errors.Is(err, state.ErrEnded) {
		return nil
	}
	if err == nil {
		t.notify(id)
	}
	return err
}

// cancelIn ends a task in its store, and then its running leg.
func (t *Tasks) cancelIn(store Store, owner state.Owner, id string) error {
	defer t.turns.take(id)()
	_, err := store.UpdateTask(owner, id, func(s *state.Task) error {
		s.Status, s.Message = state.Cancelled, msgCancelled
		return nil
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.legs[id]; l != nil {
		l.end(ErrCancelled)
	}
	t.stopTimer(id)
	return nil
}

// turns are locks of tasks, which exist while they are used.
type turns struct {
	mu     sync.Mutex
	byTask map[string]*turn
}

type turn struct {
	users int // guarded by the mutex of turns
	taken chan struct{}
}

// take waits until no other operation has the turn of a task.
func (t *turns) take(id string) (release func()) {
	t.mu.Lock()
	one := t.byTask[id]
	if one == nil {
		one = &turn{taken: make(chan struct{}, 1)}
		t.byTask[id] = one
	}
	one.users++
	t.mu.Unlock()
	one.taken <- struct{}{}
	return func() {
		<-one.taken
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(t.byTask, id)
		}
	}
}
