package gofunc

import (
	"context"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/scripting"
)

// Body is the body of a tool in Go.
type Body[In, Out any] struct {
	fn       Func[identity.Agent, In, Out]
	decoder  Decoder[In]
	watchdog *Watchdog
}

// NewBody returns a body that runs fn. The watchdog looks after it where it holds
// the goroutine of its call.
func NewBody[In, Out any](fn Func[identity.Agent, In, Out], w *Watchdog) Body[In, Out] {
	return Body[In, Out]{fn, NewDecoder[In](), w}
}

// Run runs the function.
func (b Body[In, Out]) Run(ctx context.Context, i catalog.Invocation) (scripting.Outcome, error) {
	in, err := b.decoder.Decode(i.Args, i.Input)
	if err != nil {
		return scripting.Outcome{}, err
	}
	ctx = &called{ctx, i.Caller}
	if i.Late == nil {
		return b.fn.RunApart(ctx, i.Caller.Agent.Clone(), in)
	}
	return b.fn.Run(ctx, b.watchdog, i.Late, i.Caller.Agent.Clone(), in)
}
