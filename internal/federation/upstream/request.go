package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
)

// The methods of requests that go to servers, and of those that come from them.
const (
	MethodTool     = "tools/call"
	MethodRead     = "resources/read"
	MethodPrompt   = "prompts/get"
	MethodComplete = "completion/complete"

	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
	methodPing   = "ping"

	// methodCancelled is that of the notification by which one side wants no answer to its
	// request any more.
	methodCancelled = "notifications/cancelled"
	// methodUpdated is that of the notification that a resource has changed.
	methodUpdated = "notifications/resources/updated"
)

type Request struct {
	// Method is one of those above.
	Method string
	// Name is that of the tool or the prompt, or the URI of the resource, as the server
	// itself calls it. A completion has none.
	Name string
	// Arguments are a JSON object; of a completion its params.
	Arguments json.RawMessage
	// Can are the capabilities of the client that the server may ask, as MCP names them;
	// nil for none. A server of an earlier revision than 2026-07-28 is told those of the
	// [Place] once.
	ClientCapabilities json.RawMessage
	// Debug has the server asked for log records of the level debug, too.
	DebugLogs bool
	// Responses and State go on with a call that a server of that revision has not ended:
	// what its client answered, by the keys of the requests.
	Responses map[string]json.RawMessage
	State     string
	// Accepts reports whether the call may be made of a server that lists this, which is what
	// it said last on the connection that is called on. Nil accepts all.
	AcceptsListing func(*Listing) bool
}

// Listener hears what a server tells of a call before it ends. Its methods must not
// block.
type Listener interface {
	// Progress tells that done of total is done; total is nil when not known.
	Progress(done float64, total *float64, message string)
	// Log passes on a record: level is what the server calls it, and fields are JSON of any
	// kind, nil where there is a message.
	Log(level, message string, fields json.RawMessage)
}

// Reply is what comes next of a call: exactly one of Result, Fault and Asked is set.
type Reply struct {
	// Result is that of the method, as the server has sent it.
	Result json.RawMessage
	// Fault is an error of the protocol, in the words of the server.
	Error *call.RPCError
	// Asked are what the server wants to know before it goes on, in the order of asking.
	InputRequests []call.AskRequest
	// Waits says that the call itself goes on once they are answered by [Call.Answer].
	// Elsewhere State goes back to the server with the answers, in another [Request].
	Suspended bool
	State     string
}

// Answer is what a client answers: Result, as MCP has it for the method, or the
// reason why there is none.
type InputResponse struct {
	Result  json.RawMessage
	Refusal string
}

// Begin makes a call. It goes on until it ends or [Call.Cancel] is called, whatever
// becomes of ctx, of which it has the values.
func (l *Conn) Start(ctx context.Context, r Request, heard Listener) *Call {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c := newCall(l.lastToken.Add(1), r, heard, cancel)
	ctx = context.WithValue(ctx, callKey{}, c)
	c.readsAtStart = l.filter.breaker.reads.Load()
	if err := l.filter.open(c); err != nil {
		cancel(err)
		c.end(err)
		return c
	}
	go func() {
		defer l.filter.running.Done()
		defer cancel(nil)
		if r.DebugLogs {
			defer l.enableDebugLogs(ctx)()
		}
		err := l.send(ctx, c, r)
		l.filter.close(c)
		cause := context.Cause(ctx)
		if met := c.requestErr.Load(); err != nil && cause != nil {
			err = cause
		} else if err != nil && met != nil {
			err = met.error
		}
		l.filter.recordOutcome(c, cause, err)
		c.end(err)
	}()
	return c
}

func (l *Conn) send(ctx context.Context, c *Call, r Request) error {
	meta, responses := l.meta(ctx, c, r), inputResponses(r.Responses)
	var err error
	switch r.Method {
	case MethodTool:
		_, err = l.session.CallTool(ctx, &mcp.CallToolParams{Meta: meta, Name: r.Name, Arguments: r.Arguments, InputResponses: responses, RequestState: r.State})
	case MethodRead:
		_, err = l.session.ReadResource(ctx, &mcp.ReadResourceParams{Meta: meta, URI: r.Name, InputResponses: responses, RequestState: r.State})
	case MethodPrompt:
		var arguments map[string]string
		if len(r.Arguments) > 0 {
			if err := json.Unmarshal(r.Arguments, &arguments); err != nil {
				return errors.New("the arguments of a prompt are strings")
			}
		}
		_, err = l.session.GetPrompt(ctx, &mcp.GetPromptParams{Meta: meta, Name: r.Name, Arguments: arguments, InputResponses: responses, RequestState: r.State})
	case MethodComplete:
		params := &mcp.CompleteParams{}
		if err := json.Unmarshal(r.Arguments, params); err != nil {
			return fmt.Errorf("the params of a completion: %w", err)
		}
		params.Meta = meta
		_, err = l.session.Complete(ctx, params)
	default:
		err = l.requestPage(ctx, meta, r)
	}
	return err
}

func (l *Conn) meta(ctx context.Context, c *Call, r Request) mcp.Meta {
	meta := mcp.Meta{tokenKey: json.RawMessage(c.token)}
	if l.options.Traceparent != nil {
		if parent := l.options.Traceparent(ctx); parent != "" {
			meta[traceParentKey] = parent
		}
	}
	if l.Modern() {
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

// traceParentKey is the member of _meta that names the span which a request is a part of
// (2026-07-28 basic/index, OpenTelemetry trace context). Names without a prefix are free
// before.
const traceParentKey = "traceparent"

// answers are those to the questions of a server without sessions, by its keys.
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

// response is what a client answers to a question of the server, in its own words.
type rawResponse struct {
	mcp.ElicitResult // has the type be a result, and a response, of the client library
	text             json.RawMessage
}

func (r *rawResponse) MarshalJSON() ([]byte, error) { return r.text, nil }
