package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/schema"
	"github.com/mcpd/mcpd/policylang"
	"github.com/mcpd/mcpd/scripting"
)

// Metadata is what a tool says of itself (RFC section 9), and the annotations
// that MCP adds to it.
type Metadata struct {
	Name string
	// Title is a name for people; it may be empty.
	Title string
	// Description is nil when the author gives none.
	Description *string
	// InputSchema is a JSON Schema 2020-12 of an object. OutputSchema is nil
	// when the tool declares no output.
	InputSchema, OutputSchema json.RawMessage
	// Timeout bounds the running time of one call.
	Timeout    time.Duration
	Idempotent bool
	// ReadOnly, Destructive and OpenWorld are nil when the author says nothing.
	ReadOnly, Destructive, OpenWorld *bool
	// Labels are for policies; they are not sent to clients.
	Labels map[string]string
}

// clone returns a copy that shares nothing with m that could be changed.
func (m Metadata) clone() Metadata {
	m.InputSchema = bytes.Clone(m.InputSchema)
	m.OutputSchema = bytes.Clone(m.OutputSchema)
	m.Labels = maps.Clone(m.Labels)
	m.Description = copied(m.Description)
	m.ReadOnly, m.Destructive, m.OpenWorld = copied(m.ReadOnly), copied(m.Destructive), copied(m.OpenWorld)
	return m
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	value := *p
	return &value
}

// Tool is one tool of a [Snapshot], compiled and ready to run. It is
// immutable, and the same Tool serves all snapshots in which its definition is
// unchanged.
type Tool struct {
	metadata Metadata
	facts    policylang.ToolFacts
	input    *schema.Schema
	output   *schema.Schema // nil when no output is declared
	from     []fromInput
	// policySchema is the schema of the arguments as policies see them: with from inputs.
	policySchema json.RawMessage
	// sensitive and sensitiveOutput are JSON pointers to arguments and results
	// that hooks may not see.
	sensitive, sensitiveOutput []string
	inputs                     []string // the names of all inputs
	body                       body
	where                      diag.Range
	// key is everything that the compiled form depends on.
	key [32]byte
}

// Metadata returns what the tool says of itself. It is a copy.
func (t *Tool) Metadata() Metadata { return t.metadata.clone() }

// Name returns the tool's name.
func (t *Tool) Name() string { return t.metadata.Name }

// fromInput is an input whose value the server takes from what it knows of the caller.
type fromInput struct {
	name   string
	expr   *policylang.Expr
	schema *schema.Schema
}

// fits returns why the value does not fit the schema of the input.
func (f *fromInput) fits(value any) error {
	if violations := f.schema.Value(encode(value)); len(violations) > 0 {
		return errors.New(describe(violations))
	}
	return nil
}

// body is what a tool does when it is called: a script or a Go function. An
// error of the second kind is the server's own.
type body interface {
	run(ctx context.Context, x *execution) (scripting.Outcome, error)
}

// factsOf returns what policies may know of a tool, with MCP's defaults for
// the annotations that the author leaves out.
func factsOf(m Metadata) policylang.ToolFacts {
	return policylang.ToolFacts{
		Name: m.Name, Title: m.Title, Labels: m.Labels,
		ReadOnly:    valueOr(m.ReadOnly, false),
		Idempotent:  m.Idempotent,
		Destructive: valueOr(m.Destructive, true),
		OpenWorld:   valueOr(m.OpenWorld, true),
	}
}

func valueOr(value *bool, otherwise bool) bool {
	if value == nil {
		return otherwise
	}
	return *value
}
