package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/scripting"
)

func (c *compiler) prompt(def *definition.Prompt) *compiledItem {
	item := resourceItem(Prompts, def.Name, def.Name, def.Title, def.Description, def.Call)
	item.Icons, item.Where = def.Icons, def.NameRange
	c.state.authors.applyTo(item, def.Bounds)
	k := c.newItem(item, def.Semantic)
	k.arguments(def.Arguments, def.Call)
	item.PolicySchema = item.Offer.Schema()
	item.Input, _ = schema.Compile(item.PolicySchema, def.NameRange, nil) // the schema is generated, and valid
	for _, a := range def.Arguments {
		item.InputNames = append(item.InputNames, a.Name)
	}
	if def.Run == nil {
		item.Handler = staticPrompt{description: def.Description, messages: def.Messages}
		return k.finish(def.Grant, def.GrantRanges)
	}
	src := scripting.Source{Name: def.Name, Kind: scripting.Prompt, MustReturn: true, Inputs: item.InputNames}
	if src.Inputs == nil {
		src.Inputs = []string{}
	}
	item.Handler = withReply(k.handler(src, *def.Run, def.Grant), func(_ *Invocation, r *scripting.Result) (json.RawMessage, error) {
		return reply.Messages(def.Description, r)
	})
	return k.finish(def.Grant, def.GrantRanges)
}

// staticPrompt is the handler of a prompt with messages in the file.
type staticPrompt struct {
	description string
	messages    []definition.Message
}

func (p staticPrompt) Run(_ context.Context, i Invocation) (scripting.Outcome, error) {
	values, size := stringValues(i.Args), 0
	for n := range p.messages {
		size += p.messages[n].Len(values)
	}
	if size > definition.MaxRendered {
		return tooLong(size), nil
	}
	filled := make([]reply.Message, len(p.messages))
	for n := range p.messages {
		var valid bool
		if filled[n], valid = fill(&p.messages[n], values); !valid {
			message := fmt.Sprintf("message %d: with these arguments, its uri is not absolute", n+1)
			return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.Thrown, Message: message}}, nil
		}
	}
	return replyOutcome(reply.StaticMessages(p.description, filled)), nil
}

// fill returns a message with the arguments inserted, and false if a URI is invalid with them.
func fill(m *definition.Message, values map[string]string) (out reply.Message, valid bool) {
	out = reply.Message{Role: m.Role, Annotations: annotationsOf(m.Annotations), Size: -1}
	valid = true
	switch {
	case m.Media != nil:
		out.Kind, out.MIMEType, out.Content = m.Media.Kind, m.Media.MIMEType, m.Media.Bytes
	case m.Resource != nil:
		out.Resource, valid = m.Resource.URI.RenderURI(values)
		out.MIMEType = m.Resource.MIMEType
		fillResource(m.Resource, values, &out)
	case m.Link != nil:
		out.Link, valid = m.Link.URI.RenderURI(values)
		out.Name, out.MIMEType = m.Link.Name.Render(values), m.Link.MIMEType
		out.Title, out.Description = m.Link.Title.Render(values), m.Link.Description.Render(values)
		if m.Link.Size != nil {
			out.Size = *m.Link.Size
		}
	default:
		text := m.Text.Render(values)
		out.Text = &text
	}
	return out, valid
}

func fillResource(r *definition.Embedded, values map[string]string, out *reply.Message) {
	switch {
	case r.Content == nil:
		text := r.Text.Render(values)
		out.ResourceText = &text
	case r.Content.Binary:
		out.Content = r.Content.Bytes
	default:
		text := string(r.Content.Bytes)
		out.ResourceText = &text
	}
}
