package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/ops/control"
)

// answerConsole answers an action of the console; ok is false for any other action.
func (o *runningServer) answerConsole(ctx context.Context, r control.Request) (row any, ok bool, err error) {
	switch r.Action {
	case control.Catalog:
		return catalogResultOf(o.server), true, nil
	case control.Item:
		row, err = withParams(r, func(of control.ItemName) (any, error) { return itemResultOf(o.server, of) })
	case control.Explain:
		row, err = withParams(r, func(of control.ExplainCall) (any, error) { return o.explain(ctx, of) })
	case control.Matrix:
		row, err = withParams(r, func(of control.MatrixQuery) (any, error) { return o.matrix(ctx, of) })
	case control.Try:
		row, err = o.try(r)
	case control.Complete:
		row, err = withParams(r, func(of control.CompleteQuery) (any, error) { return o.complete(ctx, of) })
	case control.Calls:
		row, err = withParams(r, func(of control.CallQuery) (any, error) { return o.watchCalls(of) })
	case control.Audit:
		row, err = withParams(r, func(of control.CallQuery) (any, error) { return o.auditedCalls(ctx, of) })
	case control.PolicyFiles:
		row, err = withParams(r, func(of control.PolicyFile) (any, error) { return o.policyFiles(of) })
	case control.Replay:
		row, err = withParams(r, func(of control.PolicyEdit) (any, error) { return o.replay(ctx, of) })
	case control.Limits:
		row = o.limitUses(ctx)
	case control.Pins:
		row = o.pins()
	case control.Accept:
		row, err = withParams(r, func(of control.PinName) (any, error) { return o.accept(ctx, of) })
	case control.Keys:
		row, err = o.keys()
	case control.RevokeKey:
		row, err = withParams(r, func(of control.KeyName) (any, error) { return o.revokeKey(ctx, of) })
	case control.Tasks:
		row, err = o.tasks()
	case control.CancelTask:
		row, err = withParams(r, func(of control.TaskName) (any, error) { return o.cancelTask(ctx, of) })
	default:
		return nil, false, nil
	}
	return row, true, err
}

// withParams decodes the parameters of a request and answers it with them.
func withParams[P any](r control.Request, answer func(P) (any, error)) (any, error) {
	var params P
	if err := r.DecodeParams(&params); err != nil {
		return nil, err
	}
	return answer(params)
}

// catalogResultOf lists the items that a server serves: tools, resources, templates and prompts, each in
// order of their addresses.
func catalogResultOf(s *engine.Server) control.CatalogResult {
	serving := s.Inside().Catalog()
	row := control.CatalogResult{Revision: serving.Revision, Items: []control.ItemSummary{}}
	for kind, entries := range serving.Entries {
		for _, e := range entries {
			row.Items = append(row.Items, itemSummaryOf(call.Kind(kind), e.Address, e.Upstream, e.Where, e.Title, e.Description))
		}
	}
	return row
}

// itemSummaryOf describes an item in a list. where is its range in the files, if it has one.
func itemSummaryOf(kind call.Kind, address, upstream string, where diag.Range, title string, description *string) control.ItemSummary {
	row := control.ItemSummary{ItemName: control.ItemName{Kind: kindNames()[kind], Address: address}, Title: title, Origin: "file", Place: placeIn(where)}
	if description != nil {
		row.Summary = summaryOf(*description)
	}
	switch {
	case upstream != "":
		row.Origin = upstream
	case where.File == "":
		row.Origin = "go"
	}
	return row
}

// placeIn returns the start of a range; nil if it is unknown.
func placeIn(r diag.Range) *control.Place {
	if r.File == "" {
		return nil
	}
	place := placeOf(r)
	return &place
}

// kindOf returns the kind of an item.
func kindOf(of control.ItemName) (call.Kind, error) {
	kind := slices.Index(kindNames(), of.Kind)
	if kind < 0 {
		return 0, fmt.Errorf("the kind of an item is tool, resource, template or prompt, not %.40q", of.Kind)
	}
	return call.Kind(kind), nil
}

// itemResultOf describes an item that a server serves.
func itemResultOf(s *engine.Server, of control.ItemName) (any, error) {
	kind, err := kindOf(of)
	if err != nil {
		return nil, err
	}
	serving := s.Inside().Catalog()
	e := serving.Entry(kind, of.Address)
	if e == nil {
		return nil, fmt.Errorf("the server has no %s %.200q", of.Kind, of.Address)
	}
	row := control.ItemResult{ItemSummary: itemSummaryOf(kind, e.Address, e.Upstream, e.Where, e.Title, e.Description), Policies: []control.Policy{}, Limits: []string{}}
	if e.Description != nil {
		row.Description = *e.Description
	}
	if e.Input != nil {
		row.Input = e.Input.Raw()
	}
	if e.Output != nil {
		row.Output = e.Output.Raw()
	}
	if e.Offer != nil {
		row.Annotations = e.Offer.Annotations
		for _, a := range e.Offer.Arguments {
			completes, _ := e.Offer.Completion(a.Name)
			row.Arguments = append(row.Arguments, control.Argument{Name: a.Name, Description: a.Description, Required: a.Required, Completes: completes != nil})
		}
	} else {
		row.Annotations = annotationsOf(e.ReadOnly, e.Destructive, e.OpenWorld, e.Idempotent)
	}
	for _, p := range slices.Concat(e.Rules, e.ResultRules) {
		row.Policies = append(row.Policies, control.Policy{Name: p.Name, Place: placeIn(p.Where)})
	}
	if e.Timeout > 0 {
		row.Limits = append(row.Limits, "timeout "+e.Timeout.String())
	}
	if e.Bounds.Memory > 0 {
		row.Limits = append(row.Limits, "memory "+grant.SizeFact("", "", e.Bounds.Memory).Value)
	}
	if e.Bounds.Output > 0 {
		row.Limits = append(row.Limits, "output "+grant.SizeFact("", "", int64(e.Bounds.Output)).Value)
	}
	for _, l := range e.Limits {
		row.Limits = append(row.Limits, limitText(l.Name, l.Rate.Calls, l.Rate.String(), l.Burst, l.Concurrency))
	}
	if e.Where.File != "" {
		row.Source, row.Grants = serving.Source(e.Where), serving.Definitions.Grants(e.Where)
	}
	return row, nil
}

// annotationsOf returns the annotations of a tool as MCP names them; nil if there are none.
func annotationsOf(readOnly, destructive, openWorld *bool, idempotent bool) json.RawMessage {
	set := map[string]bool{}
	for name, value := range map[string]*bool{"readOnlyHint": readOnly, "destructiveHint": destructive, "openWorldHint": openWorld} {
		if value != nil {
			set[name] = *value
		}
	}
	if idempotent {
		set["idempotentHint"] = true
	}
	if len(set) == 0 {
		return nil
	}
	encoded, err := json.Marshal(set)
	if err != nil {
		return nil // cannot happen: names and booleans
	}
	return encoded
}

// limitText describes a limit in words.
func limitText(name string, rated int, rate string, burst, concurrency int) string {
	text := "limit " + strconv.Quote(name) + ":"
	if rated > 0 {
		text += fmt.Sprintf(" %s, %d at once after a pause", rate, burst)
	}
	if concurrency > 0 {
		if rated > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %d running", concurrency)
	}
	return text
}
