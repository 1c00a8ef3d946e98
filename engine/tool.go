package engine

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"github.com/mcpd/mcpd/internal/execution/catalog"
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
	// DeclaredSchema is InputSchema with the type bigint named, where the tool has such
	// arguments. It is no JSON Schema, and not sent to clients.
	DeclaredSchema json.RawMessage
	// Timeout bounds the running time of one call.
	Timeout    time.Duration
	Idempotent bool
	// ReadOnly, Destructive and OpenWorld are nil when the author says nothing.
	ReadOnly, Destructive, OpenWorld *bool
	// Labels are for policies; they are not sent to clients.
	Labels map[string]string
	Icons  []Icon
}

// Tool is one tool of a [Snapshot]. It is immutable, and the same Tool serves
// all snapshots in which its definition is unchanged.
type Tool struct{ item *catalog.Item }

// Name returns the tool's name.
func (t *Tool) Name() string { return t.item.Name }

// Metadata returns what the tool says of itself. It is a copy.
func (t *Tool) Metadata() Metadata { return metadataOf(t.item) }

// Task says whether the calls of a tool may go on as tasks.
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

// Task returns whether the tool's calls may go on as tasks. The engine makes
// none: it runs the legs of a task like any other call.
func (t *Tool) Task() Task { return Task(t.item.Task) }

func metadataOf(i *catalog.Item) Metadata {
	m := Metadata{
		Name: i.Name, Title: i.Title, Description: copied(i.Description), InputSchema: bytes.Clone(i.Input.Raw()), DeclaredSchema: bytes.Clone(i.Declared),
		Timeout: i.Timeout, Idempotent: i.Idempotent, Labels: maps.Clone(i.Labels), Icons: iconsOf(i.Icons),
		ReadOnly: copied(i.ReadOnly), Destructive: copied(i.Destructive), OpenWorld: copied(i.OpenWorld),
	}
	if i.Output != nil {
		m.OutputSchema = bytes.Clone(i.Output.Raw())
	}
	return m
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	value := *p
	return &value
}
