package hclfile

import (
	"encoding/json"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/internal/grant"
)

// presume adds to set what body, of rule r, grants in words that were reported:
// in a block outside of its place, or written wrong. It keeps what uses the
// grant from being reported too. The file has a mistake then, and does not load.
func presume(body *hclsyntax.Body, r *rule, set *grant.Set) {
	for _, b := range body.Blocks {
		if r.hasBlock(b.Type) {
			continue
		}
		switch word := r.grantWord(b.Type); {
		case word == "allow":
			presume(b.Body, &rule{}, set)
		case word == "http" && len(b.Labels) > 0:
			presumeHTTP(b.Labels[0], set)
		case word == "fs" && len(b.Labels) > 0:
			presumeFS(b.Labels[0], set)
		case word == "env":
			presumeNames(b.Body, &set.Env)
		case word == "secrets":
			presumeNames(b.Body, &set.Secrets)
		case word == "kv" && len(b.Labels) > 0:
			presumeKV(b.Labels[0], set)
		case word == "module" && len(b.Labels) > 0:
			set.Modules = append(set.Modules, grant.Module{Name: b.Labels[0], Options: json.RawMessage("{}")})
		case word == "exec" && len(b.Labels) > 0:
			presumeExec(b.Labels[0], set)
		case word == "sql" && len(b.Labels) > 0:
			presumeSQL(b.Labels[0], set)
		default:
			presumeWord(word, set)
		}
	}
	for name := range body.Attributes {
		if r.arg(name) == nil {
			presumeWord(r.grantWord(name), set)
		}
	}
}

// grantWord returns the word of a grant that was meant by one that the rule
// does not know.
func (r *rule) grantWord(written string) string {
	if slices.Contains([]string{"http", "fs", "env", "kv", "exec", "sql", "ask", "call", "module", "secrets"}, written) || slices.Contains(askNames, written) {
		return written
	}
	return r.meaning(written)
}

// presumeHTTP grants an object that reaches no host.
func presumeHTTP(name string, set *grant.Set) {
	if !slices.ContainsFunc(set.HTTP, func(h grant.HTTP) bool { return h.Name == name }) {
		set.HTTP = append(set.HTTP, grant.HTTP{Name: name})
	}
}

// presumeWord grants what a word without a name stands for.
func presumeWord(word string, set *grant.Set) {
	if word == "call" {
		set.Call = append(set.Call, "*")
	}
	presumeAsk(word, set)
}

// presumeAsk grants what an ask block would hold, or the whole of it.
func presumeAsk(word string, set *grant.Set) {
	if word != "ask" && !slices.Contains(askNames, word) {
		return
	}
	if set.Ask == nil {
		set.Ask = &grant.Ask{}
	}
	set.Ask.Elicit = set.Ask.Elicit || word == "ask" || word == grant.Elicit
	set.Ask.Sample = set.Ask.Sample || word == "ask" || word == grant.Sample
	set.Ask.Roots = set.Ask.Roots || word == "ask" || word == grant.Roots
}
