package tasks_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
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
		all = append(all, newReplica(t, database, schema, r, func(s tasks.Store) tasks.Store { return s }))
	}
	return all
}

func newReplica(t *testing.T, database *postgrestest.Server, schema string, r run, wrap func(tasks.Store) tasks.Store) *tasks.Tasks {
	t.Helper()
	store, err := postgres.Open(state.Database{URL: database.URL("postgres", "schema="+schema)}, state.Options{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, store.Close()) })
	made := tasks.New(tasks.Options{Store: func() (tasks.Store, error) { return wrap(store), nil }, Run: r})
	t.Cleanup(func() { check(t, made.Close(context.Background())) })
	return made
}

// gate delays all attempts to change a task after the first one.
type gate struct {
	failing
	tryAgain <-chan struct{}
}

func (g gate) UpdateTask(owner state.Owner, id string, change func(*state.Task) error) (state.Task, error) {
	if g.attempts.Load() > 0 {
		<-g.tryAgain
	}
	return g.failing.UpdateTask(owner, id, change)
}

// failing is a store whose attempts to change a task can fail after they were made: failed gets the number
// of each attempt that returned an error.
type failing struct {
	state.Shared
	attempts *atomic.Int32
	lose     func(attempt int32) bool
	failed   chan int32
}

func (f failing) UpdateTask(owner state.Owner, id string, change func(*state.Task) error) (state.Task, error) {
	n := f.attempts.Add(1)
	now, err := f.Shared.UpdateTask(owner, id, change)
	if err == nil && f.lose(n) {
		err = errors.New("the connection was lost during the commit")
	}
	if err != nil {
		select {
		case f.failed <- n:
		default:
		}
	}
	return now, err
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
	// The reply to the end of the first leg is lost, and another replica continues the task before the first one
	// tries again.
	t.Run("continued elsewhere", func(t *testing.T) {
		goOn := make(chan struct{})
		failed, tryAgain := make(chan int32, 1), make(chan struct{})
		var attempts atomic.Int32
		wrap := func(s tasks.Store) tasks.Store {
			return failing{s.(state.Shared), &attempts, func(n int32) bool { return n == 1 }, failed}
		}
		first := newReplica(t, database, "continued", once("a"), func(s tasks.Store) tasks.Store { return gate{wrap(s).(failing), tryAgain} })
		second := newReplica(t, database, "continued", func(ctx context.Context, leg call.Request) call.Result {
			<-goOn
			return once("a")(ctx, leg)
		}, func(s tasks.Store) tasks.Store { return s })
		task := start(t, first)
		<-failed
		check(t, second.UpdateTask(t.Context(), ann, task.ID, answers{"a": named("A")}))
		close(tryAgain)
		check(t, first.Drain(t.Context()))
		if got, err := second.Task(t.Context(), ann, task.ID); err != nil || isOver(got) || isAsking(got) {
			t.Errorf("after the first replica tried again: %+v, %v", got, err)
		}
		changed := changes(t, second, task.ID)
		close(goOn)
		until(t, second, changed, task.ID, isOver)
		if got, err := second.Task(t.Context(), ann, task.ID); err != nil || failureOf(got) != "" {
			t.Errorf("at the end: %+v, %v", got, err)
		}
	})
	// The database restarts when a task ends.
	t.Run("end during restart", func(t *testing.T) {
		goOn, failed := make(chan struct{}), make(chan int32, 1)
		var attempts atomic.Int32
		of := newReplica(t, database, "end", func(context.Context, call.Request) call.Result {
			<-goOn
			return result("kept")
		}, func(s tasks.Store) tasks.Store {
			return failing{s.(state.Shared), &attempts, func(int32) bool { return false }, failed}
		})
		other := newReplicas(t, database, "end", untilCancelled)[0]
		task := start(t, of)
		changed := changes(t, other, task.ID)
		check(t, database.Stop())
		close(goOn)
		<-failed
		check(t, database.Restart())
		until(t, other, changed, task.ID, isOver)
		if got, err := other.Task(t.Context(), ann, task.ID); err != nil || textOf(got) != "kept" {
			t.Errorf("the task ended with %+v, %v", got, err)
		}
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
