package tasks_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/state/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func isDraining(err *call.Error) bool {
	return isFull(err) && err.Message == "the server is shutting down"
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasks(t, func(context.Context, call.Request) call.Result {
			time.Sleep(time.Second)
			return asks("a")
		})
		task := start(t, of)
		drained := make(chan error)
		go func() { drained <- of.Drain(t.Context()) }()
		synctest.Wait()
		if _, err := of.Start(t.Context(), report, time.Hour); !isDraining(err) {
			t.Errorf("a new task: got %v", err)
		}
		check(t, <-drained)
		if got := waitSettled(t, of, task.ID); len(got.Requests) != 1 {
			t.Errorf("got %+v", got)
		}
		if err := of.UpdateTask(t.Context(), ann, task.ID, answers{"a": named("A")}); !isDraining(err) {
			t.Errorf("an answer: got %v", err)
		}
	})
}

func TestClose_runningLeg(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasks(t, untilCancelled)
		task := start(t, of)
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := of.Drain(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drain: got %v", err)
		}
		check(t, of.Close(t.Context()))
		got := waitSettled(t, of, task.ID)
		if got.Cancelled || failureOf(got) != got.Message || !strings.HasPrefix(got.Message, "the server was stopped while the task ran") {
			t.Errorf("got %+v", got)
		}
	})
}

func TestClose_stuckLeg(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		store := state.NewMemory(state.Options{})
		of := newTasksOver(t, store, func(context.Context, call.Request) call.Result {
			<-goOn
			return result("late")
		})
		start(t, of)
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := of.Close(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		check(t, store.Close())
		close(goOn)
	})
}

func TestStart_fullStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasksOver(t, state.NewMemory(state.Options{Tasks: state.Limits{OwnerCount: 1}}), once("a"))
		start(t, of)
		if _, err := of.Start(t.Context(), report, time.Hour); !isFull(err) || err.RetryAfter != time.Hour {
			t.Errorf("got %v", err)
		}
		another := report
		another.Caller = caller("bob")
		if _, err := of.Start(t.Context(), another, time.Hour); err != nil {
			t.Errorf("tasks of one principal use the limit of another: %v", err)
		}
		synctest.Wait()
	})
}

func TestFinish_noRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasksOver(t, state.NewMemory(state.Options{Tasks: state.Limits{OwnerBytes: 4 << 10}}), func(context.Context, call.Request) call.Result {
			return result(strings.Repeat("x", 8<<10))
		})
		got := waitSettled(t, of, start(t, of).ID)
		if failureOf(got) != got.Message || got.Message != "the server has no room to store the result of the task" {
			t.Errorf("got %+v", got)
		}
	})
}

// broken is a store that fails to change tasks for a while.
type broken struct {
	state.Store
	is func() bool
}

func (b broken) UpdateTask(owner state.Owner, id string, change func(*state.Task) error) (state.Task, error) {
	if b.is() {
		return state.Task{}, errors.New("disk failure")
	}
	return b.Store.UpdateTask(owner, id, change)
}

func TestFinish_brokenStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var isBroken atomic.Bool
		isBroken.Store(true)
		of := newTasksOver(t, broken{state.NewMemory(state.Options{}), isBroken.Load}, func(context.Context, call.Request) call.Result { return result("lost") })
		task := start(t, of)
		synctest.Wait()
		if got, err := of.Task(t.Context(), ann, task.ID); err != nil || isOver(got) {
			t.Errorf("while the end is stored again: %+v, %v", got, err)
		}
		time.Sleep(11 * time.Second)
		if _, err := of.Task(t.Context(), ann, task.ID); err == nil {
			t.Error("a task with an unknown outcome was reported")
		}
		isBroken.Store(false)
		if got := waitSettled(t, of, task.ID); failureOf(got) != got.Message || got.Message != "the server could not store the result of the task" {
			t.Errorf("got %+v", got)
		}
	})
}

// Servers that share the store see the end of a task without a client that reads it here.
func TestFinish_brokenStoreRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var isBroken atomic.Bool
		isBroken.Store(true)
		store := state.NewMemory(state.Options{})
		of := newTasksOver(t, broken{store, isBroken.Load}, func(context.Context, call.Request) call.Result { return result("lost") })
		changed := make(chan string, 10)
		defer of.WatchTasks(func(id string) { changed <- id })()
		task := start(t, of)
		time.Sleep(time.Minute)
		isBroken.Store(false)
		if id := <-changed; id != task.ID {
			t.Errorf("%s has changed", id)
		}
		if got, err := store.Task(state.OwnerOf(ann.Principal), task.ID); err != nil || got.Status != state.Failed || got.Message == "" {
			t.Errorf("the stored task is %s, %q, %v", got.Status, got.Message, err)
		}
	})
}

