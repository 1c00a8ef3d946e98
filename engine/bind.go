package engine

import (
	"crypto/sha256"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/source"
	"github.com/mcpd/mcpd/policylang"
)

// policyKey is all that a compiled policy depends on beside the variables.
type policyKey struct {
	policy hclfile.Hash
	tool   source.Hash
}

// bindPolicies gives every tool its policies, in the order in which they are
// asked: the operator's, those in Go, those of tool files.
func (k *linker) bindPolicies() {
	first, last := k.found.config.Policies, k.found.policies
	used := make([]map[policyKey]*policylang.Policy, len(k.snap.order))
	found := make([]diag.List, len(k.snap.order))
	source.Parallel(len(k.snap.order), func(i int) {
		e := k.snap.order[i]
		used[i] = map[policyKey]*policylang.Policy{}
		schemaHash := sha256.Sum256(e.tool.policySchema)
		for j := range first {
			found[i] = append(found[i], k.bind(e, &first[j], schemaHash, used[i])...)
		}
		for _, p := range k.goPolicies {
			e.policies = append(e.policies, boundPolicy{name: "(go)", goPolicy: p})
		}
		for j := range last {
			found[i] = append(found[i], k.bind(e, &last[j], schemaHash, used[i])...)
		}
	})
	cache := map[policyKey]*policylang.Policy{}
	for _, of := range used {
		for key, compiled := range of {
			cache[key] = compiled
		}
	}
	k.loader.cache.policies = cache
	k.found.report(slices.Concat(found...).OncePerPlace())
	for _, p := range slices.Concat(first, last) {
		if !slices.ContainsFunc(k.names, func(name string) bool { return hclfile.Covers(p.Tools, name) }) {
			k.found.report(k.found.env.CompileAny(policySource(&p)))
		}
	}
}

// bind compiles a policy for one tool that it covers, and returns what is wrong with it.
func (k *linker) bind(e *entry, p *hclfile.Policy, schemaHash source.Hash, used map[policyKey]*policylang.Policy) diag.List {
	if !hclfile.Covers(p.Tools, e.tool.metadata.Name) {
		return nil
	}
	key := policyKey{p.Hash, schemaHash}
	compiled := k.loader.cache.policies[key]
	var problems diag.List
	if compiled == nil {
		compiled, problems = k.found.env.Compile(policySource(p), policylang.Tool{
			Name: e.tool.metadata.Name, Schema: e.tool.policySchema, Range: e.tool.where,
		})
	}
	if problems.HasErrors() {
		return problems
	}
	// What has warnings is compiled again by the next load, so that they are told again.
	if len(problems) == 0 {
		used[key] = compiled
	}
	e.policies = append(e.policies, boundPolicy{
		name: p.Name, compiled: compiled, disclose: p.Disclose, allows: p.Allow != nil, where: p.NameRange,
	})
	return problems
}

func policySource(p *hclfile.Policy) policylang.Source {
	return policylang.Source{
		Name: p.Name, When: textOf(p.When), Allow: textOf(p.Allow), Deny: textOf(p.Deny),
		Reason: p.Reason, ReasonExpr: textOf(p.ReasonExpr), Range: p.NameRange,
	}
}

func textOf(body *hclfile.Body) *diag.Text {
	if body == nil {
		return nil
	}
	return &body.Text
}
