package gofunc

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpd/mcpd/internal/host/gomodule"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/scripting"
)

// NewFunction returns a function of a module that runs fn. What a script passes
// must fit the schema of In, which must be a struct; what does not is refused, and
// fn not run.
func NewFunction[In, Out any](name string, fn Func[gomodule.Call, In, Out]) gomodule.Function {
	f := gomodule.Function{Name: name}
	input, _, err := schema.ForFunc[In, Out]()
	switch {
	case fn == nil:
		f.Err = errors.New("the function is nil")
	case err != nil:
		f.Err = err
	}
	if f.Err != nil {
		return f
	}
	decoder := NewDecoder[In]()
	f.Run = func(ctx context.Context, call gomodule.Call, arguments json.RawMessage) (json.RawMessage, error) {
		args, text, violations := input.Args(arguments, nil)
		if len(violations) > 0 {
			return nil, unfit(violations...)
		}
		in, err := decoder.Decode(args, text)
		if wrong, ok := errors.AsType[*InputError](err); ok {
			return nil, unfit(schema.Violation{Path: wrong.Path, Message: wrong.Reason()})
		}
		if err != nil {
			return nil, err
		}
		out, err := fn(ctx, call, in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
	return f
}

// unfit refuses arguments.
func unfit(violations ...schema.Violation) error {
	return &scripting.HostError{Code: scripting.Invalid, Message: "the arguments do not fit: " + schema.Sentence(violations)}
}
