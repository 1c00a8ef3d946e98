package tasks_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/state/postgres"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/tasks"
)

// newReplicas returns tasks over stores in one database.
func newReplicas(t *testing.T, database *postgrestest.Server, schema string, runs ...run) (all []*tasks.Tasks) {
	t.Helper()
	for _, r := range runs {
		store, err := postgres.Open(state.Database{URL: database.URL("postgres", "schema="+schema)}, state.Options{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { check(t, store.Close()) })
		made := tasks.New(tasks.Options{Store: func() (tasks.Store, error) { return store, nil }, Run: r})
		t.Cleanup(func() { check(t, made.Close(context.Background())) })
		all = append(all, made)
	}
	return all
}

// changes returns a channel that receives a value after changes of a task, of which a server knows.
func changes(t *testing.T, of *tasks.Tasks, id string) <-chan struct{} {
	t.Helper()
	changed := make(chan struct{}, 1)
	t.Cleanup(of.WatchTasks(func(other string) {
		if other != id {
			return
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(of.FollowTask(t.Context(), ann, id))
	return changed
}

// until waits for a change of a task after which done is true.
func until(t *testing.T, of *tasks.Tasks, changed <-chan struct{}, id string, done func(*mcp.Task) bool) {
	t.Helper()
	for {
		got, err := of.Task(t.Context(), ann, id)
		check(t, err)
		if done(got) {
			return
		}
		<-changed
	}
}

func isAsking(t *mcp.Task) bool { return len(t.Requests) > 0 }

// TestReplicas: two servers share a store. Another one than the one that runs a task cancels it,
// answers it and hears of its changes.
func TestReplicas(t *testing.T) {
	database := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))
	t.Run("cancel", func(t *testing.T) {
		began, ended := make(chan struct{}, 1), make(chan error, 1)
		all := newReplicas(t, database, "cancel", func(ctx context.Context, r call.Request) call.Result {
			began <- struct{}{}
			result := untilCancelled(ctx, r)
			ended <- context.Cause(ctx)
			return result
		}, untilCancelled, untilCancelled)
		task := start(t, all[0])
		<-began
		third := changes(t, all[2], task.ID)
		check(t, all[1].CancelTask(t.Context(), ann, task.ID))
		if err := <-ended; !errors.Is(err, tasks.ErrCancelled) {
			t.Errorf("the leg ended with %v", err)
		}
		<-third
		for i, one := range all {
			if got, err := one.Task(t.Context(), ann, task.ID); err != nil || !got.Cancelled {
				t.Errorf("replica %d: %+v, %v", i, got, err)
			}
		}
		if err := all[1].CancelTask(t.Context(), caller("bob"), task.ID); err == nil || err.Code != call.ToolNotFound {
			t.Errorf("another principal: %v", err)
		}
	})
	t.Run("answer", func(t *testing.T) {
		elsewhere := make(chan string, 1)
		all := newReplicas(t, database, "answer", once("a"), func(ctx context.Context, leg call.Request) call.Result {
			elsewhere <- string(leg.Resume.Responses["a"])
			return once("a")(ctx, leg)
		})
		task := start(t, all[0])
		first, second := changes(t, all[0], task.ID), changes(t, all[1], task.ID)
		until(t, all[0], first, task.ID, isAsking)
		until(t, all[1], second, task.ID, isAsking)
		check(t, all[1].UpdateTask(t.Context(), ann, task.ID, answers{"a": named("A")}))
		if got := <-elsewhere; got != string(named("A")) {
			t.Errorf("the leg got the answer %s", got)
		}
		until(t, all[0], first, task.ID, isOver)
	})
	t.Run("close", func(t *testing.T) {
		all := newReplicas(t, database, "close", untilCancelled, untilCancelled)
		task := start(t, all[0])
		second := changes(t, all[1], task.ID)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		check(t, all[0].Close(ctx))
		until(t, all[1], second, task.ID, isOver)
		leave := all[0].FollowTask(t.Context(), ann, task.ID)
		leave()
		leave()
	})
	// The database restarts while a task runs, and a client subscribes while it is away.
	t.Run("restart", func(t *testing.T) {
		began, ended := make(chan struct{}, 1), make(chan error, 1)
		all := newReplicas(t, database, "restart", func(ctx context.Context, r call.Request) call.Result {
			began <- struct{}{}
			result := untilCancelled(ctx, r)
			ended <- context.Cause(ctx)
			return result
		}, untilCancelled, untilCancelled)
		task := start(t, all[0])
		<-began
		check(t, database.Stop())
		third := changes(t, all[2], task.ID)
		check(t, database.Restart())
		check(t, all[1].CancelTask(t.Context(), ann, task.ID))
		if err := <-ended; !errors.Is(err, tasks.ErrCancelled) {
			t.Errorf("the leg ended with %v", err)
		}
		<-third
		until(t, all[2], third, task.ID, isOver)
	})
}
