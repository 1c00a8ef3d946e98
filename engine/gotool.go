package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/gofunc"
)

// ToolOptions describe a tool that is written in Go (RFC section 8).
type ToolOptions struct {
	// Name is 1 to 64 letters, digits, dots, dashes and underscores.
	Name, Title, Description string
	// Timeout bounds the running time; 0 means one second.
	Timeout time.Duration
	// NotIdempotent says that calling twice is not like calling once.
	NotIdempotent bool
	// ReadOnly, Destructive and OpenWorld are MCP's annotations; nil says nothing.
	ReadOnly, Destructive, OpenWorld *bool
	// Labels are for policies.
	Labels map[string]string
}

// AddTool registers a tool that run calls: agent is who the caller claims to be, and
// [CallerFromContext] returns who was proved to call. If run ignores ctx past its timeout, it
// is left behind, not stopped: the caller gets TIMEOUT while run goes on.
//
// Its schemas are made from In, which must be a
// struct, and Out, as encoding/json sees them; the jsonschema struct tag
// describes a field. A tool of the same name, in Go or in a file, is an error.
// Tools may be added while the server runs; while the files have mistakes, the
// tool is served from the next good load on. One that no policy in the files covers is
// such a mistake in production mode: [Server.Status] tells of it, and nothing is loaded until
// there is one.
func AddTool[In, Out any](s *Server, o ToolOptions, run func(ctx context.Context, agent identity.Agent, in In) (Out, error)) error {
	item, err := newGoTool(o, run, &s.watchdog)
	if err != nil {
		return fmt.Errorf("add tool %q: %w", o.Name, err)
	}
	if err := s.register(item); err != nil {
		return fmt.Errorf("add tool %q: %w", o.Name, err)
	}
	return nil
}

// register adds a tool and, when the server already serves, publishes it.
func (s *Server) register(item *catalog.Item) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if slices.ContainsFunc(s.registered, func(i *catalog.Item) bool { return i.Name == item.Name }) {
		return fmt.Errorf("a tool of this name is already registered")
	}
	snap := s.current.Load()
	if snap != nil {
		if e := snap.catalog.Entry(call.Tools, item.Name); e != nil {
			return fmt.Errorf("a tool of this name is defined at %s", e.Where)
		}
	}
	if front := s.options.Front; front != nil {
		if err := front.CheckTool(metadataOf(item)); err != nil {
			return err
		}
	}
	s.registered = append(slices.Clone(s.registered), item)
	if snap == nil {
		return nil
	}
	var problems diag.List
	if _, err := s.reload(context.Background(), Change{}); err != nil && !errors.As(err, &problems) {
		return err
	}
	return nil
}

func newGoTool[In, Out any](o ToolOptions, run func(ctx context.Context, agent identity.Agent, in In) (Out, error), w *gofunc.Watchdog) (*catalog.Item, error) {
	item := &catalog.Item{
		Name: o.Name, Title: o.Title, Timeout: o.Timeout, Idempotent: !o.NotIdempotent, Labels: maps.Clone(o.Labels),
		ReadOnly: copied(o.ReadOnly), Destructive: copied(o.Destructive), OpenWorld: copied(o.OpenWorld),
	}
	if o.Description != "" {
		item.Description = &o.Description
	}
	if err := gofunc.Complete(item, run, w); err != nil {
		return nil, err
	}
	return item, nil
}

// CallerFromContext returns who calls a tool that is written in Go, from the context that
// its function was given or one made of that: the principal, which authentication has
// proved, the agent, which is claimed, and where the request came in. It is a copy.
//
// A caller that nothing was proved about has the principal [identity.Anonymous], whose Kind
// is [identity.KindAnonymous]; so has the caller of any other context, for which ok is
// false. Compare Kind and Issuer beside ID: ids of different issuers may be the same.
func CallerFromContext(ctx context.Context) (caller identity.Caller, ok bool) {
	return gofunc.CallerFromContext(ctx)
}
