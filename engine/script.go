package engine

import (
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/scripting"
)

// script is a body in JavaScript or TypeScript.
type script struct {
	program *scripting.Program
	grants  map[string]grant.HTTP
}

// run runs the body for one call. Agent and call are encoded only for bodies
// that look at them.
func (b *script) run(ctx context.Context, x *execution) (scripting.Outcome, error) {
	call := scripting.Call{
		Program: b.program, Input: x.input, Seed: rand.Uint64(), Start: x.began, Journal: scripting.NewJournal(),
	}
	if b.program.Uses("agent") {
		call.Agent = encode(x.req.Caller.Agent)
	}
	if b.program.Uses("call") {
		call.Info = x.infoJSON(ctx)
	}
	return x.server.options.Executor.Run(ctx, call, &host.Call{
		Brokers: x.server.brokers, HTTP: b.grants, SecretKeys: x.snap.secretKeys, What: "tool", Name: x.req.Tool, ID: x.id,
		Emit: x.req.Emit, Hide: &x.hide, Mocks: x.mocks,
	})
}

// infoJSON is `call` as scripts see it: nothing in it tells the transport.
func (x *execution) infoJSON(ctx context.Context) []byte {
	info := []byte(`{"id":"`)
	info = append(info, x.id...)
	info = append(info, `","tool":`...)
	info = append(info, encode(x.req.Tool)...)
	info = append(info, `,"via":"`...)
	info = append(info, x.req.Via...)
	info = append(info, `","deadline":`...)
	deadline, _ := ctx.Deadline()
	info = strconv.AppendInt(info, deadline.UnixMilli(), 10)
	return append(info, '}')
}
