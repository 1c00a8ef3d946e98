// Package nesting bounds the calls that bodies make of tools. The calls that come
// of one call by a client are a tree: it is bounded in its depth, and in how many
// calls it has in all, so that no tool makes a flood of one call.
package nesting

import (
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
)

// Place is where a call stands in its tree. The zero Place is that of a client's
// call. It must not be copied once a call is nested in it.
type Place struct {
	depth        int
	name, parent string
	// root is nil in the root itself, which counts the calls of the tree.
	root *Place
	made atomic.Int64
	// kin are the calls of the tree; in the root they are there once there are any.
	begun sync.Once
	kin   *scripting.Kin
}

// Enter makes p, which is zero, the place of a call that is made by a body at the
// place by: that of the call parent, of what is named name. An error is a
// [*scripting.HostError]: the tree may not grow there.
func (p *Place) Enter(by *Place, name, parent string) error {
	if by.depth == MaxDepth {
		return &scripting.HostError{Code: scripting.Denied, Message: fmt.Sprintf("calls of tools nest at most %d deep", MaxDepth)}
	}
	root := by
	if by.root != nil {
		root = by.root
	}
	if root.made.Add(1) > MaxCalls {
		return &scripting.HostError{Code: scripting.Denied, Message: fmt.Sprintf("one call makes at most %d calls of tools, those that these make counted too", MaxCalls)}
	}
	root.begun.Do(func() { root.kin = scripting.NewKin() })
	p.depth, p.root, p.name, p.parent, p.kin = by.depth+1, root, name, parent, root.kin
	return nil
}

// Depth counts the calls that the call is nested in: 0 for a client's own.
func (p *Place) Depth() int { return p.depth }

// Caller is the name of what makes the call; empty for a client's own.
func (p *Place) Caller() string { return p.name }

// Kin are the calls of the tree, the client's own left out, which has none.
func (p *Place) Kin() *scripting.Kin {
	if p.root == nil {
		return nil
	}
	return p.kin
}

// Parent is the id of the call that the call is nested in; empty for a client's own.
func (p *Place) Parent() string { return p.parent }
