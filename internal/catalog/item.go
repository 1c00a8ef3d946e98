package catalog

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/hooks"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/schema"
	"github.com/mcpd/mcpd/policylang"
	"github.com/mcpd/mcpd/scripting"
)

// Item is one thing that can be called: a tool. It is immutable, and the same
// Item stands in all catalogs in which its definition is unchanged.
type Item struct {
	Name, Title string
	// Description is nil when the author gives none.
	Description *string
	Labels      map[string]string
	// Timeout bounds the running time of one call.
	Timeout time.Duration
	// AskTimeout is how long a call waits for its client's answers.
	AskTimeout time.Duration
	Idempotent bool
	// ReadOnly, Destructive and OpenWorld are nil when the author says nothing.
	ReadOnly, Destructive, OpenWorld *bool

	Input  *schema.Schema // nil when it has mistakes
	Output *schema.Schema // nil when no output is declared, or when it has mistakes
	From   []From
	// InputNames are the names of all inputs that callers may give.
	InputNames []string
	// PolicySchema is the schema of the arguments as policies see them: with
	// the inputs that the server fills in.
	PolicySchema json.RawMessage
	// Sensitive and SensitiveOutput are JSON pointers to arguments and results
	// that are shown to nobody else.
	Sensitive, SensitiveOutput []string
	// Facts are what policies know of the item.
	Facts policylang.ToolFacts
	// Body is nil when the item has mistakes.
	Body Body
	// Where is its name in the file.
	Where diag.Range
	// Key is a hash of everything that the item depends on.
	Key [32]byte
}

// SetFacts makes the facts of what the item says of itself, with MCP's
// defaults for the annotations that its author leaves out.
func (i *Item) SetFacts() {
	i.Facts = policylang.ToolFacts{
		Name: i.Name, Title: i.Title, Labels: i.Labels,
		ReadOnly:    valueOr(i.ReadOnly, false),
		Idempotent:  i.Idempotent,
		Destructive: valueOr(i.Destructive, true),
		OpenWorld:   valueOr(i.OpenWorld, true),
	}
}

func valueOr(value *bool, otherwise bool) bool {
	if value == nil {
		return otherwise
	}
	return *value
}

// From is an input whose value the server takes from what it knows of the caller.
type From struct {
	Name   string
	Expr   *policylang.Expr
	Schema *schema.Schema
}

// Body is what an item does when it is called. An error of the second kind is
// the server's own.
type Body interface {
	Run(ctx context.Context, i Invocation) (scripting.Outcome, error)
}

// Invocation is one run of a body.
type Invocation struct {
	// Input is the valid arguments as JSON.
	Input  []byte
	Caller identity.Caller
	Via    string
	// Began is when the call began, and what its clock shows first.
	Began time.Time
	// Root names all legs of the call, and Deadline is that of the first: what
	// the body sees of both is the same in every leg.
	Root     string
	Deadline time.Time
	// Agent is the JSON behind agent when the call is resumed; nil at first.
	Agent []byte
	// Journal records the run, or answers it up to where it was suspended.
	Journal  *scripting.Journal
	Executor scripting.Executor
	// Host serves the body; the body adds its own grants.
	Host host.Call
}

// Hook is a hook block with what it wants to know of.
type Hook struct {
	*hooks.Hook
	// Phases are "start", "end" and "error", each at most once.
	Phases []string
	names  patterns
}

// Policy is a policy of an item, in the order in which it is asked. Without
// Compiled it stands for all policies that the embedding program wrote in Go.
type Policy struct {
	Name     string
	Compiled *policylang.Policy
	Disclose string
	// Allows says that the policy is an allow rule, so that it covers a call that it allows.
	Allows bool
}