// slow is a store in which changes of one task wait.
type slow struct {
	state.Store
	id      *atomic.Value
	waiting chan struct{}
	goOn    chan struct{}
}

func (s slow) UpdateTask(owner state.Owner, id string, change func(*state.Task) error) (state.Task, error) {
	if id == s.id.Load() {
		s.waiting <- struct{}{}
		<-s.goOn
	}
	return s.Store.UpdateTask(owner, id, change)
}

func TestCancelTask_slowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slow{state.NewMemory(state.Options{}), &atomic.Value{}, make(chan struct{}), make(chan struct{})}
		of := newTasksOver(t, store, untilCancelled)
		stuck := start(t, of)
		store.id.Store(stuck.ID)
		cancelled := make(chan *call.Error)
		go func() { cancelled <- of.CancelTask(t.Context(), ann, stuck.ID) }()
		<-store.waiting
		other := start(t, of)
		check(t, of.CancelTask(t.Context(), ann, other.ID))
		if got := waitSettled(t, of, other.ID); !got.Cancelled {
			t.Errorf("got %+v", got)
		}
		store.id.Store("")
		close(store.goOn)
		check(t, <-cancelled)
	})
}

// This test closes the file and opens it again. It does not run in a bubble,
// because file I/O is not part of one.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "tasks.db")
	open := func() state.Store {
		t.Helper()
		store, err := sqlite.Open(path, state.Options{}, 0)
		check(t, err)
		t.Cleanup(func() { check(t, store.Close()) })
		return store
	}
	store := open()
	goOn := make(chan struct{})
	earlier := newTasksOver(t, store, func(ctx context.Context, leg call.Request) call.Result {
		if leg.Name == "runs" {
			<-goOn
			return result("never stored")
		}
		return once("a")(ctx, leg)
	})
	changed := make(chan string, 10)
	defer earlier.WatchTasks(func(id string) { changed <- id })()
	waits := start(t, earlier)
	runs, failure := earlier.Start(t.Context(), call.Request{Name: "runs", Caller: ann}, time.Hour)
	check(t, failure)
	if id := <-changed; id != waits.ID {
		t.Fatalf("%s has changed", id)
	}
	check(t, store.Close())
	close(goOn)
	check(t, earlier.Close(t.Context()))

	later := newTasksOver(t, open(), once("a"))
	changed = make(chan string, 10)
	defer later.WatchTasks(func(id string) { changed <- id })()
	got, err := later.Task(t.Context(), ann, runs.ID)
	check(t, err)
	if failureOf(got) != got.Message || !strings.HasPrefix(got.Message, "the server was restarted while the task ran") {
		t.Errorf("running task: %+v", got)
	}
	check(t, later.UpdateTask(t.Context(), ann, waits.ID, answers{"a": named("A")}))
	for range 2 { // the response, and the end
		<-changed
	}
	got, err = later.Task(t.Context(), ann, waits.ID)
	check(t, err)
	if want := " sealed a=" + string(named("A")); textOf(got) != want {
		t.Errorf("suspended task: %+v, want %s", got, want)
	}
}

func TestTask_keepsRemovedIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasks(t, func(context.Context, call.Request) call.Result {
			return call.Result{Err: &call.Error{Code: call.ToolNotFound, Message: "removed", RemovedIn: "r2"}}
		})
		got := waitSettled(t, of, start(t, of).ID)
		if failureOf(got) != "removed" || got.Response.Err.RemovedIn != "r2" {
			t.Errorf("got %+v", got.Response)
		}
	})
}

// failedBefore is a store in which every task has failed, with the result that is in a file.
type failedBefore struct {
	state.Store
	result []byte
}

func (s failedBefore) Task(owner state.Owner, id string) (state.Task, error) {
	task, err := s.Store.Task(owner, id)
	task.Status, task.Result = state.Failed, s.result
	return task, err
}

// The file was written by the version before errors kept removed_in.
func TestTask_errorOfEarlierVersion(t *testing.T) {
	stored, err := os.ReadFile("testdata/before/error.json")
	check(t, err)
	synctest.Test(t, func(t *testing.T) {
		of := newTasksOver(t, failedBefore{state.NewMemory(state.Options{}), stored}, untilCancelled)
		got, err := of.Task(t.Context(), ann, start(t, of).ID)
		check(t, err)
		want := &call.Result{Revision: "r2", CallID: "c1", Err: &call.Error{
			Code: call.ToolNotFound, Message: `no tool named "report"; revision r2 removed it`, Trace: "at report.hcl:3", Details: []byte(`{"a":1}`), Schema: []byte(`{"type":"object"}`),
			Required: []byte(`{"sampling":{}}`), RetryAfter: 2 * time.Second, Overloaded: true, RPC: &call.RPCError{Code: -32601, Message: "m", Data: []byte("[1]")},
		}}
		if diff := cmp.Diff(want, got.Response); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
