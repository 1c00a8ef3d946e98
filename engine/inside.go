package engine

import (
	"context"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/privdiff"
)

// Inside returns what the command mcpd and package serve need of a server and an embedding
// program does not: its methods have types of internal packages.
func (s *Server) Inside() inside { return inside{s} }

type inside struct{ server *Server }

// Explain judges a call as [Server.Execute] does, and runs no body. Policies in Go are
// asked. No hook fires, no limit counts it, and the audit log has no record of it. The
// error is that of a server that serves nothing.
func (i inside) Explain(ctx context.Context, of pipeline.Case) (pipeline.Explanation, error) {
	snap, err := i.server.loaded(ctx)
	if err != nil {
		return pipeline.Explanation{}, err
	}
	return i.server.pipeline.Explain(ctx, snap.catalog, of), nil
}

// State returns the store of what outlives calls, which is opened when it is first needed.
// [Server.Close] closes it.
func (i inside) State() (state.Store, error) { return i.server.states.Open() }

// Drifts returns how the tools of each pinned upstream differ from what was accepted of
// them, in the order of their blocks. The server is loaded.
func (i inside) Drifts() []federation.Drift {
	return i.server.upstreams.Drifts(i.server.current.Load().catalog)
}

// Inside returns what the command mcpd needs of a snapshot and an embedding program does not.
func (s *Snapshot) Inside() insideSnapshot { return insideSnapshot{s} }

type insideSnapshot struct{ snapshot *Snapshot }

// Said returns what the files say.
func (i insideSnapshot) Said() privdiff.Side { return i.snapshot.catalog.Said }

// Upstreams returns the upstream blocks with paths as the process opens them.
func (i insideSnapshot) Upstreams() []definition.Upstream { return i.snapshot.catalog.Upstreams }
