package catalog

import (
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/policylang"
)

// buildCache holds what earlier builds compiled. Entries that a build does not use
// are dropped, so that the cache never outgrows the files.
type buildCache struct {
	env  *policylang.Env
	vars string
	// authors and operators are the bounds that items and hooks were compiled with.
	authors, operators callDefaults
	items              map[definition.Hash]*compiledItem
	hooks              map[definition.Hash]*compiledHook
	rules              compiledRules
}

// compiledItem is an item, what is wrong with it, and the files that its body
// imports. An item with mistakes is still linked, so that what others say of it
// is checked in the same build; the mistakes keep the catalog from serving.
type compiledItem struct {
	item     *Item
	problems diag.List
	imports  map[string]loader.Hash
	granted  []grant.Set // of each body, with the places that its paths led to
}

type compiledHook struct {
	hook     *Hook
	warnings diag.List
	imports  map[string]loader.Hash
	granted  grant.Set // with the places that its paths led to
}

// ruleKey is all that a compiled policy, or the compiled key of a limit, depends
// on beside the variables. The key of a limit that reads no args depends on no item.
type ruleKey struct {
	rule definition.Hash
	item loader.Hash
}

type compiledRules struct {
	policies map[ruleKey]*policylang.Policy
	keys     map[ruleKey]*policylang.Key
}
