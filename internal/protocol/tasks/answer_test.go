package tasks_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/protocol/tasks"
)

// once asks for the keys and then returns what it was answered.
func once(keys ...string) run {
	return func(_ context.Context, leg tasks.Leg) tasks.Outcome {
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

func TestATaskWaitsUntilEverythingIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := fresh(t, once("a", "b"))
		task := settled(t, of, start(t, of).ID)
		if !slices.Equal(keys(task), []string{"a", "b"}) {
			t.Fatalf("got %+v", task)
		}
		check(t, of.Update(t.Context(), ann, task.ID, answers{"b": named("B"), "other": named("X")}))
		if left := settled(t, of, task.ID); !slices.Equal(keys(left), []string{"a"}) || left.Ended {
			t.Fatalf("got %+v", left)
		}
		second := ann
		second.Agent.AgentID = "second"
		check(t, of.Update(t.Context(), second, task.ID, answers{"a": named("A"), "b": named("no more")}))
		want := "second sealed a=" + string(named("A")) + " b=" + string(named("B"))
		if got := settled(t, of, task.ID); string(got.Result) != want {
			t.Errorf("got %s\nwant %s", got.Result, want)
		}
	})
}

func TestAnswersThatNobodyAskedForChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		legs := 0
		of := fresh(t, func(ctx context.Context, leg tasks.Leg) tasks.Outcome {
			legs++
			return once("a")(ctx, leg)
		})
		task := settled(t, of, start(t, of).ID)
		check(t, of.Update(t.Context(), ann, task.ID, answers{"b": named("B")}))
		check(t, of.Update(t.Context(), ann, task.ID, nil))
		if diff := cmp.Diff(task, settled(t, of, task.ID)); diff != "" {
			t.Errorf("(-before +after)\n%s", diff)
		}
		check(t, of.Update(t.Context(), ann, task.ID, answers{"a": named("A")}))
		ended := settled(t, of, task.ID)
		check(t, of.Update(t.Context(), ann, task.ID, answers{"a": named("Again")}))
		if diff := cmp.Diff(ended, settled(t, of, task.ID)); diff != "" || legs != 2 {
			t.Errorf("after %d legs (-before +after)\n%s", legs, diff)
		}
	})
}

func TestAnAnswerThatDoesNotFitIsRefusedAndTheTaskWaitsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := fresh(t, once("a", "b"))
		task := settled(t, of, start(t, of).ID)
		err := of.Update(t.Context(), ann, task.ID, answers{"a": []byte(`{"action":"accept","content":{"name":7}}`), "b": named("B")})
		if _, ok := errors.AsType[*tasks.AnswerError](err); !ok || !strings.Contains(err.Error(), "the answer to a does not fit its schema") {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff(task, settled(t, of, task.ID)); diff != "" {
			t.Errorf("(-before +after)\n%s", diff)
		}
	})
}

func TestNoKeyIsUsedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leg := 0
		of := fresh(t, func(_ context.Context, l tasks.Leg) tasks.Outcome {
			if leg++; leg == 4 {
				return result(string(l.Resume.Responses["name"]))
			}
			return asks("name")
		})
		task := settled(t, of, start(t, of).ID)
		var seen []string
		for !task.Ended {
			seen = append(seen, keys(task)...)
			check(t, of.Update(t.Context(), ann, task.ID, answers{keys(task)[0]: named(keys(task)[0])}))
			task = settled(t, of, task.ID)
		}
		if !slices.Equal(seen, []string{"name", "name-2", "name-3"}) || string(task.Result) != string(named("name-3")) {
			t.Errorf("asked under %v, got %s", seen, task.Result)
		}
	})
}

func TestATaskThatWaitsIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := fresh(t, once("a"))
		task := settled(t, of, start(t, of).ID)
		check(t, of.Cancel(ann.Principal, task.ID))
		check(t, of.Update(t.Context(), ann, task.ID, answers{"a": named("A")}))
		if got := settled(t, of, task.ID); !got.Cancelled || got.Requests != nil {
			t.Errorf("got %+v", got)
		}
	})
}

func TestATaskDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := state.NewMemory(state.Options{})
		of := over(t, store, once("a"))
		told := ""
		task := start(t, of)
		synctest.Wait()
		of.Watch(func(id string) { told += id })
		time.Sleep(time.Minute - 1)
		if got := settled(t, of, task.ID); got.Ended {
			t.Fatalf("it has ended too early: %+v", got)
		}
		time.Sleep(time.Nanosecond)
		if got := settled(t, of, task.ID); string(got.Result) != "unanswered in 1m0s" || told != task.ID {
			t.Errorf("told of %q, got %+v", told, got)
		}
	})
}

func TestATaskOfAnEarlierServerDoesNotWaitForEverEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := state.NewMemory(state.Options{})
		earlier := over(t, store, once("a"))
		first, second := start(t, earlier), start(t, earlier)
		synctest.Wait()
		check(t, earlier.Close(t.Context()))

		// One is asked for in time, and watched from then on; the other is not.
		later := over(t, store, once("a"))
		settled(t, later, first.ID)
		told := ""
		later.Watch(func(id string) { told += id })
		time.Sleep(time.Minute)
		synctest.Wait()
		if told != first.ID {
			t.Errorf("told of %q, want %q", told, first.ID)
		}
		for _, id := range []string{first.ID, second.ID} {
			if got := settled(t, later, id); string(got.Result) != "unanswered in 1m0s" {
				t.Errorf("got %+v", got)
			}
		}
	})
}
