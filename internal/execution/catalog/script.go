package catalog

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// scriptHandler is a script in JavaScript or TypeScript, with its grants.
type scriptHandler struct {
	program *scripting.Program
	grants  *host.Grants
	ask     *grant.Ask
}

// Run runs the script. The agent and call objects are encoded only for scripts that use them.
func (h *scriptHandler) Run(ctx context.Context, i Invocation) (scripting.Outcome, error) {
	call := scripting.Call{
		Program: h.program, Input: i.Input, Seed: scripting.NewSeed(), Start: i.StartTime, Journal: i.Journal, Agent: i.Agent,
		Limits: i.Bounds, Tree: i.CallTree, Depth: i.Depth, Owner: i.Owner,
	}
	if call.Agent == nil && h.program.Uses("agent") {
		call.Agent = i.AgentJSON()
	}
	i.Host.Deadline, _ = ctx.Deadline()
	if i.Depth > 0 && i.Host.Deadline.Before(i.Deadline) {
		i.Deadline = i.Host.Deadline // the deadline of the enclosing call
	}
	if h.program.Uses("call") {
		call.Info = i.json()
	}
	i.Host.Grant(h.grants)
	i.Host.InputPolicy.Grant, i.Host.Caller = h.ask, i.Caller
	if len(h.grants.ReadableSecrets) == 0 {
		return i.Executor.Run(ctx, call, &i.Host)
	}
	if err := i.Host.RestoreSecrets(ctx, i.Journal); err != nil {
		return scripting.Outcome{}, err
	}
	outcome, err := i.Executor.Run(ctx, call, &i.Host)
	if i.Journal != nil && err == nil {
		err = host.StripSecrets(i.Journal)
	}
	return outcome, err
}

// AgentJSON returns the JSON of `agent` for scripts.
func (i *Invocation) AgentJSON() []byte {
	// Plain data always encodes.
	agent, _ := json.Marshal(i.Caller.Agent)
	return agent
}

// json returns the JSON of `call` for scripts. It does not reveal the transport.
func (i *Invocation) json() []byte {
	info := append([]byte(`{"id":"`), i.RootID...)
	info = append(info, `","tool":`...)
	info = strconv.AppendQuote(info, i.Host.Name)
	info = append(info, `,"via":"`...)
	info = append(info, i.Via...)
	info = append(info, `","deadline":`...)
	info = strconv.AppendInt(info, i.Deadline.UnixMilli(), 10)
	info = append(info, `,"depth":`...)
	info = strconv.AppendInt(info, int64(i.Depth), 10)
	if i.Depth > 0 {
		info = append(info, `,"parent":`...)
		info = strconv.AppendQuote(info, i.Parent)
	}
	return append(info, '}')
}
