package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/policylang"
	"github.com/mcpd/mcpd/scripting"
)

// Item is one thing that can be called: a tool, a resource, a template of
// resources, or a prompt. It is immutable, and the same Item stands in all
// catalogs in which its definition is unchanged.
type Item struct {
	Kind Kind
	// Name is that of the definition, by which policies and hooks name it.
	Name string
	// Address is what callers call it by: the name of a tool or a prompt, the
	// URI of a resource, the text of a template.
	Address string
	// Upstream is the name of the server that offers it; "" for what is our own.
	Upstream string
	// Where is its name in the file, or that of the block of its upstream.
	Where diag.Range
	About
	// Offer is nil for a tool.
	Offer *Offer
	Schemas
	Allowance
	Behavior
	// Facts are what policies know of the item.
	Facts policylang.ToolFacts
	// Key is a hash of everything that the item depends on, wherever it stands.
	Key [32]byte
	// Shown is a hash of what lists show of the item.
	ListHash [32]byte
	// folder is the definition that the item shares with the other files of a
	// folder; nil for any other.
	folder *definition.Folder
}

// About is what the author of an item says of it to people, models and policies.
type About struct {
	Title string
	// Description is nil when the author gives none.
	Description *string
	Icons       []definition.Icon
	Labels      map[string]string
	Idempotent  bool
	// ReadOnly, Destructive and OpenWorld are nil when the author says nothing.
	ReadOnly, Destructive, OpenWorld *bool
}

// Schemas say what an item takes and returns.
type Schemas struct {
	Input  *schema.Schema // of tools and prompts; nil when it has mistakes
	Output *schema.Schema // nil when no output is declared, or when it has mistakes
	From   []FromInput
	// Declared is the schema of the arguments with the types that JSON Schema has no name
	// for; nil where Input says everything.
	Declared   json.RawMessage
	InputNames []string
	// PolicySchema is the schema of the arguments as policies see them: with
	// the inputs that the server fills in.
	PolicySchema json.RawMessage
	// Sensitive and SensitiveOutput are JSON pointers to arguments and results
	// that are shown to nobody else.
	Sensitive, SensitiveOutput []string
}

// Allowance bounds the calls of an item.
type Allowance struct {
	Timeout    time.Duration
	AskTimeout time.Duration
	// Bounds are those of a run of the body, zero members of which leave it to the
	// executor, and Concurrency is how many calls run at once; 0 is any number.
	Bounds      scripting.Limits
	Concurrency int
	Task        Task
}

// Behavior is what a call of an item does.
type Behavior struct {
	// Body is nil when the item has mistakes.
	Handler Handler
	// DryRun answers in the place of the body in a rehearsal; nil where nothing does.
	DryRun Handler
	// Cache is that of a tool of an upstream, nil for none. Body is given one once the item is
	// built into a catalog.
	Cache *definition.Cache
	// Surveys says that the body looks at what else its caller may call, and calls that as
	// code of the agent does. What surveys is no part of what is looked at.
	CallsAllTools bool
	// Alias says that a call is one of the tool that its arguments name, with the arguments
	// that they hold: the item has no part in it.
	Alias bool
	// Steady says that every call has the same result until the files change.
	Static bool
}

type Task struct {
	// TTL is how long a task is kept from its beginning on; 0 means that no
	// call of the tool is one.
	TTL time.Duration
	// Required says that the tool runs in no other way, as far as its client
	// has a choice.
	Required bool
	// AskFirst says that a call becomes a task when it comes back with the
	// answers to what it asked first, and not before.
	AskFirst bool
}

// Settle makes what follows from what the item says of itself: its facts, with
// MCP's defaults for the annotations that its author leaves out, and the hash
// of what lists show.
func (i *Item) Finalize() {
	i.Facts = policylang.ToolFacts{
		Kind: i.Kind.String(), Name: i.Name, Title: i.Title, Labels: i.Labels,
		ReadOnly:    valueOr(i.ReadOnly, false),
		Idempotent:  i.Idempotent,
		Destructive: valueOr(i.Destructive, true),
		OpenWorld:   valueOr(i.OpenWorld, true),
	}
	i.ListHash = i.listHash()
}

