package tasks_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
)

// once asks with the keys, and then returns the responses.
func once(keys ...string) run {
	return func(_ context.Context, leg call.Request) call.Result {
		if leg.Resume == nil {
			return asks(keys...)
		}
		text := leg.Caller.Agent.AgentID + " " + leg.Resume.State
		for _, key := range keys {
			text += " " + key + "=" + string(leg.Resume.Responses[key])
		}
		return result(text)
	}
}

func TestUpdateTask_partialResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasks(t, once("a", "b"))
		task := waitSettled(t, of, start(t, of).ID)
		if !slices.Equal(keys(task), []string{"a", "b"}) {
			t.Fatalf("got %+v", task)
		}
		check(t, of.UpdateTask(t.Context(), ann, task.ID, answers{"b": named("B"), "other": named("X")}))
		if left := waitSettled(t, of, task.ID); !slices.Equal(keys(left), []string{"a"}) || isOver(left) {
			t.Fatalf("got %+v", left)
		}
		second := ann
		second.Agent.AgentID = "second"
		check(t, of.UpdateTask(t.Context(), second, task.ID, answers{"a": named("A"), "b": named("no more")}))
		want := "second sealed a=" + string(named("A")) + " b=" + string(named("B"))
		if got := waitSettled(t, of, task.ID); textOf(got) != want {
			t.Errorf("got %+v\nwant %s", got, want)
		}
	})
}

func TestUpdateTask_unknownKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		legs := 0
		of := newTasks(t, func(ctx context.Context, leg call.Request) call.Result {
			legs++
			return once("a")(ctx, leg)
		})
		task := waitSettled(t, of, start(t, of).ID)
		check(t, of.UpdateTask(t.Context(), ann, task.ID, answers{"b": named("B")}))
		check(t, of.UpdateTask(t.Context(), ann, task.ID, nil))
		if diff := cmp.Diff(task, waitSettled(t, of, task.ID)); diff != "" {
			t.Errorf("(-before +after)\n%s", diff)
		}
		check(t, of.UpdateTask(t.Context(), ann, task.ID, answers{"a": named("A")}))
		ended := waitSettled(t, of, task.ID)
		check(t, of.UpdateTask(t.Context(), ann, task.ID, answers{"a": named("Again")}))
		if diff := cmp.Diff(ended, waitSettled(t, of, task.ID)); diff != "" || legs != 2 {
			t.Errorf("after %d legs (-before +after)\n%s", legs, diff)
		}
	})
}

func TestUpdateTask_invalidResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasks(t, once("a", "b"))
		task := waitSettled(t, of, start(t, of).ID)
		err := of.UpdateTask(t.Context(), ann, task.ID, answers{"a": []byte(`{"action":"accept","content":{"name":7}}`), "b": named("B")})
		if err == nil || err.Code != call.InvalidInput || !strings.Contains(err.Message, "the answer to a does not fit its schema") {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff(task, waitSettled(t, of, task.ID)); diff != "" {
			t.Errorf("(-before +after)\n%s", diff)
		}
	})
}

func TestSuspend_freshKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leg := 0
		of := newTasks(t, func(_ context.Context, l call.Request) call.Result {
			if leg++; leg == 4 {
				return result(string(l.Resume.Responses["name"]))
			}
			return asks("name")
		})
		task := waitSettled(t, of, start(t, of).ID)
		var seen []string
		for !isOver(task) {
			seen = append(seen, keys(task)...)
			check(t, of.UpdateTask(t.Context(), ann, task.ID, answers{keys(task)[0]: named(keys(task)[0])}))
			task = waitSettled(t, of, task.ID)
		}
		if !slices.Equal(seen, []string{"name", "name-2", "name-3"}) || textOf(task) != string(named("name-3")) {
			t.Errorf("asked under %v, got %+v", seen, task)
		}
	})
}

func TestCancelTask_suspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := newTasks(t, once("a"))
		task := waitSettled(t, of, start(t, of).ID)
		check(t, of.CancelTask(t.Context(), ann, task.ID))
		check(t, of.UpdateTask(t.Context(), ann, task.ID, answers{"a": named("A")}))
		if got := waitSettled(t, of, task.ID); !got.Cancelled || got.Requests != nil {
			t.Errorf("got %+v", got)
		}
	})
}

func TestSuspend_timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := state.NewMemory(state.Options{})
		of := newTasksOver(t, store, once("a"))
		notified := ""
		task := start(t, of)
		synctest.Wait()
		of.WatchTasks(func(id string) { notified += id })
		time.Sleep(time.Minute - 1)
		if got := waitSettled(t, of, task.ID); isOver(got) {
			t.Fatalf("the task ended too early: %+v", got)
		}
		time.Sleep(time.Nanosecond)
		if got := waitSettled(t, of, task.ID); failureOf(got) != "the client did not answer within 1m0s" || notified != task.ID {
			t.Errorf("notified of %q, got %+v", notified, got)
		}
	})
}

func TestSuspend_timeoutAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := state.NewMemory(state.Options{})
		earlier := newTasksOver(t, store, once("a"))
		first, second := start(t, earlier), start(t, earlier)
		synctest.Wait()
		check(t, earlier.Close(t.Context()))

		// The first is read in time, which starts its timer; the other is not.
		later := newTasksOver(t, store, once("a"))
		waitSettled(t, later, first.ID)
		notified := ""
		later.WatchTasks(func(id string) { notified += id })
		time.Sleep(time.Minute)
		synctest.Wait()
		if notified != first.ID {
			t.Errorf("notified of %q, want %q", notified, first.ID)
		}
		for _, id := range []string{first.ID, second.ID} {
			if got := waitSettled(t, later, id); failureOf(got) != "the client did not answer within 1m0s" {
				t.Errorf("got %+v", got)
			}
		}
	})
}
