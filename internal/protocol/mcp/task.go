package mcp

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// TaskBackend is a [Backend] that may answer a tool call with a [Task]. With
// such a backend the server declares the extension
// io.modelcontextprotocol/tasks (SEP-2663).
//
// All methods access tasks of the caller alone. For an unknown task, or one of
// another caller, the error has the code [call.ToolNotFound].
type TaskBackend interface {
	Backend
	// Task returns the current state of a task.
	Task(ctx context.Context, c identity.Caller, id string) (*Task, *call.Error)
	// UpdateTask passes input responses to a task. It ignores responses to
	// requests that are unknown or already answered.
	UpdateTask(ctx context.Context, c identity.Caller, id string, responses map[string]json.RawMessage) *call.Error
	// CancelTask asks a task to end; it may have ended already.
	CancelTask(ctx context.Context, c identity.Caller, id string) *call.Error
	// WatchTasks calls fn with the id of each changed task, until stop is called.
	// fn must not block.
	WatchTasks(fn func(id string)) (stop func())
	// FollowTask makes the function passed to WatchTasks hear of changes of a task
	// by other servers, too, until leave is called. It may block until ctx ends.
	FollowTask(ctx context.Context, c identity.Caller, id string) (leave func())
}

// Task is the state of a call that continues while its client does not wait. It
// is working until it asks for input, is cancelled or has a response.
type Task struct {
	// ID cannot be guessed. Once a client has it, it may request the task.
	ID string
	// Message describes the state for people; it may be empty.
	Message          string
	Created, Updated time.Time
	// TTL is how long the task is stored after its creation; 0 means forever.
	TTL time.Duration
	// Poll is the suggested interval between polls; 0 means none.
	Poll time.Duration
	// Requests are the open input requests; a task never reuses a key.
	Requests []call.AskRequest
	// Cancelled is true if the task ended without a response.
	Cancelled bool
	// Response is the outcome of the call; nil until it ends.
	Response *call.Result
}

// status returns the task's status (SEP-2663, Task Status) and the members for
// it.
func (t *Task) status(req *request, caller identity.Caller) (status string, members []byte) {
	switch {
	case t.Response != nil:
		return t.outcome(req, caller)
	case t.Cancelled:
		return "cancelled", nil
	case len(t.Requests) > 0:
		return "input_required", appendRequests(nil, t.Requests)
	}
	return "working", nil
}

// outcome returns what the call would have returned: a result or an error.
func (t *Task) outcome(req *request, caller identity.Caller) (status string, members []byte) {
	r := &call.Request{Kind: call.Tools, Caller: caller}
	var encoded *result
	if t.Response.Err == nil {
		encoded = req.succeeded(r, t.Response)
	} else {
		var f *fault
		if encoded, f = req.failure(r, t.Response.Err, t.Response.Revision); f != nil {
			return "failed", appendValue(nil, "error", appendError(nil, &f.RPCError))
		}
	}
	b := append(append(appendMember(nil, "result"), '{'), encoded.members...)
	if len(encoded.meta) > 0 {
		b = append(append(append(appendMember(b, "_meta"), '{'), encoded.meta...), '}')
	}
	return "completed", append(b, '}')
}

// appendTo appends the members of the task object; detailed adds the members
// for its status.
func (t *Task) appendTo(dst []byte, req *request, caller identity.Caller, detailed bool) []byte {
	status, members := t.status(req, caller)
	dst = appendText(appendText(dst, "taskId", t.ID), "status", status)
	dst = appendOptional(dst, "statusMessage", t.Message)
	dst = appendText(dst, "createdAt", t.Created.UTC().Format(time.RFC3339Nano))
	dst = appendText(dst, "lastUpdatedAt", t.Updated.UTC().Format(time.RFC3339Nano))
	dst = appendMember(dst, "ttlMs")
	if t.TTL > 0 {
		dst = strconv.AppendInt(dst, t.TTL.Milliseconds(), 10)
	} else {
		dst = append(dst, "null"...)
	}
	if t.Poll > 0 {
		dst = strconv.AppendInt(appendMember(dst, "pollIntervalMs"), t.Poll.Milliseconds(), 10)
	}
	if detailed && len(members) > 0 {
		dst = append(append(dst, ','), members...)
	}
	return dst
}

// keyTasks is the name of the extension.
const keyTasks = "io.modelcontextprotocol/tasks"

// mayUseTasks rejects a client that has not declared the extension.
func (req *request) mayUseTasks() *fault {
	if can := capabilitiesOf(req.meta.capabilities, newestModern); !can.Tasks {
		return missingCapability("the client has not declared the extension "+keyTasks, capabilitiesObject(call.Capabilities{Tasks: true}))
	}
	return nil
}

// taskParams returns the caller and the task id of a request.
func (req *request) taskParams() (caller identity.Caller, id string, f *fault) {
	if f = req.mayUseTasks(); f != nil {
		return caller, "", f
	}
	id, ok := jsontext.Text(jsontext.Get(req.params, "taskId"))
	if !ok {
		return caller, "", invalidParams("params.taskId must be a string")
	}
	caller, err := req.caller()
	if err != nil {
		return caller, "", req.claimFault(caller, err)
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

func getTask(ctx context.Context, req *request) (*result, *fault) {
	caller, id, f := req.taskParams()
	if f != nil {
		return nil, f
	}
	t, e := req.server.tasks.Task(ctx, caller, id)
	if e != nil {
		return nil, taskFault(caller, e)
	}
	return &result{members: t.appendTo(nil, req, caller, true)}, nil
}

func updateTask(ctx context.Context, req *request) (*result, *fault) {
	caller, id, f := req.taskParams()
	if f != nil {
		return nil, f
	}
	responses := jsontext.Get(req.params, "inputResponses")
	if responses == nil {
		return nil, invalidParams("params.inputResponses must be an object")
	}
	resume, f := req.resume(&itemParams{responses: responses})
	if f != nil {
		return nil, f
	}
	if e := req.server.tasks.UpdateTask(ctx, caller, id, resume.Responses); e != nil {
		return nil, taskFault(caller, e)
	}
	return &result{}, nil
}

func cancelTask(ctx context.Context, req *request) (*result, *fault) {
	caller, id, f := req.taskParams()
	if f != nil {
		return nil, f
	}
	if e := req.server.tasks.CancelTask(ctx, caller, id); e != nil {
		return nil, taskFault(caller, e)
	}
	return &result{}, nil
}

func (req *request) taskResult(r *call.Request, task *Task, revision string) (*result, *fault) {
	if !r.Can.Tasks {
		return req.failed(r, &call.Error{
			Code: call.ExecutionError, Message: "the call continues as a task, and its client does not support tasks",
			Required: capabilitiesObject(call.Capabilities{Tasks: true}),
		}, revision)
	}
	return &result{
		resultType: "task", members: task.appendTo(nil, req, r.Caller, false), revision: revision,
	}, nil
}
