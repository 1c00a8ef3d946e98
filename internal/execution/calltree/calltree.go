// Package calltree limits nested calls. The calls that originate from one client call form a tree.
// Its depth, its total number of calls and its parallel calls are limited, so that a tool cannot
// turn one call into a flood.
package calltree

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mcpd/mcpd/scripting"
)

const (
	// MaxDepth is the maximum depth of a nested call.
	MaxDepth = 8
	// MaxCalls is the maximum number of calls nested in one client call, at any depth.
	MaxCalls = 256
	// MaxParallel is the maximum number of parallel calls of a tree per depth; others wait. A call
	// waits only for calls of its own depth, and these only for deeper ones, so there is no
	// deadlock.
	MaxParallel = 8
)

// ErrTooManyCalls is the cancellation cause of a tree with too many calls.
var ErrTooManyCalls = fmt.Errorf("one call makes at most %d tool calls, including nested calls", MaxCalls)

// Position is the position of a call in its call tree. The zero Position is a client call. It must
// not be copied after a call is nested in it.
type Position struct {
	depth                int
	parentName, parentID string
	cancel               func(error)
	// tree is created at the root, for the first nested call.
	treeOnce sync.Once
	tree     *tree
}

// tree is the state that the calls of a tree share.
type tree struct {
	root      *Position // the client call
	count     atomic.Int64
	exhausted atomic.Bool
	callTree  *scripting.CallTree
	levels    [MaxDepth]chan struct{}
}

// SetCancel sets the function that cancels a client call with too many nested calls. It is called
// before each run of the handler, while no nested call is running.
func (p *Position) SetCancel(stop func(error)) { p.cancel = stop }

// Exhausted reports whether the tree has too many calls, which cancels the client call. No nested
// call may be running.
func (p *Position) Exhausted() bool { return p.tree != nil && p.tree.exhausted.Load() }

// Join makes p, which must be zero, the position of a call that is nested in outer. caller is the name
// of the calling item, and parent the id of its call. Join waits until the call may run; leave
// frees its slot. The error is the error of ctx, or a [*scripting.HostError] if a limit is reached.
// Even then the position is set and the call is counted.
func (p *Position) Join(ctx context.Context, outer *Position, caller, parent string) (leave func(), err error) {
	if outer.depth == 0 {
		outer.treeOnce.Do(func() { outer.tree = newTree(outer) })
	}
	t := outer.tree
	p.depth, p.tree, p.parentName, p.parentID = outer.depth+1, t, caller, parent
	if t.count.Add(1) > MaxCalls {
		t.exhausted.Store(true)
		if stop := t.root.cancel; stop != nil {
			stop(ErrTooManyCalls)
		}
		return nil, &scripting.HostError{Code: scripting.Denied, Message: ErrTooManyCalls.Error()}
	}
	if outer.depth == MaxDepth {
		return nil, &scripting.HostError{Code: scripting.Denied, Message: fmt.Sprintf("calls of tools nest at most %d deep", MaxDepth)}
	}
	level := t.levels[outer.depth]
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

// Depth returns the number of enclosing calls: 0 for a client call.
func (p *Position) Depth() int { return p.depth }

// ParentName returns the name of the calling item; empty for a client call.
func (p *Position) ParentName() string { return p.parentName }

// CallTree returns the calls that share workers with this one; nil for a client call.
func (p *Position) CallTree() *scripting.CallTree {
	if p.depth == 0 {
		return nil
	}
	return p.tree.callTree
}

// ParentID returns the id of the enclosing call; empty for a client call.
func (p *Position) ParentID() string { return p.parentID }
