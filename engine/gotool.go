package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/gofunc"
	"github.com/mcpd/mcpd/internal/host/gomodule"
)

// ToolOptions describe a tool that is written in Go (RFC section 8).
type ToolOptions struct {
	// Name is 1 to 64 letters, digits, dots, dashes and underscores.
	Name, Title, Description string
	// Timeout bounds the running time; 0 means one second.
	Timeout time.Duration
	// NotIdempotent says that calling twice is not like calling once.
	NotIdempotent bool
	// ReadOnly, Destructive and OpenWorld are MCP's annotations; nil says nothing.
	ReadOnly, Destructive, OpenWorld *bool
	// Labels are for policies.
	Labels map[string]string
}

// AddTool registers a tool that run calls: agent is who the caller claims to be, and
// [CallerFromContext] returns who was proved to call. If run ignores ctx past its timeout, it
// is left behind, not stopped: the caller gets TIMEOUT while run goes on.
//
// Its schemas are made from In, which must be a
// struct, and Out, as encoding/json sees them; the jsonschema struct tag
// describes a field. A tool of the same name, in Go or in a file, is an error.
// Tools may be added while the server runs; while the files have mistakes, the
// tool is served from the next good load on. One that no policy in the files covers is
// such a mistake in production mode: [Server.Status] tells of it, and nothing is loaded until
// there is one.
func AddTool[In, Out any](s *Server, o ToolOptions, run func(ctx context.Context, agent identity.Agent, in In) (Out, error)) error {
	item, err := newGoTool(o, run, &s.watchdog)
	if err != nil {
		return fmt.Errorf("add tool %q: %w", o.Name, err)
	}
	if err := s.register(item); err != nil {
		return fmt.Errorf("add tool %q: %w", o.Name, err)
	}
	return nil
}

// register adds a tool and, when the server already serves, publishes it.
func (s *Server) register(item *catalog.Item) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if slices.ContainsFunc(s.goTools, func(i *catalog.Item) bool { return i.Name == item.Name }) {
		return fmt.Errorf("a tool of this name is already registered")
	}
	snap := s.current.Load()
	if snap != nil {
		if e := snap.catalog.Entry(call.Tools, item.Name); e != nil {
			return fmt.Errorf("a tool of this name is defined at %s", e.Where)
		}
	}
	if front := s.options.Front; front != nil {
		if err := front.CheckTool(metadataOf(item)); err != nil {
			return err
		}
	}
	s.goTools = append(slices.Clone(s.goTools), item)
	if snap == nil {
		return nil
	}
	var problems diag.List
	if _, err := s.reload(context.Background(), Change{}); err != nil && !errors.As(err, &problems) {
		return err
	}
	return nil
}

func newGoTool[In, Out any](o ToolOptions, run func(ctx context.Context, agent identity.Agent, in In) (Out, error), w *gofunc.Watchdog) (*catalog.Item, error) {
	item := &catalog.Item{
		Name: o.Name, Allowance: catalog.Allowance{Timeout: o.Timeout},
		About: catalog.About{
			Title: o.Title, Idempotent: !o.NotIdempotent, Labels: maps.Clone(o.Labels),
			ReadOnly: clonePtr(o.ReadOnly), Destructive: clonePtr(o.Destructive), OpenWorld: clonePtr(o.OpenWorld),
		},
	}
	if o.Description != "" {
		item.Description = &o.Description
	}
	if err := gofunc.Complete(item, run, w); err != nil {
		return nil, err
	}
	return item, nil
}

// CallerFromContext returns who calls a tool that is written in Go, from the context that
// its function was given or one made of that: the principal, which authentication has
// proved, the agent, which is claimed, and where the request came in. It is a copy.
//
// A caller that nothing was proved about has the principal [identity.Anonymous], whose Kind
// is [identity.KindAnonymous]; so has the caller of any other context, for which ok is
// false. Compare Kind and Issuer beside ID: ids of different issuers may be the same.
func CallerFromContext(ctx context.Context) (caller identity.Caller, ok bool) {
	return gofunc.CallerFromContext(ctx)
}

