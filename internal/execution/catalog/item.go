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

// Item is a tool, a resource, a resource template or a prompt. It is immutable, and is shared by
// all catalogs with the same definition.
type Item struct {
	Kind Kind
	// Name is the name of the definition. Policies and hooks use it.
	Name string
	// Address identifies the item for callers: the name of a tool or prompt, the URI of a resource,
	// or the text of a template.
	Address string
	// Upstream is the name of the upstream server; "" for a local item.
	Upstream string
	// Where is the range of its name in the file, or of the name of the upstream block.
	Where diag.Range
	About
	// Offer is nil for a tool.
	Offer *Offer
	Schemas
	Allowance
	Behavior
	// Facts are the attributes of the item for policies.
	Facts policylang.ToolFacts
	// Key is a hash of everything that the item depends on, independent of its position.
	Key [32]byte
	// ListHash is a hash of the fields that lists show.
	ListHash [32]byte
	// folder is the folder block that the item shares with other files; nil for other items.
	folder *definition.Folder
}

// About is the metadata of an item for people, models and policies.
type About struct {
	Title string
	// Description is nil if the author sets none.
	Description *string
	Icons       []definition.Icon
	Labels      map[string]string
	Idempotent  bool
	// ReadOnly, Destructive and OpenWorld are nil if the author does not set them.
	ReadOnly, Destructive, OpenWorld *bool
}

// Schemas are the schemas of arguments and results.
type Schemas struct {
	Input  *schema.Schema // of tools and prompts; nil if it has errors
	Output *schema.Schema // nil if no output is declared, or if it has errors
	From   []FromInput
	// Declared is the argument schema with types that JSON Schema cannot express; nil if Input is
	// complete.
	Declared   json.RawMessage
	InputNames []string
	// PolicySchema is the schema of the arguments for policies. It includes the inputs that the
	// server computes.
	PolicySchema json.RawMessage
	// Sensitive and SensitiveOutput are JSON pointers to sensitive arguments and results.
	Sensitive, SensitiveOutput []string
}

// Allowance limits the calls of an item.
type Allowance struct {
	Timeout    time.Duration
	AskTimeout time.Duration
	// Bounds limit one run of the handler; zero fields mean the defaults of the executor.
	// Concurrency is the number of calls that may run at once; 0 means no limit.
	Bounds      scripting.Limits
	Concurrency int
	Task        Task
}

// Behavior is the handler of an item and how it is used.
type Behavior struct {
	// Handler is nil if the item has errors.
	Handler Handler
	// DryRun replaces the handler in a dry run; nil if the tool has no dry_run.
	DryRun Handler
	// Cache is the cache of an upstream tool, or nil. The handler gets it when the item is added to
	// a catalog.
	Cache *definition.Cache
	// CallsAllTools reports that the handler may call every tool that its caller may call, as agent
	// code. Such an item is not among these tools.
	CallsAllTools bool
	// Alias reports that a call is redirected to the tool that its arguments name, with the
	// arguments that they contain.
	Alias bool
	// Static reports that every call has the same result until the files change.
	Static bool
}

// Task says whether calls of a tool may run as tasks.
type Task struct {
	// TTL is the lifetime of a task from its creation; 0 means that calls do not run as tasks.
	TTL time.Duration
	// Required reports that every call of a client that supports tasks runs as one.
	Required bool
	// AskFirst reports that a call becomes a task only after the client has responded to its first
	// input requests.
	AskFirst bool
}

// Finalize sets the derived fields of the item: the attributes for policies, with MCP's defaults
// for missing annotations, and the hash of the list fields.
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

// Handler executes the calls of an item. The error is a fault of the server, not of the script.
type Handler interface {
	Run(ctx context.Context, i Invocation) (scripting.Outcome, error)
}

// Invocation is one run of a handler.
type Invocation struct {
	Address string
	// Input is the valid arguments as JSON, and Args are the same, decoded. For a template, Args
	// are its variables.
	Input []byte
	Args  map[string]any
	Origin
	Leg
	Executor scripting.Executor
	Bounds   scripting.Limits
	// Cached is set to true if the result comes from the cache; it may be nil.
	Cached *bool
	// Host serves host calls. The handler adds its own grants.
	Host host.RunHost
	// ToolAccess gives access to the tools of the caller; nil unless [Behavior].CallsAllTools is
	// set.
	ToolAccess ToolAccess
	// Approved are the calls that the user has approved in the plan.
	Approved []PlannedCall
	// DetachNotifier is called at the end of the call if a Go handler still blocks the calling
	// goroutine; Run then returns [ErrDetached]. If it is nil, Go handlers run in goroutines of
	// their own.
	DetachNotifier DetachNotifier
}

