package catalog

import (
	"slices"

	"github.com/mcpd/mcpd/internal/language/definition"
)

// TargetOf returns what a test is of: the name of a tool or a prompt, a URI, or
// the template of one.
func TargetOf(test *definition.Test) (k Kind, target string) {
	switch {
	case test.Resource != "" && test.Complete != "":
		return Templates, test.Resource
	case test.Resource != "":
		return Resources, test.Resource
	case test.Prompt != "":
		return Prompts, test.Prompt
	}
	return Tools, test.Tool
}

// Tested reports whether the catalog, which may be nil, has been served with the test i of
// next, and with the same item and policies under it: nothing that the test could tell has
// changed.
func (c *Catalog) Tested(next *Catalog, i int) bool {
	if c == nil || !c.Reload.RequireTests {
		return false
	}
	before := slices.IndexFunc(c.Tests, func(t definition.Test) bool { return t.Hash == next.Tests[i].Hash })
	if before < 0 {
		return false
	}
	onOld, oldTest, err := c.Staged(before)
	onNow, nowTest, errNow := next.Staged(i)
	if err != nil || errNow != nil || onOld.DenyByDefault != onNow.DenyByDefault || oldTest.Hash != nowTest.Hash {
		return false
	}
	old, now := onOld.entryOf(oldTest), onNow.entryOf(nowTest)
	return old != nil && now != nil && old.Item == now.Item &&
		same(old.Rules, now.Rules) && same(old.ResultRules, now.ResultRules)
}

// entryOf returns what a test is of, nil when it is not there.
func (c *Catalog) entryOf(test *definition.Test) *Entry {
	k, target := TargetOf(test)
	if k != Resources {
		return c.Entry(k, target)
	}
	e, _ := c.Read(target)
	return e
}

// same reports whether two lists hold the same policies.
func same(a, b []Policy) bool {
	return slices.EqualFunc(a, b, func(a, b Policy) bool { return a.Compiled == b.Compiled })
}
