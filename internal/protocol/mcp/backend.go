package mcp

import (
	"context"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
)

// Backend is what answers behind the protocol. All methods are called from
// many goroutines at once; each reads one consistent state.
type Backend interface {
	// Info returns what the server says of itself. It may change at a reload.
	Info() Info
	// List returns what the caller may see of a kind, in the order to show it.
	List(ctx context.Context, k call.Kind, c identity.Caller) List
	// Call carries out a request to its end. When ctx ends, the call ends soon after. If the
	// call continues as a task, task is that task, and the result has only a revision. A
	// request of kind Templates is a completion; the result of a completion has at most 100
	// values.
	Call(ctx context.Context, r call.Request) (result call.Result, task *Task)
	// Serves reports whether the URI names a resource that the caller may
	// read, listed or not: only of such ones is a client told that they change.
	// It is false of a URI that is too long to be kept for every client.
	Serves(ctx context.Context, c identity.Caller, uri string) bool
	// Watch calls fn after each published state, until stop is called, with
	// the URIs of resources whose contents are others than before. fn must not
	// block.
	Watch(fn func(changed []string)) (stop func())
}

// Follower is a [Backend] that learns of resources which others keep.
type Follower interface {
	// Follow has fn of [Backend.Watch] be called when what the URI names has changed, as far
	// as that can be known, until leave is called. Neither blocks.
	Follow(uri string) (leave func())
}

// Info is what a server says of itself.
type Info struct {
	Name, Title, Version, Description string
	Icons                             []Icon
	// Instructions tell a model how to use the server; they may be empty.
	Instructions string
	// LenientLifecycle says that requests are served before the client has sent
	// notifications/initialized.
	LenientLifecycle bool
	// Revision is the content hash of the published state.
	Revision string
}
