package pipeline

import (
	"context"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/state"
)

// Rehearse runs one leg of a call for a test block, on a catalog that need not serve.
// Mocks answer its host calls, and states keeps it between its legs; no hook hears of
// it, no limit counts it, and the log does not tell of it.
func (p *Pipeline) Rehearse(ctx context.Context, on *catalog.Catalog, req call.Request, mocks *host.Mocks, states *state.Lazy) call.Result {
	x := p.begin(on, req)
	x.mocks, x.states = mocks, states
	result, err := x.attempt(ctx)
	if err != nil {
		return call.Result{Err: err}
	}
	return result
}
