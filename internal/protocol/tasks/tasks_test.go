package tasks_test

import (
	"context"
	"encoding/json"
	"strings"
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
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/tasks"
)

// run runs the legs of calls.
type run = func(ctx context.Context, leg call.Request) call.Result

// result returns the result of a successful call.
func result(text string) call.Result {
	content, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return call.Result{Content: content}
}

// textOf returns the text of a task's [result]; empty for any other task.
func textOf(t *mcp.Task) (text string) {
	if t.Response != nil && t.Response.Err == nil {
		_ = json.Unmarshal(t.Response.Content, &text) // any other content is not a result of these tests
	}
	return text
}

// failureOf returns the message of the error that a task ended with; empty for
// any other task.
func failureOf(t *mcp.Task) string {
	if t.Response == nil || t.Response.Err == nil {
		return ""
	}
	return t.Response.Err.Message
}

func isOver(t *mcp.Task) bool { return t.Cancelled || t.Response != nil }

// untilCancelled is a leg that ends only with its context.
func untilCancelled(ctx context.Context, _ call.Request) call.Result {
	<-ctx.Done()
	return call.Result{Err: &call.Error{Code: call.ExecutionError, Cause: context.Cause(ctx)}}
}

// asks returns the outcome of a call that asks for a name under each key.
func asks(keys ...string) call.Result {
	a := &call.Ask{State: "sealed", Wait: time.Minute}
	for _, key := range keys {
		a.Requests = append(a.Requests, call.AskRequest{
			Key: key, Method: suspend.MethodElicit,
			Params: json.RawMessage(`{"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`),
		})
	}
	return call.Result{Ask: a}
}

func named(name string) json.RawMessage {
	return json.RawMessage(`{"action":"accept","content":{"name":"` + name + `"}}`)
}

type answers = map[string]json.RawMessage

func caller(id string) identity.Caller { return identity.Caller{Principal: identity.Principal{ID: id}} }

var (
	ann    = caller("ann")
	report = call.Request{Name: "report", Arguments: json.RawMessage(`{"n":1}`), Caller: ann}
)

// newTasksOver returns tasks over a store, which end with the test.
func newTasksOver(t *testing.T, store tasks.Store, r run) *tasks.Tasks {
	made := tasks.New(tasks.Options{Store: func() (tasks.Store, error) { return store, nil }, Run: r})
	t.Cleanup(func() { _ = made.Close(t.Context()) })
	return made
}

// newTasks returns tasks over a new store in memory.
func newTasks(t *testing.T, r run) *tasks.Tasks {
	return newTasksOver(t, state.NewMemory(state.Options{}), r)
}

func start(t *testing.T, of *tasks.Tasks) *mcp.Task {
	t.Helper()
	task, err := of.Start(t.Context(), report, time.Hour)
	check(t, err)
	return task
}

// check fails on an error of any type.
func check[E comparable](t *testing.T, err E) {
	t.Helper()
	var none E
	if err != none {
		t.Fatal(err)
	}
}

// waitSettled returns a task when no leg is running.
func waitSettled(t *testing.T, of *tasks.Tasks, id string) *mcp.Task {
	t.Helper()
	synctest.Wait()
	task, err := of.Task(t.Context(), ann, id)
	check(t, err)
	return task
}

// keys returns the keys of a task's input requests.
func keys(t *mcp.Task) (all []string) {
	for _, r := range t.Requests {
		all = append(all, r.Key)
	}
	return all
}

func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		of := newTasks(t, func(_ context.Context, leg call.Request) call.Result {
			<-goOn
			return result(leg.Name + " " + string(leg.Arguments) + " for " + leg.Caller.Principal.ID)
		})
		task := start(t, of)
		working := waitSettled(t, of, task.ID)
		if diff := cmp.Diff(task, working); diff != "" || isOver(working) {
			t.Errorf("the returned task differs from the running one (-returned +running)\n%s", diff)
		}
		close(goOn)
		want, response := *task, result(`report {"n":1} for ann`)
		want.Response = &response
		if diff := cmp.Diff(&want, waitSettled(t, of, task.ID)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestStart_outlivesRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasks(t, func(ctx context.Context, _ call.Request) call.Result {
			time.Sleep(time.Minute)
			if ctx.Err() != nil {
				return untilCancelled(ctx, call.Request{})
			}
			return result("done")
		})
		request, gone := context.WithCancel(t.Context())
		task, err := of.Start(request, report, time.Hour)
		check(t, err)
		gone()
		time.Sleep(2 * time.Minute)
		if got := waitSettled(t, of, task.ID); textOf(got) != "done" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestTask_otherPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasks(t, func(context.Context, call.Request) call.Result { return asks("name") })
		task := waitSettled(t, of, start(t, of).ID)
		bob := caller("bob")
		_, err := of.Task(t.Context(), bob, task.ID)
		for what, err := range map[string]*call.Error{
			"get":    err,
			"update": of.UpdateTask(t.Context(), bob, task.ID, answers{"name": named("Bob")}),
			"cancel": of.CancelTask(t.Context(), bob, task.ID),
		} {
			if err == nil || err.Code != call.ToolNotFound {
				t.Errorf("%s: got %v", what, err)
			}
		}
		if got := waitSettled(t, of, task.ID); isOver(got) || len(got.Requests) != 1 {
			t.Errorf("another principal changed the task to %+v", got)
		}
	})
}

