package tasks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/suspend"
	"github.com/mcpd/mcpd/internal/protocol/tasks"
)

// run is a runner whose calls all do the same.
type run func(ctx context.Context, leg tasks.Leg) tasks.Outcome

func (r run) Run(ctx context.Context, leg tasks.Leg) tasks.Outcome { return r(ctx, leg) }
func (run) Unanswered(wait time.Duration) []byte                   { return []byte("unanswered in " + wait.String()) }

// result is the outcome of a call that ends well.
func result(text string) tasks.Outcome { return tasks.Outcome{Result: []byte(text)} }

// untilCut is a leg that never ends by itself.
func untilCut(ctx context.Context, _ tasks.Leg) tasks.Outcome {
	<-ctx.Done()
	return tasks.Outcome{Cut: true}
}

// asks is the outcome of a call that asks for a name under each key.
func asks(keys ...string) tasks.Outcome {
	a := &call.Ask{State: "sealed", Wait: time.Minute}
	for _, key := range keys {
		a.Requests = append(a.Requests, suspend.Request{
			Key: key, Method: suspend.Elicit,
			Params: json.RawMessage(`{"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`),
		})
	}
	return tasks.Outcome{Ask: a}
}

func named(name string) json.RawMessage {
	return json.RawMessage(`{"action":"accept","content":{"name":"` + name + `"}}`)
}

type answers = map[string]json.RawMessage

func caller(id string) identity.Caller { return identity.Caller{Principal: identity.Principal{ID: id}} }

var (
	ann    = caller("ann")
	report = tasks.Call{Tool: "report", TTL: time.Hour, Body: json.RawMessage(`{"n":1}`)}
)

// over returns tasks of a store, which end with the test.
func over(t *testing.T, store tasks.Store, r run) *tasks.Tasks {
	made := tasks.New(tasks.Options{Store: func() (tasks.Store, error) { return store, nil }, Runner: r})
	t.Cleanup(func() { _ = made.Close(t.Context()) })
	return made
}

// fresh returns tasks of a store in memory.
func fresh(t *testing.T, r run) *tasks.Tasks { return over(t, state.NewMemory(state.Options{}), r) }

func start(t *testing.T, of *tasks.Tasks) tasks.Task {
	t.Helper()
	task, err := of.Start(t.Context(), ann, report)
	check(t, err)
	return task
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// settled returns a task when nothing runs any more.
func settled(t *testing.T, of *tasks.Tasks, id string) tasks.Task {
	t.Helper()
	synctest.Wait()
	task, err := of.Task(ann.Principal, id)
	check(t, err)
	return task
}

// keys returns what a task asks.
func keys(t tasks.Task) (all []string) {
	for _, r := range t.Requests {
		all = append(all, r.Key)
	}
	return all
}

func TestATaskIsThereAtOnceAndEndsWithTheResultOfItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		of := fresh(t, func(_ context.Context, leg tasks.Leg) tasks.Outcome {
			<-goOn
			return result(leg.Tool + " " + string(leg.Body) + " for " + leg.Caller.Principal.ID)
		})
		task := start(t, of)
		working := settled(t, of, task.ID)
		if diff := cmp.Diff(task, working); diff != "" || working.Ended {
			t.Errorf("the task that was answered is not the one that works (-answered +works)\n%s", diff)
		}
		close(goOn)
		want := task
		want.Ended, want.Result = true, []byte(`report {"n":1} for ann`)
		if diff := cmp.Diff(want, settled(t, of, task.ID)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestATaskOutlivesTheRequestThatMadeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := fresh(t, func(ctx context.Context, _ tasks.Leg) tasks.Outcome {
			time.Sleep(time.Minute)
			if ctx.Err() != nil {
				return tasks.Outcome{Cut: true}
			}
			return result("done")
		})
		request, gone := context.WithCancel(t.Context())
		task, err := of.Start(request, ann, report)
		check(t, err)
		gone()
		time.Sleep(2 * time.Minute)
		if got := settled(t, of, task.ID); string(got.Result) != "done" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestATaskIsItsPrincipals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := fresh(t, func(context.Context, tasks.Leg) tasks.Outcome { return asks("name") })
		task := settled(t, of, start(t, of).ID)
		bob := caller("bob")
		_, err := of.Task(bob.Principal, task.ID)
		for what, err := range map[string]error{
			"get":    err,
			"update": of.Update(t.Context(), bob, task.ID, answers{"name": named("Bob")}),
			"cancel": of.Cancel(bob.Principal, task.ID),
		} {
			if !errors.Is(err, tasks.ErrNotFound) {
				t.Errorf("%s: got %v", what, err)
			}
		}
		if got := settled(t, of, task.ID); got.Ended || len(got.Requests) != 1 {
			t.Errorf("somebody else changed the task to %+v", got)
		}
	})
}

// TestNobodyGuessesTheIDOfATask wants chance in each place of the ids.
func TestNobodyGuessesTheIDOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := fresh(t, func(context.Context, tasks.Leg) tasks.Outcome { return result("done") })
		var places [26]map[byte]bool // of 5 bits each
		for range 200 {
			id := start(t, of).ID
			if len(id) < len(places) {
				t.Fatalf("%q is too short", id)
			}
			for i := range places {
				if places[i] == nil {
					places[i] = map[byte]bool{}
				}
				places[i][id[i]] = true
			}
		}
		for i, seen := range places {
			if len(seen) < 16 {
				t.Errorf("place %d holds only %d different characters in 200 ids", i, len(seen))
			}
		}
	})
}

