package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/gofunc"
	"github.com/mcpd/mcpd/internal/host/gomodule"
)

// ToolOptions describe a Go tool (RFC section 8).
type ToolOptions struct {
	// Name is 1 to 64 letters, digits, dots, dashes and underscores.
	Name, Title, Description string
	// Timeout bounds the running time; 0 means one second.
	Timeout time.Duration
	// NotIdempotent reports that repeating a call has an additional effect.
	NotIdempotent bool
	// ReadOnly, Destructive and OpenWorld are annotations of MCP; nil omits them.
	ReadOnly, Destructive, OpenWorld *bool
	// Labels are attributes for policies.
	Labels map[string]string
}

// AddTool registers a tool that calls run. agent is the claimed agent, and [CallerFromContext]
// returns the authenticated caller. If run ignores ctx past its timeout, the caller gets TIMEOUT
// while run continues in the background.
//
// The caller gets the text of an error of run, whatever its type, with the code EXECUTION_ERROR: the
// text must hold no secret and no path. A panic gives the caller a general text.
//
// The schemas are derived from In, which must be a struct, and Out, as encoding/json encodes them;
// the jsonschema struct tag describes a field. A tool whose Out is [call.Text] has no output schema.
// A duplicate tool name, in Go or in a file, is an error. Tools may be added while the server runs.
// While the files have errors, a new tool is served only after the next successful load. In
// production mode a tool that no policy in the files covers is such an error; see [Server.Status].
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

// register adds a tool, and publishes it if the server already serves.
func (s *Server) register(item *catalog.Item) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if s.goNames[item.Name] {
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
	s.goTools, s.goNames[item.Name] = append(s.goTools, item), true
	if snap == nil {
		return nil
	}
	if _, err := s.reload(context.Background(), Change{}); diagnosticsOf(err) == nil {
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
	if err := gofunc.DefineTool(item, run, w); err != nil {
		return nil, err
	}
	return item, nil
}

// CallerFromContext returns the caller of a Go tool from the context of its function: the
// authenticated principal, the claimed agent, and the source of the request. It is a copy.
//
// An unauthenticated caller has the principal [identity.Anonymous] with the Kind
// [identity.KindAnonymous]. For any other context, ok is false and the caller is anonymous. Compare
// Kind and Issuer in addition to ID, as ids of different issuers may be equal.
func CallerFromContext(ctx context.Context) (caller identity.Caller, ok bool) {
	return gofunc.CallerFromContext(ctx)
}

// HostModule is a set of Go functions for scripts. A file grants it with module "NAME" {}, and its
// script calls modules.NAME.FUNCTION(arguments). Names are JavaScript identifiers that no object
// has by default. See [Options].
type HostModule struct {
	Name string
	// Functions has at least one element.
	Functions []HostFunc
	// Check validates the arguments of a grant, a JSON object. The author of the file gets its
	// error. Nil means that grants take no arguments.
	Check func(options json.RawMessage) error
}

// HostFunc is a function of a [HostModule]; see [NewHostFunc].
type HostFunc struct{ function gomodule.Function }

// HostCall describes the call that runs a [HostFunc].
type HostCall struct {
	// Caller is the caller; zero for a hook, which has none.
	Caller identity.Caller
	// Kind and Name identify the item of the script, such as "tool" and its name. ID is the call
	// id.
	Kind, Name, ID string
	// Options are the arguments of the grant, a JSON object.
	Options json.RawMessage
}

// NewHostFunc returns a function that scripts call with an object that matches In, which must be a
// struct. It returns Out, at most 4 MiB of JSON. Both are encoded with encoding/json; a type
// without a schema is an error of [New]. The script gets the code and message of a
// [scripting.HostError]. For any other error, or a panic, the script gets a generic error, and the
// log has the cause. The call does not wait for run after ctx ends. run is called once, even if the
// script is replayed.
func NewHostFunc[In, Out any](name string, run func(ctx context.Context, call HostCall, in In) (Out, error)) HostFunc {
	if run == nil {
		return HostFunc{gofunc.NewFunction[In, Out](name, nil)}
	}
	return HostFunc{gofunc.NewFunction(name, func(ctx context.Context, call gomodule.CallInfo, in In) (Out, error) {
		return run(ctx, HostCall(call), in)
	})}
}

// modulesOf converts modules for their broker.
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

// Decision is the PolicyDecision of RFC-0001 (section 11), created by [Allow] and [Deny]. The zero
// Decision denies.
type Decision struct {
	allowed bool
	reason  string
}

// Allow returns the decision to continue with the next policy. It does not count as an allow rule:
// if calls are denied by default, an allow rule in a file must allow the call, too.
func Allow() Decision { return Decision{allowed: true} }

// Deny returns the decision to end a call with POLICY_DENIED and the reason.
func Deny(reason string) Decision { return Decision{reason: reason} }

// Policy is a Go policy. It is evaluated before every execution, after the policies of mcpd.hcl and
// before the policies of tool files. A policy that panics denies. It is not evaluated for lists: clients see
// a tool that it denies to them. To hide tools, use policies in files.
type Policy func(in PolicyInput) Decision

// PolicyInput is the input of a [Policy]. Later versions may add fields.
type PolicyInput struct {
	// Caller is a copy. An unauthenticated caller has [identity.Anonymous].
	Caller identity.Caller
	// Tool is the name of the tool, or KIND:NAME for other items, as in "resource:NAME".
	Tool string
	// Args is a copy that includes defaults. Integers are int64, or *big.Int beyond that range if
	// the tool accepts them; other numbers are float64.
	Args map[string]any
}

// decide runs the policy on copies and recovers a panic.
func (p Policy) decide(caller *identity.Caller, tool string, args map[string]any) (allowed bool, reason string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			allowed, reason, err = false, "", fmt.Errorf("go policy panicked: %v", cause)
		}
	}()
	decision := p(PolicyInput{Caller: caller.Explicit().Clone(), Tool: tool, Args: identity.CloneValue(args).(map[string]any)})
	return decision.allowed, decision.reason, nil
}

// Hook is a Go hook. It is called synchronously, so it should be fast. A panic is logged and does
// not affect the caller.
type Hook func(ctx context.Context, event call.Event)
