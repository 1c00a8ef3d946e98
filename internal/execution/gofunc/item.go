package gofunc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/host/gomodule"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/scripting"
)

// defaultTimeout is the timeout of a tool that sets none.
const defaultTimeout = time.Second

// DefineTool completes item, which has the metadata, as a tool that runs fn: it sets the schemas of
// In and Out, the handler, the address and the hashes.
func DefineTool[In, Out any](item *catalog.Item, fn Func[identity.Agent, In, Out], w *Watchdog) error {
	if !definition.IsName(item.Name) {
		return fmt.Errorf("a name is 1 to %d letters, digits, dots, dashes and underscores", catalog.MaxAddress(catalog.Tools))
	}
	if fn == nil {
		return errors.New("the function is nil")
	}
	input, output, err := schema.ForFunc[In, Out]()
	if err != nil {
		return err
	}
	if isText[Out]() {
		output = nil
	}
	item.Address, item.Timeout, item.AskTimeout = item.Name, cmp.Or(max(item.Timeout, 0), defaultTimeout), definition.DefaultAskTimeout
	item.Input, item.Output, item.PolicySchema = input, output, input.Raw()
	item.Handler, item.Where = NewHandler(fn, w), diag.Range{File: "(go) " + item.Name}
	item.Finalize()
	item.Key = keyOf(item)
	return nil
}

// keyOf hashes the fields that lists show, and the labels.
func keyOf(item *catalog.Item) [sha256.Size]byte {
	// Plain data always encodes.
	labels, _ := json.Marshal(item.Labels)
	return sha256.Sum256(append(item.ListHash[:], labels...))
}

// NewFunction returns a function of a module that runs fn. The arguments of a script must match the
// schema of In, which must be a struct; otherwise the call is rejected and fn does not run.
func NewFunction[In, Out any](name string, fn Func[gomodule.CallInfo, In, Out]) gomodule.Function {
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
	f.Run = func(ctx context.Context, call gomodule.CallInfo, arguments json.RawMessage) (json.RawMessage, error) {
		args, violations := input.Decode(arguments, nil)
		if len(violations) > 0 {
			return nil, invalidArguments(violations...)
		}
		in, err := decoder.Decode(args.Value, args.Text)
		if wrong, ok := errors.AsType[*DecodeError](err); ok {
			return nil, invalidArguments(schema.Violation{Path: wrong.Path, Message: wrong.Reason()})
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

func invalidArguments(violations ...schema.Violation) error {
	return &scripting.HostError{Code: scripting.Invalid, Message: "the arguments do not fit: " + schema.FormatViolations(violations)}
}
