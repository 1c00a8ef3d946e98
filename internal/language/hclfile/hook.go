package hclfile

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// hook decodes a hook block.
func (d *decoder) hook(b *hclsyntax.Block) Hook {
	at, nameAt := d.definition(b, "the hook")
	h := Hook{
		Name: b.Labels[0], Range: at, NameRange: nameAt,
		On: d.events(b.Body), Targets: d.targets(b.Body, rules["hook"]),
		Timeout: d.duration(b.Body, "timeout", DefaultHookTimeout),
	}
	if attr := b.Body.Attributes["timeout"]; attr != nil {
		h.TimeoutRange = d.f.rng(attr.Expr.Range())
	}
	if allow := first(b.Body, "allow"); allow != nil {
		h.Grant, h.GrantRanges = d.allow(allow)
		if where, asks := h.GrantRanges["ask"]; asks {
			d.fail("bad-grant", where, "a hook has nobody to ask", "remove it: the call that a hook is told of does not wait for it")
		}
		d.callerless(h.Grant, h.GrantRanges)
	}
	if run := d.run(b); run != nil {
		h.Run = *run
	}
	h.Hashes = d.hashes()
	return h
}

func (d *decoder) events(body *hclsyntax.Body) []string {
	if list, ok := d.strings(body, "on"); ok && len(list) == 0 {
		d.fail("bad-value", d.f.rng(body.Attributes["on"].Expr.Range()), "the hook waits for nothing", "name some of \"start\", \"end\" and \"error\"")
	}
	return textsOf(d.choices(body, "on", []string{OnStart, OnEnd, OnError}, wrongWord{"bad-value", "there is no event %s", "the events are"}))
}
