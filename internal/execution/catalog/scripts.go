package catalog

import (
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/policylang"
	"github.com/mcpd/mcpd/scripting"
)

// Script is a script of an item.
type Script struct {
	Kind Kind
	// Name is the address of the item.
	Name    string
	Program *scripting.Program
}

// Scripts returns the scripts of all items in the files: those that run in a call, and those that
// complete arguments. Scripts of hooks are not among them.
func (c *Catalog) Scripts() []Script {
	var all []Script
	for k := range c.Entries {
		for _, e := range c.Entries[k] {
			handlers := []Handler{e.Handler}
			if e.Offer != nil {
				for i := range e.Offer.Arguments {
					handlers = append(handlers, e.Offer.Arguments[i].completion)
				}
			}
			for _, h := range handlers {
				if p := scriptOf(h); p != nil {
					all = append(all, Script{e.Kind, e.Address, p})
				}
			}
		}
	}
	return all
}

// scriptOf returns the script that a handler runs; nil if it runs none.
func scriptOf(h Handler) *scripting.Program {
	switch h := h.(type) {
	case *scriptHandler:
		return h.program
	case *cachedHandler:
		return scriptOf(h.Handler)
	case *replyHandler:
		return scriptOf(h.Handler)
	}
	return nil
}

// PolicyBlock is a policy block in the files.
type PolicyBlock struct {
	Name  string
	Where diag.Range
	// Purpose is the decision that the policy is written for.
	Purpose policylang.Outcome
}

// PolicyBlocks returns the policy blocks in the files, first from mcpd.hcl.
func (c *Catalog) PolicyBlocks() []PolicyBlock {
	var all []PolicyBlock
	add := func(policies []definition.Policy) {
		for i := range policies {
			p := PolicyBlock{Name: policies[i].Name, Where: policies[i].NameRange}
			switch {
			case policies[i].Allow != nil:
				p.Purpose = policylang.Allow
			case policies[i].Approval != nil:
				p.Purpose = policylang.NeedsApproval
			}
			all = append(all, p)
		}
	}
	if config := c.Definitions.Config; config != nil {
		add(config.Policies)
	}
	for _, file := range c.Definitions.Files {
		add(file.Policies)
	}
	return all
}
