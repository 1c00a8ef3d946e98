package tasks

import (
	"context"
	"sync"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
)

// followers follow tasks in a store that other servers share, as they may change a task: one
// follower for the running leg of a task and for all its clients.
type followers struct {
	mu     sync.Mutex
	byTask map[string]*follower
	closed bool
	end    chan struct{} // closed by close
	all    sync.WaitGroup
}

// follower follows one task.
type follower struct {
	users int           // guarded by the mutex of followers
	ready chan struct{} // closed after the first attempt to watch the task
	end   chan struct{} // closed when no user is left
}

func newFollowers() *followers {
	return &followers{byTask: map[string]*follower{}, end: make(chan struct{})}
}

// has reports whether a task is followed: then its follower notifies of every change.
func (f *followers) has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byTask[id] != nil
}

// join adds a user to the follower of a task, and starts it with run if there is none. It returns
// nil after close.
func (f *followers) join(id string, run func(*follower)) (one *follower, leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, func() {}
	}
	one = f.byTask[id]
	if one == nil {
		one = &follower{ready: make(chan struct{}), end: make(chan struct{})}
		f.byTask[id] = one
		f.all.Go(func() { run(one) })
	}
	one.users++
	return one, sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(f.byTask, id)
			close(one.end)
		}
	})
}

// close ends all followers and waits for them.
func (f *followers) close() {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.end)
	}
	f.mu.Unlock()
	f.all.Wait()
}

// FollowTask makes changes of a caller's task by other servers known to the watchers (see
// [Tasks.WatchTasks]), until leave is called. Changes after its return are not missed. If the store
// has no other servers, it does nothing.
func (t *Tasks) FollowTask(ctx context.Context, caller identity.Caller, id string) (leave func()) {
	store, err := t.options.Store()
	if err != nil {
		return func() {} // the caller cannot read the task either
	}
	one, leave := t.follow(store, state.OwnerOf(caller.Principal), id)
	if one != nil {
		select {
		case <-one.ready:
		case <-ctx.Done():
		}
	}
	return leave
}

// follow follows a task until leave is called. It returns nil if there are no other servers.
func (t *Tasks) follow(store Store, owner state.Owner, id string) (one *follower, leave func()) {
	shared, ok := store.(state.Shared)
	if !ok {
		return nil, func() {}
	}
	return t.followers.join(id, func(one *follower) { t.runFollower(shared, owner, id, one) })
}

// runFollower watches a task, and tries again each second while the store fails.
func (t *Tasks) runFollower(store state.Shared, owner state.Owner, id string, one *follower) {
	changes, stop, err := store.WatchTask(owner, id)
	close(one.ready)
	changed := err != nil
	for err != nil {
		if isGone(err) || !t.pause(one) {
			return
		}
		changes, stop, err = store.WatchTask(owner, id)
	}
	defer stop()
	// The task may have ended before it was watched.
	for unread := t.endLeg(store, owner, id); ; unread = t.endLeg(store, owner, id) {
		if changed {
			t.callWatchers(id)
		}
		var again <-chan time.Time
		if unread {
			again = time.After(poll)
		}
		select {
		case <-one.end:
			return
		case <-t.followers.end:
			return
		case _, open := <-changes:
			if !open {
				return // the task has expired, or the store is closed
			}
			changed = true
		case <-again:
			changed = false
		}
	}
}

// pause waits for the next attempt. It returns false if the follower has ended.
func (t *Tasks) pause(one *follower) bool {
	select {
	case <-one.end:
		return false
	case <-t.followers.end:
		return false
	case <-time.After(poll):
		return true
	}
}

// endLeg cancels the leg that this server runs for a task, if another server has ended the task. It
// returns true if it could not read the task.
func (t *Tasks) endLeg(store Store, owner state.Owner, id string) (unread bool) {
	l := t.leg(id)
	if l == nil {
		return false
	}
	now, err := store.Task(owner, id)
	switch {
	case err != nil:
		return !isGone(err)
	case now.Status == state.Cancelled:
		l.end(ErrCancelled)
	case now.Status.Ended():
		l.end(ErrLost)
	}
	return false
}
