package catalog

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"

	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/scripting"
)

// script is a body in JavaScript or TypeScript.
type script struct {
	program *scripting.Program
	grants  map[string]grant.HTTP
}

// Run runs the body once. Agent and call are encoded only for bodies that look
// at them.
func (b *script) Run(ctx context.Context, i Invocation) (scripting.Outcome, error) {
	call := scripting.Call{
		Program: b.program, Input: i.Input, Seed: rand.Uint64(), Start: i.Began, Journal: scripting.NewJournal(),
	}
	if b.program.Uses("agent") {
		agent, err := json.Marshal(i.Caller.Agent)
		if err != nil {
			return scripting.Outcome{}, err
		}
		call.Agent = agent
	}
	if b.program.Uses("call") {
		call.Info = i.json(ctx)
	}
	i.Host.HTTP = b.grants
	return i.Executor.Run(ctx, call, &i.Host)
}

// json is `call` as scripts see it: nothing in it tells the transport.
func (i *Invocation) json(ctx context.Context) []byte {
	info := append([]byte(`{"id":"`), i.Host.ID...)
	info = append(info, `","tool":`...)
	info = strconv.AppendQuote(info, i.Host.Name)
	info = append(info, `,"via":"`...)
	info = append(info, i.Via...)
	info = append(info, `","deadline":`...)
	deadline, _ := ctx.Deadline()
	info = strconv.AppendInt(info, deadline.UnixMilli(), 10)
	return append(info, '}')
}