// Origin identifies the caller, and the position of the call in its call tree.
type Origin struct {
	Caller identity.Caller
	Via    string
	// Depth is the number of enclosing calls, and Parent the name of the item that made the call.
	// At depth 0, Parent is empty and CallTree nil.
	Depth    int
	Parent   string
	CallTree *scripting.CallTree
	// Owner is passed to [scripting.Call].
	Owner uint64
}

// Leg is one segment of a call, up to an input request or its end.
type Leg struct {
	// StartTime is the start time of the leg, and the first value of the script's clock.
	StartTime time.Time
	// RootID and Deadline belong to the first leg, so that the script sees the same values in every
	// leg.
	RootID   string
	Deadline time.Time
	// Agent is the JSON of agent from the first leg; nil in the first leg.
	Agent []byte
	// Journal records the run, and replays it up to the suspension.
	Journal *scripting.Journal
}

// ToolAccess gives access to the tools that a caller may call.
type ToolAccess interface {
	// Tools returns the tools for agent code, in bytewise order of their names.
	Tools(ctx context.Context) []*Entry
	// Catalog returns the catalog that serves the call.
	Catalog() *Catalog
	// Call calls a tool for the same caller, or resumes such a call. The client may be asked for
	// input. The error is as in [host.Tools].CallTool.
	Call(ctx context.Context, r CodeCall) (CodeReply, error)
}

// DryRunner is a handler that can list its calls in advance, so that a user approves all of them at
// once.
type DryRunner interface {
	Handler
	// WantsDryRun reports whether a call with these arguments needs a dry run.
	WantsDryRun(args map[string]any) bool
	// DryRun runs the handler without side effects. The outcome is set if it failed, and zero
	// otherwise.
	DryRun(ctx context.Context, i Invocation) (writes []PlannedCall, outcome scripting.Outcome, err error)
}

// PlannedCall is a call that a dry run did not make.
type PlannedCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	// RedactedArguments are the arguments without sensitive ones.
	RedactedArguments json.RawMessage `json:"shown"`
	Approval          bool            `json:"approval"`
}

// CodeCall is a call by agent code.
type CodeCall struct {
	Name      string
	Arguments json.RawMessage
	// Resume continues a suspended call; nil for a new call.
	Resume *call.Resume
	// Approved reports that a user has approved the call in the plan.
	Approved bool
	// DryRun makes the call only if the tool is read-only. Otherwise it runs the tool's dry_run
	// handler, if any, or only evaluates policies.
	DryRun bool
}

// CodeReply is the result of a call by agent code.
type CodeReply struct {
	// Value is the value of the tool or of its dry_run handler, or null.
	Value json.RawMessage
	// Ask is set if the call waits for its client; nil if it has ended.
	Ask *call.Ask
	// Mode is "ran", "dry_run" or "planned" in a dry run.
	Mode string
	// RedactedArguments are the arguments without sensitive ones, in a dry run.
	RedactedArguments json.RawMessage
	// Approval reports, in a dry run, that a user must approve the call.
	Approval bool
}

// ErrDetached means that the handler still runs after its call has ended.
var ErrDetached = errors.New("the handler is still running after the end of its call")

// UnavailableError reports that the server behind an item is unreachable. The state of the call
// there is unknown.
type UnavailableError struct {
	// Message is for the caller.
	Message string
	// RetryAfter is the time to wait before a retry; 0 if unknown.
	RetryAfter time.Duration
	// Err is for the operator.
	Err error
}

// Error returns the message for the caller.
func (e *UnavailableError) Error() string { return e.Message }

// Unwrap returns the error for the operator.
func (e *UnavailableError) Unwrap() error { return e.Err }

// ErrGoexit means that a handler ended its goroutine (runtime.Goexit).
var ErrGoexit = errors.New("the handler ended its goroutine")

// DetachNotifier is called, at most once, if a call has ended while its handler still blocks the
// calling goroutine. The reason is the error of ctx, or [ErrGoexit]. It must not wait for the
// handler.
type DetachNotifier interface {
	CallEnded(ctx context.Context, reason error)
}

// Hook is a hook block with its phases and targets.
type Hook struct {
	*hooks.Hook
	// Phases are "start", "end" and "error", each at most once.
	Phases  []string
	targets definition.Targets
}

// Policy is a policy of an item. Without Compiled it stands for all Go policies of the embedding
// program.
type Policy struct {
	Name     string
	Compiled *policylang.Policy
	Disclose string
	// Where is the range of its name, and Operator reports that it is in mcpd.hcl.
	Where    diag.Range
	Operator bool
	// Allows reports that the policy is an allow rule, and Asks that it may require approval by the
	// user.
	Allows, Asks bool
	// ReadsContent reports that the policy reads the content blocks of results.
	ReadsContent bool
}

// FromInput is an input that the server computes from the caller's identity.
type FromInput struct {
	Name   string
	Expr   *policylang.Expr
	Schema *schema.Schema
	Text   diag.Text
}

// ComputeFrom returns the values of the computed inputs. With an error, name is the input that has
// no value.
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
