package tasks_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/protocol/tasks"
)

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
