package pipeline

import (
	"context"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/host"
)

// Rehearse runs one leg of a call for a test block, on a catalog that need not serve.
// Mocks answer its host calls; no hook hears of it, no limit counts it, and the log
// does not tell of it.
func (p *Pipeline) Rehearse(ctx context.Context, on *catalog.Catalog, req call.Request, mocks *host.Mocks) call.Result {
	x := p.begin(on, req)
	x.mocks = mocks
	result, err := x.attempt(ctx)
	if err != nil {
		return call.Result{Err: err}
	}
	return result
}
