package statetest

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
)

// create creates a task of ann.
func create(t testing.TB, s state.Store) state.Task {
	t.Helper()
	task, err := s.CreateTask(state.Task{Owner: ann, Tool: "report", Message: "begun", TTL: time.Hour, Poll: time.Second})
	check(t, err)
	return task
}

// finish returns a change that ends a task.
func finish(status state.Status, result string) func(*state.Task) error {
	return func(t *state.Task) error {
		t.Status, t.Result, t.Message = status, []byte(result), ""
		return nil
	}
}

// ask makes a task wait for its client.
func ask(t *state.Task) error {
	t.Status, t.Requests, t.Held = state.InputRequired, []byte(`{"name":{}}`), []byte("held")
	return nil
}

func wantTask(t testing.TB, s state.Store, want state.Task) {
	t.Helper()
	got, err := s.Task(want.Owner, want.ID)
	check(t, err)
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("task: got %+v, want %+v", got, want)
	}
}

func tasksEnd(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{})
	task := create(t, s)
	if task.ID == create(t, s).ID {
		t.Fatal("two tasks with one id")
	}
	want := state.Task{
		ID: task.ID, Owner: ann, Tool: "report", Created: c.Now(), Updated: c.Now(),
		Status: state.Working, Message: "begun", TTL: time.Hour, Poll: time.Second, Runner: task.Runner,
	}
	wantTask(t, s, want)
	c.advance(time.Second)
	_, err := s.UpdateTask(ann, task.ID, ask)
	check(t, err)
	want.Status, want.Requests, want.Held, want.Updated, want.Runner = state.InputRequired, []byte(`{"name":{}}`), []byte("held"), c.Now(), ""
	wantTask(t, s, want)
	c.advance(time.Second)
	ended, err := s.UpdateTask(ann, task.ID, finish(state.Completed, `{"content":[]}`))
	check(t, err)
	want.Status, want.Requests, want.Held, want.Message, want.Updated = state.Completed, nil, nil, "", c.Now()
	want.Result = []byte(`{"content":[]}`)
	wantTask(t, s, want)
	if !reflect.DeepEqual(want, ended) {
		t.Errorf("changed task: got %+v, want %+v", ended, want)
	}
	if again, err := s.UpdateTask(ann, task.ID, finish(state.Cancelled, "")); !errors.Is(err, state.ErrEnded) || again.Status != state.Completed {
		t.Errorf("an ended task was changed to %s: %v", again.Status, err)
	}
	wantTask(t, s, want)
}

func tasksAreListed(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{})
	list := func(most int, want ...state.Task) {
		t.Helper()
		got, err := s.Tasks(most)
		check(t, err)
		if len(got) != len(want) {
			t.Fatalf("got %d tasks, want %d", len(got), len(want))
		}
		for i := range want {
			if !reflect.DeepEqual(want[i], got[i]) {
				t.Errorf("task %d: got %+v, want %+v", i, got[i], want[i])
			}
		}
	}
	list(10)
	short, err := s.CreateTask(state.Task{Owner: bob, Tool: "short", TTL: time.Minute, Poll: time.Second})
	check(t, err)
	first := create(t, s)
	c.advance(time.Second)
	second := create(t, s)
	second, err = s.UpdateTask(ann, second.ID, finish(state.Completed, "result"))
	check(t, err)
	first, err = s.UpdateTask(ann, first.ID, ask)
	check(t, err)
	list(10, second.Summary(), first.Summary(), short)
	list(2, second.Summary(), first.Summary())
	c.advance(time.Minute)
	list(10, second.Summary(), first.Summary())
	list(0)
}

func tasksHaveOwners(t *testing.T, suite Suite) {
	s, _ := suite.fresh(t, state.Options{})
	task := create(t, s)
	for _, owner := range []state.Owner{bob, {ID: "ann", Kind: "key"}, {ID: "ann", Issuer: "here"}, {ID: "annkey", Issuer: "here"}, {}} {
		if _, err := s.Task(owner, task.ID); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%v read a foreign task: %v", owner, err)
		}
		if _, err := s.UpdateTask(owner, task.ID, finish(state.Cancelled, "")); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%v changed a foreign task: %v", owner, err)
		}
		if _, _, err := s.WatchTask(owner, task.ID); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%v watched a foreign task: %v", owner, err)
		}
	}
	wantTask(t, s, task)
	same := changed(t, s, task, func(t *state.Task) error {
		t.ID, t.Owner, t.Tool, t.Created, t.Updated = "mine", bob, "other", time.Time{}, time.Time{}
		return nil
	})
	if !reflect.DeepEqual(task, same) {
		t.Errorf("a change altered fixed fields: got %+v, want %+v", same, task)
	}
	wantTask(t, s, task)
}