func TestACancelledTaskStopsItsLeg(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		of := fresh(t, func(ctx context.Context, leg tasks.Leg) tasks.Outcome {
			defer func() { ended = true }()
			return untilCut(ctx, leg)
		})
		task := start(t, of)
		check(t, of.Cancel(ann.Principal, task.ID))
		if got := settled(t, of, task.ID); !ended || !got.Cancelled || !got.Ended || got.Result != nil {
			t.Errorf("ended is %v, got %+v", ended, got)
		}
		check(t, of.Cancel(ann.Principal, task.ID))
	})
}

func TestWhatEndedIsNotCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := fresh(t, func(context.Context, tasks.Leg) tasks.Outcome { return result("done") })
		task := settled(t, of, start(t, of).ID)
		check(t, of.Cancel(ann.Principal, task.ID))
		if got := settled(t, of, task.ID); got.Cancelled || string(got.Result) != "done" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestALegEndsWithTheTimeToLiveOfItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took time.Duration
		of := fresh(t, func(ctx context.Context, leg tasks.Leg) tasks.Outcome {
			began := time.Now()
			defer func() { took = time.Since(began) }()
			return untilCut(ctx, leg)
		})
		task := start(t, of)
		time.Sleep(2 * time.Hour)
		if _, err := of.Task(ann.Principal, task.ID); !errors.Is(err, tasks.ErrNotFound) || took != time.Hour {
			t.Errorf("got %v after %s", err, took)
		}
	})
}

func TestWatchersAreToldOfEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := fresh(t, func(_ context.Context, leg tasks.Leg) tasks.Outcome {
			if leg.Resume == nil {
				return asks("name")
			}
			return result("done")
		})
		told := map[string]int{}
		stop := of.Watch(func(id string) { told[id]++ })
		task := start(t, of)
		synctest.Wait()
		check(t, of.Update(t.Context(), ann, task.ID, answers{"name": named("Ann")}))
		synctest.Wait()
		// The question, the answer, and the end.
		if told[task.ID] != 3 {
			t.Errorf("told %v", told)
		}
		stop()
		start(t, of)
		synctest.Wait()
		if len(told) != 1 {
			t.Error("told after it was stopped")
		}
	})
}

// TestNoLegOutlivesACancelledTask answers and cancels at the same moment: whoever
// is first, the task is cancelled in the end and nothing runs.
func TestNoLegOutlivesACancelledTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		of := fresh(t, func(ctx context.Context, leg tasks.Leg) tasks.Outcome {
			runs.Add(1)
			defer runs.Add(-1)
			if leg.Resume == nil {
				return asks("a")
			}
			return untilCut(ctx, leg)
		})
		var all []string
		for range 200 {
			all = append(all, start(t, of).ID)
		}
		synctest.Wait()
		var racers sync.WaitGroup
		for _, id := range all {
			racers.Go(func() {
				if err := of.Update(t.Context(), ann, id, answers{"a": named("A")}); err != nil {
					t.Error(err)
				}
			})
			racers.Go(func() {
				if err := of.Cancel(ann.Principal, id); err != nil {
					t.Error(err)
				}
			})
		}
		racers.Wait()
		synctest.Wait()
		if n := runs.Load(); n != 0 {
			t.Errorf("%d legs still run", n)
		}
		for _, id := range all {
			if got := settled(t, of, id); !got.Cancelled {
				t.Errorf("got %+v", got)
			}
		}
	})
}

// large is a call of which two may run at once.
var large = tasks.Call{Tool: "report", TTL: time.Hour, Body: append(bytes.Repeat([]byte(" "), 30<<20), "{}"...)}

func isFull(err error) bool {
	_, ok := errors.AsType[*tasks.FullError](err)
	return ok
}

func TestCallsThatRunAsTasksHaveOneBoundTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := fresh(t, untilCut)
		first, err := of.Start(t.Context(), ann, large)
		check(t, err)
		_, err = of.Start(t.Context(), ann, large)
		check(t, err)
		if _, err := of.Start(t.Context(), ann, large); !isFull(err) {
			t.Errorf("a third call: got %v", err)
		}
		start(t, of)
		check(t, of.Cancel(ann.Principal, first.ID))
		synctest.Wait()
		_, err = of.Start(t.Context(), ann, large)
		check(t, err)
	})
}

func TestATaskIsAnsweredAgainWhenThereIsRoomToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		of := fresh(t, func(ctx context.Context, leg tasks.Leg) tasks.Outcome {
			if len(leg.Body) > 100 {
				<-goOn
				return result("made room")
			}
			return once("a")(ctx, leg)
		})
		task := settled(t, of, start(t, of).ID)
		all := large
		all.Body = append(bytes.Repeat([]byte(" "), 64<<20-2), "{}"...)
		_, err := of.Start(t.Context(), ann, all)
		check(t, err)
		if err := of.Update(t.Context(), ann, task.ID, answers{"a": named("A")}); !isFull(err) {
			t.Errorf("an answer beside the call: got %v", err)
		}
		if got := settled(t, of, task.ID); len(got.Requests) != 1 {
			t.Errorf("the task is %+v", got)
		}
		close(goOn)
		synctest.Wait()
		check(t, of.Update(t.Context(), ann, task.ID, answers{"a": named("A")}))
		if got := settled(t, of, task.ID); !got.Ended || got.Result == nil {
			t.Errorf("the task is %+v", got)
		}
	})
}
