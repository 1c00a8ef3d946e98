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
	MaxRunning = 8
)

// ErrSpent is why a tree that has grown too large is ended.
var ErrSpent = fmt.Errorf("one call makes at most %d calls of tools, those that these make counted too", MaxCalls)

// Place is where a call stands in its tree. The zero Place is that of a client's
// call. It must not be copied once a call is nested in it.
type Place struct {
	depth          int
	caller, parent string
	stop           func(error)
	// tree is made, in the place of a client's call, for the first that is nested.
	begun sync.Once
	tree  *tree
}

// tree is what the calls share that come of one.
type tree struct {
	root   *Place // that of the client's call
	made   atomic.Int64
	spent  atomic.Bool
	kin    *scripting.CallTree
	levels [MaxDepth]chan struct{}
}

// Ends says what ends the call, for one of a client that makes too many. It is
// said anew for each run of the body, while nothing that is nested in it runs.
func (p *Place) Ends(stop func(error)) { p.stop = stop }

// Spent reports whether the tree has grown too large, and the call has ended for
// that. It is asked once nothing that is nested in the call runs.
func (p *Place) Spent() bool { return p.tree != nil && p.tree.spent.Load() }

// Enter makes p, which is zero, the place of a call that a body makes at the place
// by: caller is the name of what the body is of, and parent the id of its call. It
// waits until the new call may run; leave says that it has ended. An error is that of ctx, or a
// [*scripting.HostError]: the tree may not grow there. The place then says where the call
// would have stood, and the tree counts it.
func (p *Place) Enter(ctx context.Context, by *Place, caller, parent string) (leave func(), err error) {
	if by.depth == 0 {
		by.begun.Do(func() { by.tree = newTree(by) })
	}
	t := by.tree
	p.depth, p.tree, p.caller, p.parent = by.depth+1, t, caller, parent
	if t.made.Add(1) > MaxCalls {
		t.spent.Store(true)
		if stop := t.root.stop; stop != nil {
			stop(ErrSpent)
		}
		return nil, &scripting.HostError{Code: scripting.Denied, Message: ErrSpent.Error()}
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

func newTree(root *Place) *tree {
	t := &tree{root: root, kin: scripting.NewCallTree()}
	for i := range t.levels {
		t.levels[i] = make(chan struct{}, MaxRunning)
	}
	return t
}

// Depth counts the calls that the call is nested in: 0 for a client's own.
func (p *Place) Depth() int { return p.depth }

// Caller is the name of what makes the call; empty for a client's own.
func (p *Place) Caller() string { return p.caller }

// Kin are the calls of the tree, the client's own left out, which has none.
func (p *Place) Kin() *scripting.CallTree {
	if p.depth == 0 {
		return nil
	}
	return p.tree.kin
}

// Parent is the id of the call that the call is nested in; empty for a client's own.
func (p *Place) Parent() string { return p.parent }
