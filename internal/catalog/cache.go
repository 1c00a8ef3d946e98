package catalog

import (
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/source"
	"github.com/mcpd/mcpd/policylang"
)

// cache holds what earlier builds compiled. Entries that a build does not use
// are dropped, so that the cache never outgrows the files.
type cache struct {
	env      *policylang.Env
	vars     string
	items    map[hclfile.Hash]*compiledItem
	hooks    map[hclfile.Hash]*compiledHook
	policies map[policyKey]*policylang.Policy
}

// compiledItem is an item, what is wrong with it, and the files that its body
// imports. An item with mistakes is still linked, so that what others say of it
// is checked in the same build; the mistakes keep the catalog from serving.
type compiledItem struct {
	item     *Item
	problems diag.List
	imports  map[string]source.Hash
}

type compiledHook struct {
	hook     *Hook
	warnings diag.List
	imports  map[string]source.Hash
}

// policyKey is all that a compiled policy depends on beside the variables.
type policyKey struct {
	policy hclfile.Hash
	item   source.Hash
}
