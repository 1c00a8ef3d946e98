package catalog

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/scripting"
)

// noArguments is the schema of the arguments of a resource, for policies.
const noArguments = `{"type":"object","properties":{},"additionalProperties":false}`

// resourceItem returns what all items that are no tools have in common.
func resourceItem(kind Kind, name, address, title, description string, call definition.Call) *Item {
	yes, no := true, false
	item := &Item{
		Kind: kind, Name: name, Address: address, Title: title, Labels: call.Labels, Timeout: call.Timeout, AskTimeout: call.AskTimeout,
		Idempotent: true, ReadOnly: &yes, Destructive: &no, PolicySchema: json.RawMessage(noArguments),
		Offer: &Offer{ListedAs: name, Size: -1},
	}
	if description != "" {
		item.Description = &description
	}
	return item
}

func (c *compiler) resource(def *definition.Resource) *compiledItem {
	item := resourceItem(Resources, def.Name, def.URI, def.Title, def.Description, def.Call)
	item.Icons, item.Where = def.Icons, def.NameRange
	item.Offer.MIMEType, item.Offer.Annotations = def.MIMEType, annotationsOf(def.Annotations)
	if def.Size != nil {
		item.Offer.Size = *def.Size
	}
	c.found.authors.bound(item, def.Bounds)
	k := c.begin(item, def.Meaning)
	switch {
	case def.Content != nil:
		item.Body, item.Steady = &stored{uri: def.URI, content: *def.Content}, true
	case def.Run != nil:
		src := scripting.Source{Name: def.Name, Kind: scripting.Resource, MustReturn: true, Inputs: []string{}}
		item.Body = k.reading(src, *def.Run, def.Call, def.MIMEType)
	}
	return k.done(def.Grant, def.GrantRanges)
}

// reading compiles the body of a resource or a template.
func (k *compiling) reading(src scripting.Source, run definition.Body, call definition.Call, mimeType string) Body {
	return shaped(k.body(src, run, call.Grant), func(i *Invocation, r *scripting.Result) (json.RawMessage, error) {
		return reply.Contents(i.Address, mimeType, r)
	})
}

// stored is the body of a resource whose content stands in the files.
type stored struct {
	uri     string
	content definition.Content
	once    sync.Once
	reply   json.RawMessage
}

// Run returns the content, which is encoded when it is first read.
func (s *stored) Run(context.Context, Invocation) (scripting.Outcome, error) {
	s.once.Do(func() { s.reply = reply.Stored(s.uri, s.content.MIMEType, s.content.Bytes, s.content.Binary) })
	return replied(s.reply), nil
}

// replied is the outcome of a body that has made its reply.
func replied(r json.RawMessage) scripting.Outcome {
	return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Value, JSON: r}}
}

// shape makes a reply of what a body returned.
type shape func(i *Invocation, r *scripting.Result) (json.RawMessage, error)

// shapedBody is a body whose result becomes a reply.
type shapedBody struct {
	Body
	shape shape
}

// shaped returns a body whose results are shaped; nil for none.
func shaped(b Body, s shape) Body {
	if b == nil {
		return nil
	}
	return &shapedBody{b, s}
}

// Run runs the body; a result that no reply can be made of is its failure.
func (b *shapedBody) Run(ctx context.Context, i Invocation) (scripting.Outcome, error) {
	outcome, err := b.Body.Run(ctx, i)
	if err != nil || outcome.Result == nil {
		return outcome, err
	}
	made, err := b.shape(&i, outcome.Result)
	if err != nil {
		return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.Thrown, Message: err.Error()}}, nil
	}
	return replied(made), nil
}
