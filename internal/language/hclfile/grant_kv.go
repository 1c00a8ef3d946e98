package hclfile

import (
	"cmp"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// What a kv grant gives unless it says otherwise, and at most.
const (
	defaultKeys  = 1000
	maxKeys      = 100_000
	defaultKept  = 64 << 10
	maxKept      = 1 << 20
	defaultStore = 10 << 20
	maxStore     = 256 << 20
	maxKeep      = 365 * 24 * time.Hour
	// defaultSession is how long a session's values are kept: nobody comes back
	// for them once the session has ended.
	defaultSession = 24 * time.Hour
)

// kv decodes a kv block. It notes the place of its scope as "kv.NAME.scope",
// which is that of the block where none is written.
func (d *decoder) kv(b *hclsyntax.Block, ranges map[string]diag.Range) grant.KV {
	r := rules["kv"]
	d.checkBody(b)
	body := d.literalOnly(b.Body, r)
	g := grant.KV{Name: b.Labels[0], Scope: grant.ScopeTool}
	scoped := "kv." + g.Name + ".scope"
	ranges[scoped] = d.f.rng(b.DefRange())
	if attr := b.Body.Attributes["scope"]; attr != nil {
		ranges[scoped] = d.f.rng(attr.Expr.Range())
	}
	if scope, ok := d.oneOf(body, "scope", grant.Scopes()...); ok {
		g.Scope = scope
	}
	g.TTL = d.durationWithin(body, "ttl", 0, maxKeep)
	if g.TTL == 0 && g.Scope == grant.ScopeSession {
		g.TTL = defaultSession
	}
	keys, _ := d.whole(body, "max_keys", 1, maxKeys)
	g.MaxKeys = cmp.Or(keys, defaultKeys)
	g.MaxValue = cmp.Or(d.size(body, "max_value", maxKept), defaultKept)
	g.MaxTotal = cmp.Or(d.size(body, "max_total", maxStore), defaultStore)
	if attr := body.Attributes["max_value"]; attr != nil && g.MaxValue > g.MaxTotal {
		d.fail("contradiction", d.f.rng(attr.Expr.Range()), "one value may be larger than all of them together",
			"raise \"max_total\", which is 10MiB unless it says otherwise, or lower \"max_value\"")
	}
	return g
}

// callerless reports grants that need a caller, where there is none.
func (d *decoder) callerless(set grant.Set, ranges map[string]diag.Range) {
	for _, g := range set.KV {
		if g.Scope == grant.ScopePrincipal || g.Scope == grant.ScopeSession {
			d.fail("bad-grant", ranges["kv."+g.Name+".scope"], fmt.Sprintf("a hook runs for no caller, so it keeps no values in the scope %q", g.Scope),
				"write scope = \"tool\" for values of the hook alone, or scope = \"server\" for values that it shares")
		}
	}
	if where, written := ranges["call"]; written {
		d.fail("bad-grant", where, "a hook runs for no caller, so it can call no tools", "remove the block, and do in the hook what the tool would do")
	}
}
