package serve

import (
	"context"
	"encoding/json"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// keyTasks names MCP's extension for tasks, as what a client lacks.
const keyTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// asTask starts the call of a tool as a task if the tool and the client take tasks. It
// returns the task, or else why the call is declined; both are nil for a call that runs
// without a task.
func (b *backend) asTask(ctx context.Context, r call.Request) (*mcp.Task, *call.Error) {
	if r.Kind != call.Tools {
		return nil, nil
	}
	mode := b.taskMode(ctx, r)
	if mode.TTL == 0 || !r.Can.Tasks && !mode.Required {
		return nil, nil
	}
	if !r.Can.Tasks {
		return nil, &call.Error{
			Code: call.ExecutionError, Required: json.RawMessage(keyTasks),
			Message: "the tool runs as a task only, and its client does not support tasks",
		}
	}
	if mode.AskFirst && (r.Resume == nil || r.Resume.State == "") {
		return nil, nil
	}
	return b.Tasks.Start(ctx, r, mode.TTL)
}

// taskMode returns whether a tool that the caller may see runs as a task.
func (b *backend) taskMode(ctx context.Context, r call.Request) engine.Task {
	if snap := b.engine.Snapshot(); snap != nil {
		if tool := snap.Tool(r.Name); tool == nil || tool.Task().TTL == 0 {
			return engine.Task{}
		}
	}
	if tool := b.engine.Find(ctx, r.Caller, r.Name); tool != nil {
		return tool.Task()
	}
	return engine.Task{}
}
