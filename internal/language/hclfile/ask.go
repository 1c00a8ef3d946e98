package hclfile

import (
	"fmt"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Bounds of an ask grant.
const (
	maxAskRounds = 100
	maxAskTokens = 1 << 20
)

// askNames are what an ask grant may give, and what a ceiling may name.
var askNames = []string{grant.Elicit, grant.Sample, grant.Roots}

// ask decodes an ask block. It notes the places of the block as "ask", and of
// what it grants as "ask.elicit" and so on.
func (d *decoder) ask(b *hclsyntax.Block, ranges map[string]diag.Range) *grant.Ask {
	r := rules["ask"]
	d.checkBody(b)
	body := d.literalOnly(b.Body, r)
	ranges["ask"] = d.f.rng(b.DefRange())
	a := &grant.Ask{}
	reported := false
	for name, granted := range map[string]*bool{grant.Elicit: &a.Elicit, grant.Sample: &a.Sample, grant.Roots: &a.Roots} {
		attr := b.Body.Attributes[name]
		if attr == nil {
			*granted = d.meant(b.Body, r, name) // it is reported, and what uses it need not be
			reported = reported || *granted
			continue
		}
		ranges["ask."+name] = d.f.rng(attr.SrcRange)
		ok := false
		*granted, ok = d.boolean(body, name, true)
		reported = reported || !ok
	}
	a.MaxRounds, _ = d.whole(body, "max_rounds", 1, maxAskRounds)
	a.MaxTokens, _ = d.whole(body, "max_tokens", 1, maxAskTokens)
	if attr := b.Body.Attributes["max_tokens"]; attr != nil && !a.Sample && !reported {
		d.fail("contradiction", d.f.rng(attr.NameRange), "\"max_tokens\" bounds samples, which are not granted", "write sample = true, or remove it")
	}
	if a.Names() == nil && !reported {
		d.fail("bad-grant", d.f.rng(b.DefRange()), "the block grants nothing to ask", "write elicit = true, sample = true or roots = true")
	}
	return a
}

// task decodes whether a tool runs as a task, from when on, and how long its
// result is kept.
func (d *decoder) task(b *hclsyntax.Block, t *Tool) {
	t.Task, _ = d.oneOf(b.Body, "task", TaskOptional, TaskRequired)
	for _, name := range []string{"task_ttl", "ask_first"} {
		if attr := b.Body.Attributes[name]; attr != nil && b.Body.Attributes["task"] == nil {
			d.fail("contradiction", d.f.rng(attr.NameRange), fmt.Sprintf("the tool has %q, and runs as no task", name), "write task = \"optional\" or task = \"required\", or remove it")
		}
	}
	if t.Task == "" {
		return
	}
	t.TaskTTL = d.duration(b.Body, "task_ttl", DefaultTaskTTL)
	if attr := b.Body.Attributes["timeout"]; attr != nil && t.Timeout > t.TaskTTL {
		d.fail("contradiction", d.f.rng(attr.Expr.Range()), "the tool may run for longer than its task is kept",
			"raise \"task_ttl\", which is 1h unless it says otherwise, or lower \"timeout\"")
	}
	t.AskFirst, _ = d.boolean(b.Body, "ask_first", false)
	if t.AskFirst && t.Grant.Ask == nil {
		d.fail("contradiction", d.f.rng(b.Body.Attributes["ask_first"].NameRange), "the tool has \"ask_first\", and may ask nobody", "grant it an allow { ask } block, or remove it")
	}
}
