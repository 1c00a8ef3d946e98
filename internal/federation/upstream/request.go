package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
)

// The methods of requests to servers and from servers.
const (
	MethodTool     = "tools/call"
	MethodRead     = "resources/read"
	MethodPrompt   = "prompts/get"
	MethodComplete = "completion/complete"

	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
	methodPing   = "ping"

	// methodCancelled is the notification that cancels a request.
	methodCancelled = "notifications/cancelled"
	// methodUpdated is the notification that a resource has changed.
	methodUpdated = "notifications/resources/updated"
)

type Request struct {
	// Method is one of the Method constants.
	Method string
	// Name is the server's name of the tool or prompt, or the URI of the resource. A completion
	// has none.
	Name string
	// Arguments are a JSON object: the arguments, or the params of a completion.
	Arguments json.RawMessage
	// ClientCapabilities are the capabilities that the server may use, in MCP form, or nil.
	// Servers of revisions before 2026-07-28 receive the capabilities of the [Target] once
	// instead.
	ClientCapabilities json.RawMessage
	// DebugLogs requests debug logs, too.
	DebugLogs bool
	// Responses and State continue a call after input requests of a server of revision
	// 2026-07-28: the responses by request key, and the state of the server.
	Responses map[string]json.RawMessage
	State     string
	// AcceptsListing reports whether the call may be made, given the latest listing on the
	// connection. Nil accepts all.
	AcceptsListing func(*Listing) bool
}

// Listener receives the notifications of a call until it ends. Its methods must not block.
type Listener interface {
	// Progress reports progress; total is nil if it is not known.
	Progress(done float64, total *float64, message string)
	// Log reports a log record. level is the server's level. fields are JSON of any kind, nil
	// if there is a message.
	Log(level, message string, fields json.RawMessage)
}

// Reply is the next update of a call. Exactly one of Result, Error and InputRequests is set.
type Reply struct {
	// Result is the result of the method, as the server has sent it.
	Result json.RawMessage
	// Error is the protocol error of the server.
	Error *call.RPCError
	// InputRequests are the server's requests for input, in order.
	InputRequests []call.AskRequest
	// Suspended means that the call itself continues after [Call.Respond]. Otherwise the
	// responses and State go to the server in a new [Request].
	Suspended bool
	State     string
}

// InputResponse is the response to an input request: the Result in MCP form, or the Refusal
// with the reason.
type InputResponse struct {
	Result  json.RawMessage
	Refusal string
}

// Start starts a call. It runs until it ends or until [Call.Cancel] is called. It keeps the
// values of ctx but not its cancellation.
func (c *Conn) Start(ctx context.Context, r Request, l Listener) *Call {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	rc := newCall(c.lastToken.Add(1), r, l, cancel)
	ctx = context.WithValue(ctx, callKey{}, rc)
	rc.readsAtStart = c.filter.breaker.reads.Load()
	if err := c.filter.open(rc); err != nil {
		cancel(err)
		rc.end(err)
		return rc
	}
	go func() {
		defer c.filter.running.Done()
		defer cancel(nil)
		if r.DebugLogs {
			defer c.enableDebugLogs(ctx)()
		}
		err := c.send(ctx, rc, r)
		c.filter.close(rc)
		if errors.Is(err, mcp.ErrConnectionClosed) { // the library may keep it open while a listen request is
			c.filter.fail(connectionLost(err))
		}
		cause := context.Cause(ctx)
		if failure := rc.requestErr.Load(); err != nil && cause != nil {
			err = cause
		} else if err != nil && failure != nil {
			err = failure.error
		}
		c.filter.recordOutcome(rc, cause, err)
		rc.end(err)
	}()
	return rc
}

func (c *Conn) send(ctx context.Context, rc *Call, r Request) error {
	meta, responses := c.meta(ctx, rc, r), inputResponses(r.Responses)
	var err error
	switch r.Method {
	case MethodTool:
		_, err = c.session.CallTool(ctx, &mcp.CallToolParams{Meta: meta, Name: r.Name, Arguments: r.Arguments, InputResponses: responses, RequestState: r.State})
	case MethodRead:
		_, err = c.session.ReadResource(ctx, &mcp.ReadResourceParams{Meta: meta, URI: r.Name, InputResponses: responses, RequestState: r.State})
	case MethodPrompt:
		var arguments map[string]string
		if len(r.Arguments) > 0 {
			if err := json.Unmarshal(r.Arguments, &arguments); err != nil {
				return errors.New("the arguments of a prompt must be strings")
			}
		}
		_, err = c.session.GetPrompt(ctx, &mcp.GetPromptParams{Meta: meta, Name: r.Name, Arguments: arguments, InputResponses: responses, RequestState: r.State})
	case MethodComplete:
		params := &mcp.CompleteParams{}
		if err := json.Unmarshal(r.Arguments, params); err != nil {
			return fmt.Errorf("decode completion params: %w", err)
		}
		params.Meta = meta
		_, err = c.session.Complete(ctx, params)
	default:
		err = c.requestPage(ctx, meta, r)
	}
	return err
}

func (c *Conn) meta(ctx context.Context, rc *Call, r Request) mcp.Meta {
	meta := mcp.Meta{tokenKey: json.RawMessage(rc.token)}
	if c.options.Traceparent != nil {
		if parent := c.options.Traceparent(ctx); parent != "" {
			meta[traceParentKey] = parent
		}
	}
	if c.Modern() {
		meta[mcp.MetaKeyClientCapabilities] = json.RawMessage("{}")
		if r.ClientCapabilities != nil {
			meta[mcp.MetaKeyClientCapabilities] = r.ClientCapabilities
		}
		if r.Method == MethodTool || r.Method == MethodRead || r.Method == MethodPrompt {
			meta[logLevelKey] = logLevel(r.DebugLogs)
		}
	}
	return meta
}

// traceParentKey is the member of _meta with the span of a request (2026-07-28 basic/index,
// OpenTelemetry trace context). Earlier revisions leave names without a prefix free.
const traceParentKey = "traceparent"

// inputResponses converts responses for a server without sessions, by request key.
func inputResponses(texts map[string]json.RawMessage) mcp.InputResponseMap {
	if texts == nil {
		return nil
	}
	all := make(mcp.InputResponseMap, len(texts))
	for key, text := range texts {
		all[key] = &rawResponse{text: text}
	}
	return all
}

// rawResponse is the client's response as raw JSON.
type rawResponse struct {
	mcp.ElicitResult // makes the type a result and a response of the client library
	text             json.RawMessage
}

func (r *rawResponse) MarshalJSON() ([]byte, error) { return r.text, nil }
