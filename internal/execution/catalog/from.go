package catalog

import (
	"context"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/policylang"
)

// From is an input whose value the server takes from what it knows of the caller.
type From struct {
	Name   string
	Expr   *policylang.Expr
	Schema *schema.Schema
	// Text is the expression as it was written.
	Text diag.Text
}

// Told returns the values of the inputs that the server tells, and no caller. An
// error comes with the name of the input that has none.
func (i *Item) Told(ctx context.Context, facts policylang.Input) (values map[string]any, name string, err error) {
	if len(i.From) == 0 {
		return nil, "", nil
	}
	values = make(map[string]any, len(i.From))
	for _, input := range i.From {
		value, err := input.Expr.Eval(ctx, facts)
		if err == nil {
			err = input.Schema.Fits(value)
		}
		if err != nil {
			return nil, input.Name, err
		}
		values[input.Name] = value
	}
	return values, "", nil
}
