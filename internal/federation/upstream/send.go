package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Begin makes a call. It goes on until it ends or [Call.Cancel] is called, whatever
// becomes of ctx, of which it has the values.
func (l *Link) Begin(ctx context.Context, r Request, heard Listener) *Call {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c := newCall(l.calls.Add(1), r, heard, cancel)
	ctx = context.WithValue(ctx, callKey{}, c)
	c.began = l.wire.health.heard.Load()
	if err := l.wire.open(c); err != nil {
		cancel(err)
		c.end(err)
		return c
	}
	go func() {
		defer l.wire.running.Done()
		defer cancel(nil)
		if r.Debug {
			defer l.hearDebug(ctx)()
		}
		err := l.send(ctx, c, r)
		l.wire.close(c)
		cause := context.Cause(ctx)
		if met := c.trouble.Load(); err != nil && cause != nil {
			err = cause
		} else if err != nil && met != nil {
			err = met.error
		}
		l.wire.judge(c, cause, err)
		c.end(err)
	}()
	return c
}

// send sends a request and waits for its response, which the wire takes.
func (l *Link) send(ctx context.Context, c *Call, r Request) error {
	meta, responses := l.meta(ctx, c, r), answers(r.Responses)
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
		err = l.page(ctx, meta, r)
	}
	return err
}

// meta returns the _meta of a request.
func (l *Link) meta(ctx context.Context, c *Call, r Request) mcp.Meta {
	meta := mcp.Meta{tokenKey: json.RawMessage(c.token)}
	l.trace(ctx, meta)
	if l.Modern() {
		meta[mcp.MetaKeyClientCapabilities] = json.RawMessage("{}")
		if r.Can != nil {
			meta[mcp.MetaKeyClientCapabilities] = r.Can
		}
		if r.Method == MethodTool || r.Method == MethodRead || r.Method == MethodPrompt {
			meta[logLevelKey] = leastLevel(r.Debug)
		}
	}
	return meta
}

// traceParentKey is the member of _meta that names the span which a request is a part of
// (2026-07-28 basic/index, OpenTelemetry trace context). Names without a prefix are free
// before.
const traceParentKey = "traceparent"

// trace has a request carry the trace of its context on.
func (l *Link) trace(ctx context.Context, meta mcp.Meta) {
	if l.options.Propagate == nil {
		return
	}
	if parent := l.options.Propagate(ctx); parent != "" {
		meta[traceParentKey] = parent
	}
}

// answers are those to the questions of a server without sessions, by its keys.
func answers(texts map[string]json.RawMessage) mcp.InputResponseMap {
	if texts == nil {
		return nil
	}
	all := make(mcp.InputResponseMap, len(texts))
	for key, text := range texts {
		all[key] = &response{text: text}
	}
	return all
}

// response is what a client answers to a question of the server, in its own words.
type response struct {
	mcp.ElicitResult // has the type be a result, and a response, of the client library
	text             json.RawMessage
}

// MarshalJSON returns the answer as it came.
func (r *response) MarshalJSON() ([]byte, error) { return r.text, nil }
