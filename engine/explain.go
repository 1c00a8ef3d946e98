package engine

import (
	"context"

	"github.com/mcpd/mcpd/internal/execution/pipeline"
)

// How a call is judged. What it is made of stands in the pipeline. These are its names here.
type (
	// Case is a call that is judged and not made.
	Case = pipeline.Case
	// Explanation is how a call is judged.
	Explanation = pipeline.Explanation
	// Ruling is what one policy says of a call.
	Ruling = pipeline.Ruling
	// Verdict is what policies say of a call, all of them together.
	Verdict = pipeline.Verdict
)

// The verdicts.
const (
	Allowed       = pipeline.Allowed
	Denied        = pipeline.Denied
	NeedsApproval = pipeline.NeedsApproval
	Refused       = pipeline.Refused
	Undecided     = pipeline.Undecided
)

// Explain judges a call as [Server.Execute] does, and runs no body. Policies in Go are
// asked. No hook hears of it, no limit counts it, and nothing is written down of it. The
// error is that of a server that serves nothing.
func (s *Server) Explain(ctx context.Context, of Case) (Explanation, error) {
	snap, err := s.loaded(ctx)
	if err != nil {
		return Explanation{}, err
	}
	return s.pipeline.Explain(ctx, snap.catalog, of), nil
}