func (i *Item) listHash() [32]byte {
	shown := struct {
		Kind                             Kind
		Address, Title                   string
		Description                      *string
		Timeout                          time.Duration
		Idempotent                       bool
		ReadOnly, Destructive, OpenWorld *bool
		Icons                            []definition.Icon
		Offer                            *Offer
		Input, Output                    json.RawMessage
	}{
		i.Kind, i.Address, i.Title, i.Description, i.Timeout, i.Idempotent, i.ReadOnly, i.Destructive, i.OpenWorld,
		i.Icons, i.Offer, rawOf(i.Input), rawOf(i.Output),
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(shown)
	return sha256.Sum256(encoded)
}

func rawOf(s *schema.Schema) json.RawMessage {
	if s == nil {
		return nil
	}
	return s.Raw()
}

func valueOr(value *bool, otherwise bool) bool {
	if value == nil {
		return otherwise
	}
	return *value
}

// Body is what an item does when it is called. An error of the second kind is
// the server's own.
type Handler interface {
	Run(ctx context.Context, i Invocation) (scripting.Outcome, error)
}

// Invocation is one run of a body.
type Invocation struct {
	Address string
	// Input is the valid arguments as JSON, and Args are the same, decoded: the
	// arguments of a tool or a prompt. What is read of a template has its
	// variables as Args.
	Input []byte
	Args  map[string]any
	Origin
	Leg
	Executor scripting.Executor
	Bounds   scripting.Limits
	// Cached is set when the result is that of another call; nil when nobody asks.
	Cached *bool
	// Host serves the body; the body adds its own grants.
	Host host.RunHost
	// Survey is what else the caller may call; nil unless the item [Behavior.Surveys].
	ToolAccess ToolAccess
	// Approved are the calls that the user has approved in the plan of the body.
	Approved []PlannedCall
	// Late is told of the end of the call when a body in Go goes on past it, and
	// holds the goroutine that it was given: the error is then [ErrLeft]. Nil has
	// such bodies run in goroutines of their own.
	DetachNotifier DetachNotifier
}

// Origin says who makes a call, and where it stands among the calls that come of one.
type Origin struct {
	Caller identity.Caller
	Via    string
	// Depth is how many calls the call is nested in, and Parent the name of what
	// made it, empty at depth 0, where it has no Kin.
	Depth    int
	Parent   string
	CallTree *scripting.CallTree
	// Owner is the [scripting.Call.Owner] of the call.
	Owner uint64
}

// Leg is one part of a call, up to where it asks its client or ends.
type Leg struct {
	// Began is when the leg began, and what its clock shows first.
	StartTime time.Time
	// Root names all legs of the call, and Deadline is that of the first: what
	// the body sees of both is the same in every leg.
	RootID   string
	Deadline time.Time
	// Agent is the JSON behind agent when the call is resumed; nil at first.
	Agent []byte
	// Journal records the run, or answers it up to where it was suspended.
	Journal *scripting.Journal
}

// Survey is what the caller of a body may call.
type ToolAccess interface {
	// Tools are those that may be called with code, in bytewise order of their names.
	Tools(ctx context.Context) []*Entry
	// Catalog is what serves the call.
	Catalog() *Catalog
	// Call makes a call of a tool for the same caller, whose client may be asked in the
	// midst of it, and goes on with one that has asked. Its error is as that of
	// [host.Tools].CallTool.
	Call(ctx context.Context, r CodeCall) (CodeReply, error)
}

// Rehearser is a body that may be rehearsed before it is run, so that a user approves at
// once what it is going to do.
type DryRunner interface {
	Handler
	// Rehearses reports whether a call with these arguments wants that.
	WantsDryRun(args map[string]any) bool
	// Rehearse runs the body without changing anything. The outcome is that of a rehearsal
	// which fails; it is zero of one that does not.
	DryRun(ctx context.Context, i Invocation) (writes []PlannedCall, outcome scripting.Outcome, err error)
}

// Write is a call that a rehearsal has not made.
type PlannedCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	// Shown are the arguments without those that are sensitive.
	RedactedArguments json.RawMessage `json:"shown"`
	Approval          bool            `json:"approval"`
}

