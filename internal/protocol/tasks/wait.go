package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/suspend"
	"github.com/mcpd/mcpd/internal/state"
)

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

// heldOf returns what a task that waits goes on with.
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
