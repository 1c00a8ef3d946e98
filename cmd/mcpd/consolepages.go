package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/console"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/serve"
)

// consolePages are the pages of the console block. The pages of each caller send their requests to
// the server in this process, with the rights of the caller.
type consolePages struct{ server *runningServer }

// pagesBase is the path of the sign-in on the listener.
var pagesBase = strings.TrimSuffix(serve.ConsolePath, "/")

// Open implements [serve.Console].
func (p consolePages) Open(o serve.Operator) (serve.ConsolePages, error) {
	backend := pageBackend{p.server, o}
	return console.New(pageCalls{processBackend{backend.answer}, backend}, console.Options{Base: o.Base, SignOut: o.SignOut})
}

// SignIn implements [serve.Console].
func (consolePages) SignIn(w http.ResponseWriter, r *http.Request, status int, problem string) {
	console.SignIn(w, r, pagesBase, status, problem)
}

// pageBackend answers the requests of a caller of the listener.
type pageBackend struct {
	server   *runningServer
	operator serve.Operator
}

// readActions are the actions that need no right to operate.
var readActions = []control.Action{
	control.Status, control.Catalog, control.Item, control.Explain, control.Matrix, control.Calls, control.Audit, control.Pins, control.Keys, control.Tokens, control.Tasks, control.Limits,
}

// authorize returns a [console.ForbiddenError] unless the operator may send a request.
func (b pageBackend) authorize(ctx context.Context, r control.Request) error {
	if slices.Contains(readActions, r.Action) {
		return nil
	}
	if r.Action == control.Replay || r.Action == control.PolicyFiles { // an edit may read files and the environment
		return console.ForbiddenError("an edit is replayed only for the user of the server: use mcpd console, or mcpd policy replay")
	}
	if !b.operator.MayOperate(ctx) {
		return console.ForbiddenError("you may look, but not operate: see the console block in mcpd.hcl")
	}
	if r.Action != control.Try {
		return nil
	}
	var call control.TryCall
	if err := r.DecodeParams(&call); err != nil {
		return err
	}
	if call.Record { // its mocks have answers of hosts that the result may not show
		return console.ForbiddenError("calls are recorded only in the console of the user who runs the server: run mcpd console")
	}
	if call.Principal != nil && !b.operator.MayActAs(ctx, *call.Principal) {
		return console.ForbiddenError("you may not act as this principal: see the console block in mcpd.hcl")
	}
	return nil
}

// pageCalls is the backend of a caller. An answer to a question of a call, such as an approval, needs
// the rights that the call needed, as they are now.
type pageCalls struct {
	processBackend
	caller pageBackend
}

// Open implements [console.Backend].
func (c pageCalls) Open(ctx context.Context, r control.Request) (console.Stream, error) {
	stream, err := c.processBackend.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	return authorizedStream{stream, func() error { return c.caller.authorize(ctx, r) }}, nil
}

// authorizedStream is a stream that sends only what authorize permits.
type authorizedStream struct {
	console.Stream
	authorize func() error
}

// Send implements [console.Stream].
func (s authorizedStream) Send(value any) error {
	if err := s.authorize(); err != nil {
		return err
	}
	return s.Stream.Send(value)
}

// operatorKey is the key of the operator in the context of a request from the listener.
type operatorKey struct{}

// operatorOf returns the operator of a request: the caller of the listener, or else the user of the
// control socket.
func operatorOf(ctx context.Context, user identity.Principal) identity.Principal {
	if p, ok := ctx.Value(operatorKey{}).(identity.Principal); ok {
		return p
	}
	return user
}

func (b pageBackend) answer(ctx context.Context, r control.Request) (context.Context, any, error) {
	if err := b.authorize(ctx, r); err != nil {
		return ctx, nil, err
	}
	ctx = context.WithValue(ctx, operatorKey{}, b.operator.Principal)
	result, err := b.server.answer(ctx, r)
	return ctx, result, err
}

// processBackend is a [console.Backend] in the process of the server. answer returns the result of a
// request, and the context of the stream that it may start.
type processBackend struct {
	answer func(context.Context, control.Request) (context.Context, any, error)
}

// Do implements [console.Backend].
func (b processBackend) Do(ctx context.Context, r control.Request, into any) error {
	_, result, err := b.answer(ctx, r)
	if err != nil {
		return err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode result of %s: %w", r.Action, err)
	}
	return json.Unmarshal(text, into)
}

// Open implements [console.Backend].
func (b processBackend) Open(ctx context.Context, r control.Request) (console.Stream, error) {
	ctx, result, err := b.answer(ctx, r)
	if err != nil {
		return nil, err
	}
	stream, ok := result.(control.Stream)
	if !ok {
		return nil, fmt.Errorf("%s starts no stream", r.Action)
	}
	return stream.Pipe(ctx), nil
}
