package mcp

import (
	"context"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// keyTasks names the extension.
const keyTasks = "io.modelcontextprotocol/tasks"

// mayUseTasks makes sure that the client has declared the extension.
func (c *request) mayUseTasks() *fault {
	if can := capabilitiesOf(c.meta.capabilities, newestModern); !can.Tasks {
		return lacking("the client has not declared the extension "+keyTasks, capabilitiesObject(call.Capabilities{Tasks: true}))
	}
	return nil
}

// taskOf returns who asks, and the task that is meant.
func (c *request) taskOf() (caller identity.Caller, id string, f *fault) {
	if f = c.mayUseTasks(); f != nil {
		return caller, "", f
	}
	id, ok := jsontext.Text(jsontext.Get(c.params, "taskId"))
	if !ok {
		return caller, "", invalidParams("params.taskId must be a string")
	}
	caller, err := c.caller()
	if err != nil {
		return caller, "", c.claimFault(caller, err)
	}
	return caller, id, nil
}

// taskFault maps an error of the backend (SEP-2663, Protocol Errors).
func taskFault(caller identity.Caller, e *call.Error) *fault {
	f := newFault(codeInternal, Served, e.Message)
	if e.Code == call.ToolNotFound || e.Code == call.InvalidInput {
		f = invalidParams(e.Message)
	}
	return f.with(errorData(caller, e))
}

func getTask(ctx context.Context, c *request) (*result, *fault) {
	caller, id, f := c.taskOf()
	if f != nil {
		return nil, f
	}
	t, e := c.server.tasks.Task(ctx, caller, id)
	if e != nil {
		return nil, taskFault(caller, e)
	}
	return &result{members: t.appendTo(nil, c, caller, true)}, nil
}

func updateTask(ctx context.Context, c *request) (*result, *fault) {
	caller, id, f := c.taskOf()
	if f != nil {
		return nil, f
	}
	answers := jsontext.Get(c.params, "inputResponses")
	if answers == nil {
		return nil, invalidParams("params.inputResponses must be an object")
	}
	resume, f := c.resume(&itemParams{responses: answers})
	if f != nil {
		return nil, f
	}
	if e := c.server.tasks.UpdateTask(ctx, caller, id, resume.Responses); e != nil {
		return nil, taskFault(caller, e)
	}
	return &result{}, nil
}

func cancelTask(ctx context.Context, c *request) (*result, *fault) {
	caller, id, f := c.taskOf()
	if f != nil {
		return nil, f
	}
	if e := c.server.tasks.CancelTask(ctx, caller, id); e != nil {
		return nil, taskFault(caller, e)
	}
	return &result{}, nil
}

// becameTask is the result of a call that goes on as a task.
func (c *request) becameTask(r *call.Request, task *Task, revision string) (*result, *fault) {
	if !r.Can.Tasks {
		return c.failed(r, &call.Error{
			Code: call.ExecutionError, Message: "the call goes on as a task, which its client does not know",
			Required: capabilitiesObject(call.Capabilities{Tasks: true}),
		}, revision)
	}
	return &result{
		resultType: "task", members: task.appendTo(nil, c, r.Caller, false), revision: revision,
	}, nil
}
