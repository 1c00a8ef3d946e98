package catalog

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/source"
	"github.com/mcpd/mcpd/policylang"
)

// InGo is the name by which the operator knows what the embedding program has in Go: all of
// its policies together, and each of its hooks. Nothing in a file can have it.
const InGo = "(go)"

// addPolicies gives every entry its policies, in the order in which they are
// asked: the operator's, those in Go, those of tool files.
func (k *linker) addPolicies(entries []*Entry) {
	first, last := k.found.config.Policies, k.found.policies
	found, full := allot(k, k.policies, entries, len(first)+len(last), func(e *Entry) (found diag.List) {
		schemaHash := schemaHashOf(e)
		for j := range first {
			found = append(found, k.bind(e, &first[j], true, schemaHash)...)
		}
		if k.options.GoPolicies > 0 {
			e.Rules = append(e.Rules, Policy{Name: InGo})
		}
		for j := range last {
			found = append(found, k.bind(e, &last[j], false, schemaHash)...)
		}
		return found
	})
	for i := range found {
		found[i] = k.excuse(entries[i], found[i])
	}
	k.cache.policies = k.policies.all()
	if full {
		found = append(found, diag.List{{
			Code: "too-many", Range: diag.Range{File: k.options.ToolsPath},
			Summary: fmt.Sprintf("the policies that read args cover too many items: more than %d pairs of a policy and different inputs", k.maxPolicies),
			Detail:  "name in the tools of each policy only those whose args it reads",
		}})
	}
	k.found.report(slices.Concat(found...).OncePerPlace())
	k.checkIdle(slices.Concat(first, last), entries)
}

// checkIdle compiles policies that cover no item, so that their mistakes show.
func (k *linker) checkIdle(policies []hclfile.Policy, entries []*Entry) {
	for i := range policies {
		p := &policies[i]
		if !slices.ContainsFunc(entries, func(e *Entry) bool { return covers(p.Targets, e.Kind, e.Name) }) {
			k.found.report(k.found.env.CompileAny(sourceOf(p)))
		}
	}
}

// bind compiles a policy for one item that it covers, and returns what is wrong with it.
func (k *linker) bind(e *Entry, p *hclfile.Policy, operator bool, schemaHash source.Hash) diag.List {
	if !covers(p.Targets, e.Kind, e.Name) || k.policies.room() < 0 {
		return nil
	}
	if p.OnResult {
		schemaHash = sha256.Sum256(append(schemaHash[:], rawOf(e.Output)...))
	}
	key := ruleKey{p.Hash, schemaHash}
	compiled, problems := k.policies.compile(key, func() (*policylang.Policy, diag.List) {
		if known := k.cache.policies[key]; known != nil {
			return known, nil
		}
		return k.found.env.Compile(sourceOf(p), toolOf(e))
	})
	if problems.HasErrors() {
		return problems
	}
	rule := Policy{Name: p.Name, Compiled: compiled, Disclose: p.Disclose, Where: p.NameRange, Operator: operator, Allows: p.Allow != nil, Asks: p.Approval != nil}
	if p.OnResult {
		rule.ReadsContent = compiled.ReadsContent()
		e.ResultRules = append(e.ResultRules, rule)
	} else {
		e.Rules = append(e.Rules, rule)
	}
	return problems
}

// toolOf is what policies and keys of an item are compiled against.
func toolOf(e *Entry) policylang.Tool {
	return policylang.Tool{Kind: e.Kind.String(), Name: e.Name, Schema: e.PolicySchema, Result: rawOf(e.Output), Later: e.Offer.later(), Range: e.Where}
}

// schemaHashOf tells items apart that policies and keys are compiled for apart.
func schemaHashOf(e *Entry) source.Hash {
	return sha256.Sum256(fmt.Appendf(nil, "%s%q", e.PolicySchema, e.Offer.later()))
}

func sourceOf(p *hclfile.Policy) policylang.Source {
	return policylang.Source{
		Name: p.Name, OnResult: p.OnResult, When: textOf(p.When), Allow: textOf(p.Allow), Deny: textOf(p.Deny), Approval: textOf(p.Approval),
		Reason: p.Reason, ReasonExpr: textOf(p.ReasonExpr), Range: p.NameRange,
	}
}

func textOf(body *hclfile.Body) *diag.Text {
	if body == nil {
		return nil
	}
	return &body.Text
}
