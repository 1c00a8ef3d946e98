package gofunc

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/schema"
)

// defaultTimeout bounds the running time of a function whose tool does not.
const defaultTimeout = time.Second

// Complete makes item, which says of itself what its author says, a tool that
// runs fn: with the schemas of In and Out, its body, its place and its hashes.
func Complete[In, Out any](item *catalog.Item, fn Func[identity.Agent, In, Out], w *Watchdog) error {
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
	item.Address, item.Timeout, item.AskTimeout = item.Name, cmp.Or(max(item.Timeout, 0), defaultTimeout), definition.DefaultAskTimeout
	item.Input, item.Output, item.PolicySchema = input, output, input.Raw()
	item.Body, item.Where = NewBody(fn, w), diag.Range{File: "(go) " + item.Name}
	item.Settle()
	item.Key = keyOf(item)
	return nil
}

// keyOf hashes what lists show of an item, and what policies alone see of it.
func keyOf(item *catalog.Item) [sha256.Size]byte {
	// Plain data always encodes.
	labels, _ := json.Marshal(item.Labels)
	return sha256.Sum256(append(item.Shown[:], labels...))
}
