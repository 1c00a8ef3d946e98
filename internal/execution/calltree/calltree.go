// Package calltree bounds the calls that bodies make of tools. The calls that come
// of one call by a client are a tree: it is bounded in its depth, in how many calls
// it has in all, and in how many of them run at once, so that no tool makes a flood
// of one call.
package calltree

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mcpd/mcpd/scripting"
)

const (
	// MaxDepth is how many calls a call may be nested in.
	MaxDepth = 8
	// MaxCalls is how many calls may be nested in the one of a client, at any depth.
	MaxCalls = 256
	// MaxRunning is how many calls of a tree run at once at each depth; others wait.
	// A call waits for those of its own depth alone, and these for deeper ones: so
	// that none waits for itself.
	MaxParallel = 8
)

// ErrSpent is why a tree that has grown too large is ended.
var ErrTooManyCalls = fmt.Errorf("one call makes at most %d calls of tools, those that these make counted too", MaxCalls)

// Place is where a call stands in its tree. The zero Place is that of a client's
// call. It must not be copied once a call is nested in it.
type Position struct {
	depth                int
	parentName, parentID string
	cancel               func(error)
	// tree is made, in the place of a client's call, for the first that is nested.
	treeOnce sync.Once
	tree     *tree
}

// tree is what the calls share that come of one.
type tree struct {
	root      *Position // that of the client's call
	count     atomic.Int64
	exhausted atomic.Bool
	callTree  *scripting.CallTree
	levels    [MaxDepth]chan struct{}
}

// Ends says what ends the call, for one of a client that makes too many. It is
// said anew for each run of the body, while nothing that is nested in it runs.
func (p *Position) SetCancel(stop func(error)) { p.cancel = stop }

// Spent reports whether the tree has grown too large, and the call has ended for
// that. It is asked once nothing that is nested in the call runs.
func (p *Position) Exhausted() bool { return p.tree != nil && p.tree.exhausted.Load() }

// Enter makes p, which is zero, the place of a call that a body makes at the place
// by: caller is the name of what the body is of, and parent the id of its call. It
// waits until the new call may run; leave says that it has ended. An error is that of ctx, or a
// [*scripting.HostError]: the tree may not grow there. The place then says where the call
// would have stood, and the tree counts it.
func (p *Position) Join(ctx context.Context, by *Position, caller, parent string) (leave func(), err error) {
	if by.depth == 0 {
		by.treeOnce.Do(func() { by.tree = newTree(by) })
	}
	t := by.tree
	p.depth, p.tree, p.parentName, p.parentID = by.depth+1, t, caller, parent
	if t.count.Add(1) > MaxCalls {
		t.exhausted.Store(true)
		if stop := t.root.cancel; stop != nil {
			stop(ErrTooManyCalls)
		}
		return nil, &scripting.HostError{Code: scripting.Denied, Message: ErrTooManyCalls.Error()}
	}
	if by.depth == MaxDepth {
		return nil, &scripting.HostError{Code: scripting.Denied, Message: fmt.Sprintf("calls of tools nest at most %d deep", MaxDepth)}
	}
	level := t.levels[by.depth]
	select {
	case level <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		<-level
		return nil, err
	}
	return func() { <-level }, nil
}

func newTree(root *Position) *tree {
	t := &tree{root: root, callTree: scripting.NewCallTree()}
	for i := range t.levels {
		t.levels[i] = make(chan struct{}, MaxParallel)
	}
	return t
}

// Depth counts the calls that the call is nested in: 0 for a client's own.
func (p *Position) Depth() int { return p.depth }

// Caller is the name of what makes the call; empty for a client's own.
func (p *Position) ParentName() string { return p.parentName }

// Kin are the calls of the tree, the client's own left out, which has none.
func (p *Position) CallTree() *scripting.CallTree {
	if p.depth == 0 {
		return nil
	}
	return p.tree.callTree
}

// Parent is the id of the call that the call is nested in; empty for a client's own.
func (p *Position) ParentID() string { return p.parentID }
