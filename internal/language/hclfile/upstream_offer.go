package hclfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/wildcard"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// upstreamNames decodes what of the server is offered, and by which names.
func (d *decoder) upstreamNames(b *hclsyntax.Block, u *Upstream) {
	u.Prefix = u.Name + "_"
	if prefix, ok := d.text(b.Body, "prefix"); ok {
		if prefix != "" && !IsToolName(prefix) {
			d.fail("bad-name", d.f.rng(b.Body.Attributes["prefix"].Expr.Range()), "this is not what a name begins with", "use the characters A-Z a-z 0-9 _ . - /, or \"\" for no prefix")
		}
		u.Prefix = prefix
	}
	const characters = "use the characters A-Z a-z 0-9 _ . - / and * for any run of them, in the names that the server itself uses"
	u.Include, u.Exclude = d.toolPatterns(b.Body, "include", characters), d.toolPatterns(b.Body, "exclude", characters)
	u.Offer = offerKinds
	if d.meant(b.Body, rules["upstream"], "offer") {
		u.Offer = textsOf(d.choices(b.Body, "offer", offerKinds, wrongWord{"bad-value", "%s cannot stand in \"offer\"", "write some of"}))
	}
	u.Instructions, _ = d.boolean(b.Body, "instructions", false)
	u.Escape = d.escapes(b.Body)
	u.Rename = d.textMap(b.Body, "rename")
	entries := d.entries(b.Body, "rename")
	u.renamed = make(map[string]diag.Range, len(entries))
	given := map[string]string{}
	for _, from := range slices.Sorted(maps.Keys(u.Rename)) {
		to, where := u.Rename[from], cmp.Or(entries[from], d.f.rng(b.Body.Attributes["rename"].Expr.Range()))
		u.renamed[to] = where
		switch first, twice := given[to]; {
		case !IsToolName(to):
			d.fail("bad-name", where, fmt.Sprintf("%q gets a name that no tool can have", clip(from)), fmt.Sprintf("use 1 to %d of the characters A-Z a-z 0-9 _ . - /", maxPatternName))
		case twice:
			d.fail("bad-name", where, fmt.Sprintf("%q and %q get the same name", clip(first), clip(from)), "give each a name of its own")
		}
		given[to] = from
	}
	taken := named{}
	for _, inner := range blocks(b.Body, rules["upstream"]) {
		if inner.Type == "override" && d.claim(taken, inner) {
			u.Overrides = append(u.Overrides, d.override(inner))
		}
	}
}

// escapes decodes what is offered although it holds invisible characters.
func (d *decoder) escapes(body *hclsyntax.Body) []string {
	list, ok := d.strings(body, "escape")
	if ok && len(list) == 0 {
		d.fail("bad-value", d.f.rng(body.Attributes["escape"].Expr.Range()), "the list \"escape\" is empty", "name URIs of resources, names of prompts, or patterns of them, or remove it")
	}
	taken := named{}
	for _, e := range list {
		if e.text == "" {
			d.fail("bad-name", d.f.rng(e.where), "this is the name of nothing", "write a URI, the name of a prompt, \"instructions\", or a pattern such as \"docs://*\"")
		} else {
			d.claimName(taken, e.text, e.where, "%q stands twice in \"escape\"", e.text)
		}
	}
	return textsOf(list)
}

// IsToolName reports whether a tool or a prompt may have the name here that a server
// offers: 1 to 128 letters, digits, dots, dashes, underscores and slashes.
func IsToolName(s string) bool { return isPattern(s) && !wildcard.Is(s) }

// override decodes what is said of a tool in the place of its server.
func (d *decoder) override(b *hclsyntax.Block) Override {
	d.checkBody(b)
	o := Override{Tool: b.Labels[0], Range: d.f.rng(b.DefRange())}
	for name, to := range map[string]**string{"title": &o.Title, "description": &o.Description} {
		if text, ok := d.text(b.Body, name); ok {
			*to = &text
		}
	}
	o.ReadOnly, o.Destructive = d.flag(b.Body, "read_only"), d.flag(b.Body, "destructive")
	o.Idempotent, o.OpenWorld = d.flag(b.Body, "idempotent"), d.flag(b.Body, "open_world")
	o.Labels = d.textMap(b.Body, "labels")
	o.Bounds = d.boundsAway(b)
	o.Cache = d.overrideCache(b, &o)
	if len(b.Body.Attributes)+len(b.Body.Blocks) == 0 {
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the block says nothing of the tool", "write a description, read_only, a timeout or another of its arguments, or remove it")
	}
	return o
}

// upstreamAsk decodes what the server may ask of the clients of its calls: nothing
// unless the block says so.
func (d *decoder) upstreamAsk(b *hclsyntax.Block, u *Upstream) {
	for _, word := range d.choices(b.Body, "ask", askNames, wrongWord{"bad-value", "%s cannot stand in \"ask\"", "write some of"}) {
		switch word.text {
		case grant.Elicit:
			u.Ask.Elicit = true
		case grant.Sample:
			u.Ask.Sample = true
		case grant.Roots:
			u.Ask.Roots = true
		}
	}
	u.Ask.MaxRounds, _ = d.whole(b.Body, "max_rounds", 1, maxAskRounds)
	u.Ask.MaxTokens, _ = d.whole(b.Body, "max_tokens", 1, maxAskTokens)
	if attr := b.Body.Attributes["max_tokens"]; attr != nil && !u.Ask.Sample && !d.meant(b.Body, rules["upstream"], "ask") {
		d.fail("contradiction", d.f.rng(attr.NameRange), "\"max_tokens\" bounds samples, which the server may not ask for", "write ask = [\"sample\"], or remove it")
	}
}