// HostModule is an object of the program for scripts: what a file grants with
// module "NAME" {}, its script calls as modules.NAME.FUNCTION(arguments). The names are
// identifiers of JavaScript that no object has by itself. See [Options].
type HostModule struct {
	Name string
	// Functions are at least one.
	Functions []HostFunc
	// Check says what is wrong with the arguments of a grant, a JSON object; the author of
	// the file gets its error. Nil means that grants take none.
	Check func(options json.RawMessage) error
}

// HostFunc is a function of a [HostModule]; [NewHostFunc] makes it.
type HostFunc struct{ function gomodule.Function }

// HostCall is for whom a [HostFunc] runs.
type HostCall struct {
	// Caller is who makes the call; zero for a hook, which runs for nobody.
	Caller identity.Caller
	// Kind and Name are of what the script belongs to, such as "tool" and its
	// name, and ID is that of the call.
	Kind, Name, ID string
	// Options are the arguments of the grant, a JSON object.
	Options json.RawMessage
}

// NewHostFunc returns a function that scripts call with an object that fits In,
// which must be a struct, and that answers with Out, at most 4 MiB of JSON, both as
// encoding/json sees them; a type without a schema is an error of [New]. The script gets an
// error that is a [scripting.HostError] by its code and message; of another error, and of a
// panic, it learns that the function failed, and the log why. Nobody waits for run past the
// end of ctx, which is that of the call. It runs once, also when the script is run again from
// its beginning.
func NewHostFunc[In, Out any](name string, run func(ctx context.Context, call HostCall, in In) (Out, error)) HostFunc {
	if run == nil {
		return HostFunc{gofunc.NewFunction[In, Out](name, nil)}
	}
	return HostFunc{gofunc.NewFunction(name, func(ctx context.Context, call gomodule.Call, in In) (Out, error) { return run(ctx, HostCall(call), in) })}
}

// modulesOf returns modules as their broker has them.
func modulesOf(modules []HostModule) []gomodule.Module {
	var all []gomodule.Module
	for _, m := range modules {
		module := gomodule.Module{Name: m.Name, Check: m.Check}
		for _, f := range m.Functions {
			module.Functions = append(module.Functions, f.function)
		}
		all = append(all, module)
	}
	return all
}

// Decision is the RFC's PolicyDecision (section 11), made by [Allow] and
// [Deny]. The zero Decision denies.
type Decision struct {
	allowed bool
	reason  string
}

// Allow returns the decision that lets a call go on to the next policy. It does
// not cover the call: where the operator denies by default, an allow rule in a
// file must allow it too.
func Allow() Decision { return Decision{allowed: true} }

// Deny returns the decision that ends a call with [PolicyDenied] and the reason.
func Deny(reason string) Decision { return Decision{reason: reason} }

// Policy is a Go policy. It is asked before every execution, after the policies of the
// operator's file and before those of tool files. A policy that panics denies.
type Policy func(in PolicyInput) Decision

// PolicyInput is what a [Policy] decides about. Later versions may add members.
type PolicyInput struct {
	// Caller is a copy. A principal that nothing was proved about is [identity.Anonymous].
	Caller identity.Caller
	// Tool is the name of the tool, or KIND:NAME of what is none, as "resource:NAME".
	Tool string
	// Args are a copy, complete with defaults: integers are int64, and *big.Int beyond that
	// where the tool takes them; other numbers are float64.
	Args map[string]any
}

// ask runs the policy, which may panic, on copies.
func (p Policy) decide(caller *identity.Caller, tool string, args map[string]any) (allowed bool, reason string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			allowed, reason, err = false, "", fmt.Errorf("go policy panicked: %v", cause)
		}
	}()
	decision := p(PolicyInput{Caller: caller.Explicit().Clone(), Tool: tool, Args: identity.CloneValue(args).(map[string]any)})
	return decision.allowed, decision.reason, nil
}

// Hook is a Go hook. It runs in line, so it should be quick; a hook that
// panics is logged and never felt by the caller.
type Hook func(ctx context.Context, event call.Event)