// TestStart_randomID requires random characters at each position of the ids.
func TestStart_randomID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasks(t, func(context.Context, call.Request) call.Result { return result("done") })
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
				t.Errorf("position %d has only %d different characters in 200 ids", i, len(seen))
			}
		}
	})
}

func TestCancelTask_stopsLeg(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		of := newTasks(t, func(ctx context.Context, leg call.Request) call.Result {
			defer func() { ended = true }()
			return untilCancelled(ctx, leg)
		})
		task := start(t, of)
		check(t, of.CancelTask(t.Context(), ann, task.ID))
		if got := waitSettled(t, of, task.ID); !ended || !got.Cancelled || got.Response != nil {
			t.Errorf("ended = %v, got %+v", ended, got)
		}
		check(t, of.CancelTask(t.Context(), ann, task.ID))
	})
}

func TestCancelTask_ended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasks(t, func(context.Context, call.Request) call.Result { return result("done") })
		task := waitSettled(t, of, start(t, of).ID)
		check(t, of.CancelTask(t.Context(), ann, task.ID))
		if got := waitSettled(t, of, task.ID); got.Cancelled || textOf(got) != "done" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestStart_ttlEndsLeg(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took time.Duration
		of := newTasks(t, func(ctx context.Context, leg call.Request) call.Result {
			started := time.Now()
			defer func() { took = time.Since(started) }()
			return untilCancelled(ctx, leg)
		})
		task := start(t, of)
		time.Sleep(2 * time.Hour)
		if _, err := of.Task(t.Context(), ann, task.ID); err == nil || err.Code != call.ToolNotFound || took != time.Hour {
			t.Errorf("got %v after %s", err, took)
		}
	})
}

func TestWatchTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasks(t, func(_ context.Context, leg call.Request) call.Result {
			if leg.Resume == nil {
				return asks("name")
			}
			return result("done")
		})
		notified := map[string]int{}
		stop := of.WatchTasks(func(id string) { notified[id]++ })
		task := start(t, of)
		synctest.Wait()
		check(t, of.UpdateTask(t.Context(), ann, task.ID, answers{"name": named("Ann")}))
		synctest.Wait()
		// The request, the response, and the end.
		if notified[task.ID] != 3 {
			t.Errorf("notifications: %v", notified)
		}
		stop()
		start(t, of)
		synctest.Wait()
		if len(notified) != 1 {
			t.Error("notified after stop")
		}
	})
}

// TestCancelTask_concurrentUpdate answers and cancels at the same time: in
// either order, the task is cancelled at the end and no leg runs.
func TestCancelTask_concurrentUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		of := newTasks(t, func(ctx context.Context, leg call.Request) call.Result {
			runs.Add(1)
			defer runs.Add(-1)
			if leg.Resume == nil {
				return asks("a")
			}
			return untilCancelled(ctx, leg)
		})
		var all []string
		for range 200 {
			all = append(all, start(t, of).ID)
		}
		synctest.Wait()
		var racers sync.WaitGroup
		for _, id := range all {
			racers.Go(func() {
				if err := of.UpdateTask(t.Context(), ann, id, answers{"a": named("A")}); err != nil {
					t.Error(err)
				}
			})
			racers.Go(func() {
				if err := of.CancelTask(t.Context(), ann, id); err != nil {
					t.Error(err)
				}
			})
		}
		racers.Wait()
		synctest.Wait()
		if n := runs.Load(); n != 0 {
			t.Errorf("%d legs are still running", n)
		}
		for _, id := range all {
			if got := waitSettled(t, of, id); !got.Cancelled {
				t.Errorf("got %+v", got)
			}
		}
	})
}

// text returns a call with an argument of the given size.
func text(bytes int) call.Request {
	r := report
	r.Arguments = json.RawMessage(`"` + strings.Repeat("x", bytes-2) + `"`)
	return r
}

// large is a call that fits twice into the limit.
var large = text(30 << 20)

func isFull(err *call.Error) bool { return err != nil && err.Overloaded && err.RetryAfter > 0 }

func TestStart_maxRunningBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasks(t, untilCancelled)
		first, err := of.Start(t.Context(), large, time.Hour)
		check(t, err)
		_, err = of.Start(t.Context(), large, time.Hour)
		check(t, err)
		if _, err := of.Start(t.Context(), large, time.Hour); !isFull(err) {
			t.Errorf("third call: got %v", err)
		}
		start(t, of)
		check(t, of.CancelTask(t.Context(), ann, first.ID))
		synctest.Wait()
		_, err = of.Start(t.Context(), large, time.Hour)
		check(t, err)
	})
}

func TestUpdateTask_noRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		of := newTasks(t, func(ctx context.Context, leg call.Request) call.Result {
			if len(leg.Arguments) > 100 {
				<-goOn
				return result("made room")
			}
			return once("a")(ctx, leg)
		})
		task := waitSettled(t, of, start(t, of).ID)
		_, err := of.Start(t.Context(), text(64<<20), time.Hour)
		check(t, err)
		if err := of.UpdateTask(t.Context(), ann, task.ID, answers{"a": named("A")}); !isFull(err) {
			t.Errorf("response beside the call: got %v", err)
		}
		if got := waitSettled(t, of, task.ID); len(got.Requests) != 1 {
			t.Errorf("task: %+v", got)
		}
		close(goOn)
		synctest.Wait()
		check(t, of.UpdateTask(t.Context(), ann, task.ID, answers{"a": named("A")}))
		if got := waitSettled(t, of, task.ID); textOf(got) == "" {
			t.Errorf("task: %+v", got)
		}
	})
}