// CodeCall is a call that code makes.
type CodeCall struct {
	Name      string
	Arguments json.RawMessage
	// Resume goes on with a call that has asked; nil when it begins.
	Resume *call.Resume
	// Approved says that a user has approved the call in the plan of the program.
	Approved bool
	// Rehearse makes the call only where it reads: otherwise the tool's body for rehearsals
	// answers where there is one, and all else is judged and not made.
	DryRun bool
}

// CodeReply is what a call that code makes came to.
type CodeReply struct {
	// Value is what the tool, or its body for rehearsals, returned; null of neither.
	Value json.RawMessage
	// Ask is what the client is to be asked first; nil where the call has ended.
	Ask *call.Ask
	// How is, of a rehearsal, "ran", "dry_run" or "planned".
	Mode string
	// Shown are, of a rehearsal, the arguments without those that are sensitive.
	RedactedArguments json.RawMessage
	// Approval says of a rehearsal that a user has to approve the call.
	Approval bool
}

// ErrLeft says that a body went on past the end of its call, of which somebody
// else was told.
var ErrDetached = errors.New("the body went on past the end of its call")

// UnavailableError says that what is behind an item cannot be reached. Nothing is known
// of what became of the call there.
type UnavailableError struct {
	// Message is for the caller.
	Message string
	// Wait is how long to wait before trying again; 0 where that is not known.
	RetryAfter time.Duration
	// Err is for the operator.
	Err error
}

func (e *UnavailableError) Error() string { return e.Message }

// Unwrap returns what the operator learns beside the message.
func (e *UnavailableError) Unwrap() error { return e.Err }

// ErrExited is what a body ends with that ends its goroutine (runtime.Goexit).
var ErrGoexit = errors.New("the body ended its goroutine")

// Late is told, at most once, that a call has ended while its body holds its
// goroutine: for the reason that ctx gives, or with [ErrExited]. It must not wait
// for the body.
type DetachNotifier interface {
	CallEnded(ctx context.Context, reason error)
}

// Hook is a hook block with what it wants to know of.
type Hook struct {
	*hooks.Hook
	// Phases are "start", "end" and "error", each at most once.
	Phases  []string
	targets definition.Targets
}

// Policy is a policy of an item, in the order in which it is asked. Without
// Compiled it stands for all policies that the embedding program wrote in Go.
type Policy struct {
	Name     string
	Compiled *policylang.Policy
	Disclose string
	// Where is its name in the file, and Operator says that the file is the operator's.
	Where    diag.Range
	Operator bool
	// Allows says that the policy is an allow rule, so that it covers a call that it
	// allows, and Asks that it may want the consent of the user.
	Allows, Asks bool
	// ReadsContent says that the policy looks at the content blocks of results.
	ReadsContent bool
}

// From is an input whose value the server takes from what it knows of the caller.
type FromInput struct {
	Name   string
	Expr   *policylang.Expr
	Schema *schema.Schema
	Text   diag.Text
}

// Told returns the values of the inputs that the server tells, and no caller. An
// error comes with the name of the input that has none.
func (i *Item) ComputeFrom(ctx context.Context, facts policylang.Input) (values map[string]any, name string, err error) {
	if len(i.From) == 0 {
		return nil, "", nil
	}
	values = make(map[string]any, len(i.From))
	for _, input := range i.From {
		value, err := input.Expr.Eval(ctx, facts)
		if err == nil {
			err = input.Schema.ValidateValue(value)
		}
		if err != nil {
			return nil, input.Name, err
		}
		values[input.Name] = value
	}
	return values, "", nil
}
