package pipeline

import (
	"cmp"
	"context"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/policylang"
)

// Explain judges a call as [Pipeline.Execute] does, on a catalog that need not serve, and
// runs no body. Policies in Go are asked. No hook hears of it, no limit counts it, and
// nothing is written down of it. What is sensitive is hidden.
func (p *Pipeline) Explain(ctx context.Context, on *catalog.Catalog, of Case) Explanation {
	of.Request.Caller.Agent.RequestID = cmp.Or(of.Request.Caller.Agent.RequestID, of.ID)
	x := p.begin(on, of.Request)
	x.id = cmp.Or(of.ID, x.id)
	if !of.Began.IsZero() {
		x.began = of.Began
	}
	if x.entry == nil && of.Request.Kind == call.Resources && of.Unknown&policylang.PartArgs != 0 {
		if x.entry = on.Entry(call.Templates, of.Request.Name); x.entry != nil {
			x.body = x.entry.Body
		}
	}
	x.hearing = newHearing(of, x.entry)
	_, err := x.attempt(ctx)
	e := Explanation{
		Kind: x.kind(), Name: x.name(), Found: x.entry != nil, Decider: x.hearing.denied, Error: err, DenyByDefault: on.DenyByDefault, Unknown: x.hearing.of.Unknown,
		ByDefault: err != nil && err.DeniedBy == ByDefault,
	}
	x.hearing.verdicts(&e, len(x.consents), err)
	if x.entry != nil {
		x.hearOut(ctx)
		for _, l := range x.entry.Limits {
			e.Limits = append(e.Limits, l.Name)
		}
	}
	e.Rulings = x.hearing.rulings
	x.hideIn(&e)
	return e
}

// hideIn takes what is sensitive out of an explanation.
func (x *execution) hideIn(e *Explanation) {
	hide := x.catalog.Sensitive
	if x.entry != nil {
		hide = hide.And(redact.NewText(x.req.Arguments, x.entry.Sensitive)).And(redact.NewText(x.input, x.entry.Sensitive)).
			And(redact.NewText(x.hearing.of.Returned, x.entry.SensitiveOutput))
	}
	hidden := func(text string) string {
		return hide.Hide(text, x.secrets())
	}
	for i := range e.Rulings {
		e.Rulings[i].Decision.Reason = hidden(e.Rulings[i].Decision.Reason)
	}
	if e.Error != nil {
		shown := *e.Error
		shown.Message = hidden(shown.Message)
		e.Error = &shown
	}
}
