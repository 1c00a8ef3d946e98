package catalog

import (
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/policylang"
)

// buildCache holds the compiled results of earlier builds. Entries that a build does not use are
// removed, so that the cache never outgrows the files.
type buildCache struct {
	env  *policylang.Env
	vars string
	// authors and operators are the defaults that items and hooks were compiled with.
	authors, operators callDefaults
	items              map[definition.Hash]*compiledItem
	hooks              map[definition.Hash]*compiledHook
	rules              compiledRules
}

// compiledItem is a compiled item with its diagnostics and the files that its script imports. An
// item with errors is still linked, so that references to it are checked in the same build. The
// errors prevent the catalog from serving.
type compiledItem struct {
	item     *Item
	problems diag.List
	imports  map[string]loader.Hash
	granted  []grant.Set // per script, with resolved paths
}

type compiledHook struct {
	hook     *Hook
	warnings diag.List
	imports  map[string]loader.Hash
	granted  grant.Set // with resolved paths
}

// ruleKey identifies a compiled policy or limit key, for given variables. A limit key that reads no
// args does not depend on an item.
type ruleKey struct {
	rule definition.Hash
	item loader.Hash
}

type compiledRules struct {
	policies map[ruleKey]*policylang.Policy
	keys     map[ruleKey]*policylang.Key
}
