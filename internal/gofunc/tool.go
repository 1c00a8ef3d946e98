package gofunc

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/schema"
)

// Complete makes a tool of an item that says what the tool is called: its schemas
// are made from In and Out, and fn is its body. A timeout of 0 is one second.
func Complete[In, Out any](item *catalog.Item, fn Func[identity.Agent, In, Out], w *Watchdog) error {
	if !hclfile.IsName(item.Name) {
		return fmt.Errorf("a name is 1 to %d letters, digits, dots, dashes and underscores", catalog.Tools.MaxAddress())
	}
	if fn == nil {
		return errors.New("the function is nil")
	}
	input, output, err := schema.ForFunc[In, Out]()
	if err != nil {
		return err
	}
	if item.Timeout <= 0 {
		item.Timeout = time.Second
	}
	item.Input, item.Output, item.PolicySchema = input, output, input.Raw()
	item.Body, item.Where = NewBody(fn, w), diag.Range{File: "(go) " + item.Name}
	item.Settle()
	return nil
}