func changesFail(t *testing.T, suite Suite) {
	s, _ := suite.fresh(t, state.Options{})
	task := create(t, s)
	failure := errors.New("no")
	_, err := s.UpdateTask(ann, task.ID, func(t *state.Task) error {
		t.Message = "changed"
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("failing change: %v", err)
	}
	for what, change := range map[string]func(*state.Task) error{
		"no status": func(t *state.Task) error { t.Status = "done"; return nil },
		"no TTL":    func(t *state.Task) error { t.TTL = 0; return nil },
	} {
		if _, err := s.UpdateTask(ann, task.ID, change); err == nil {
			t.Errorf("a task with %s was stored", what)
		}
	}
	wantTask(t, s, task)
	if _, err := s.CreateTask(state.Task{Owner: ann}); err == nil {
		t.Error("a task without a TTL was stored")
	}
}

func tasksExpire(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{})
	task := create(t, s)
	changes, stop, err := s.WatchTask(ann, task.ID)
	check(t, err)
	defer stop()
	_, err = s.UpdateTask(ann, task.ID, func(t *state.Task) error { t.TTL = 2 * time.Hour; return nil })
	check(t, err)
	<-changes
	c.advance(time.Hour)
	check(t, s.Sweep())
	if _, err := s.Task(ann, task.ID); err != nil {
		t.Errorf("task with a longer TTL: %v", err)
	}
	c.advance(time.Hour)
	if _, err := s.Task(ann, task.ID); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("task after its TTL: %v", err)
	}
	if _, err := s.UpdateTask(ann, task.ID, finish(state.Completed, "")); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("change after the TTL: %v", err)
	}
	create(t, s)
	if _, open := <-changes; open {
		t.Error("the watch channel is not closed")
	}
}

func tasksAreBounded(t *testing.T, suite Suite) {
	s, _ := suite.fresh(t, state.Options{Tasks: state.Limits{Count: 3, Bytes: 3 << 10}})
	task, _, _ := create(t, s), create(t, s), create(t, s)
	_, err := s.CreateTask(state.Task{Owner: bob, TTL: time.Minute})
	wantFull(t, err, time.Hour)
	_, err = s.UpdateTask(ann, task.ID, finish(state.Completed, string(make([]byte, 4<<10))))
	wantFull(t, err, time.Hour)
	wantTask(t, s, task)
	_, err = s.UpdateTask(ann, task.ID, func(t *state.Task) error {
		t.Status, t.Message = state.Failed, "the result is too large to be kept"
		return nil
	})
	check(t, err)
}

func tasksAreWatched(t *testing.T, suite Suite) {
	s, _ := suite.fresh(t, state.Options{})
	task := create(t, s)
	changes, stop, err := s.WatchTask(ann, task.ID)
	check(t, err)
	_, stopOther, err := s.WatchTask(ann, task.ID)
	check(t, err)
	stopOther()
	select {
	case <-changes:
		t.Fatal("notification before any change")
	default:
	}
	for range 3 {
		_, err := s.UpdateTask(ann, task.ID, ask)
		check(t, err)
	}
	<-changes
	select {
	case <-changes:
		t.Error("unreceived notifications pile up")
	default:
	}
	stop()
	stop()
	_, err = s.UpdateTask(ann, task.ID, ask)
	check(t, err)
	select {
	case <-changes:
		t.Error("notification after stop")
	default:
	}
}

func tasksChangeInTurn(t *testing.T, suite Suite) {
	s, _ := suite.fresh(t, state.Options{})
	task := create(t, s)
	const many = 20
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			_, err := s.UpdateTask(ann, task.ID, func(t *state.Task) error {
				t.Held = append(t.Held, 1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := s.Task(ann, task.ID)
	check(t, err)
	if len(got.Held) != many {
		t.Errorf("of %d changes %d remain", many, len(got.Held))
	}
}
