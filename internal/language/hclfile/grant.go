package hclfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// allow decodes an allow block. ranges maps each object to its block.
func (d *decoder) allow(b *hclsyntax.Block) (set grant.Set, ranges map[string]diag.Range) {
	d.checkBody(b)
	taken := declaredNames{}
	ranges = map[string]diag.Range{}
	for _, inner := range blocks(b.Body, rules["allow"]) {
		if len(inner.Labels) > 0 {
			d.declareName(taken, inner.Type+"."+inner.Labels[0], inner.LabelRanges[0], "there is a second "+inner.Type+" %q", inner.Labels[0])
			d.checkIdentifier("the grant", inner.Labels[0], inner.LabelRanges[0])
			ranges[inner.Type+"."+inner.Labels[0]] = d.f.rng(inner.DefRange())
		}
		switch inner.Type {
		case "ask":
			set.Ask = d.ask(inner, ranges)
		case "env":
			set.Env = d.env(inner, ranges)
		case "call":
			set.Call = d.tools(inner, ranges)
		case "secrets":
			set.Secrets = d.secretGrants(inner, ranges)
		case "http":
			set.HTTP = append(set.HTTP, d.http(inner, ranges))
		case "fs":
			set.FS = append(set.FS, d.fs(inner, ranges))
		case "kv":
			set.KV = append(set.KV, d.kv(inner, ranges))
		case "module":
			set.Modules = append(set.Modules, d.module(inner, ranges))
		case "exec":
			set.Exec = append(set.Exec, d.exec(inner, ranges))
		case "sql":
			set.SQL = append(set.SQL, d.sql(inner, ranges))
		}
	}
	return set, ranges
}

// grantBody checks a block of a grant, and returns its body like requireLiteral.
func (d *decoder) grantBody(b *hclsyntax.Block) *hclsyntax.Body {
	d.checkBody(b)
	return d.requireLiteral(b.Body, rules[b.Type])
}

// requireLiteral reports each computed argument of a grant, and returns the body without them:
// a reader of the file must see what it grants.
func (d *decoder) requireLiteral(body *hclsyntax.Body, r *rule) *hclsyntax.Body {
	literal := *body
	literal.Attributes = maps.Clone(body.Attributes)
	for _, a := range r.args {
		if attr := body.Attributes[a.name]; attr != nil && d.reportComputed(attr) {
			delete(literal.Attributes, a.name)
		}
	}
	return &literal
}

// reportComputed reports a computed argument of a grant, and returns whether it is computed.
func (d *decoder) reportComputed(attr *hclsyntax.Attribute) bool {
	x := computedPart(attr.Expr)
	if x != nil {
		d.fail("computed-grant", d.f.rng(x.Range()), fmt.Sprintf("%q of a grant cannot be computed", attr.Name),
			"write the values literally, so that the file shows the grant")
	}
	return x != nil
}

// computedPart returns the first computed part of x, or nil.
func computedPart(x hclsyntax.Expression) hclsyntax.Expression {
	var parts []hclsyntax.Expression
	switch x := x.(type) {
	case *hclsyntax.LiteralValueExpr:
		return nil
	case *hclsyntax.TemplateExpr:
		parts = x.Parts
	case *hclsyntax.TupleConsExpr:
		parts = x.Exprs
	case *hclsyntax.ObjectConsExpr:
		for _, item := range x.Items {
			parts = append(parts, item.KeyExpr, item.ValueExpr)
		}
	case *hclsyntax.ObjectConsKeyExpr:
		if x.ForceNonLiteral || hcl.ExprAsKeyword(x.Wrapped) == "" {
			parts = append(parts, x.Wrapped)
		}
	case *hclsyntax.UnaryOpExpr:
		parts = append(parts, x.Val)
	default:
		return x
	}
	for _, part := range parts {
		if computed := computedPart(part); computed != nil {
			return computed
		}
	}
	return nil
}

// grantList decodes a list of a grant. An empty list is an error: its author may expect that it
// grants nothing, but without a list, the default applies.
func (d *decoder) grantList(body *hclsyntax.Body, name, whenEmpty string) []stringItem {
	list, ok := d.stringList(body, name)
	if ok && len(list) == 0 {
		d.fail("bad-grant", d.f.rng(body.Attributes[name].Expr.Range()), "the list of "+name+" is empty", whenEmpty)
	}
	return list
}

// env decodes an env block. It sets the range of the block as "env", and of each name as
// "env.NAME".
func (d *decoder) env(b *hclsyntax.Block, ranges map[string]diag.Range) []string {
	return d.grantNames(b, ranges, "name at least one variable of the environment, such as \"LANG\"", func(e stringItem) bool {
		switch {
		case strings.Contains(e.text, "*"):
			d.fail("bad-grant", d.f.rng(e.where), "a grant must name each environment variable", "write the full names")
		case !isIdentifier(e.text):
			d.fail("bad-grant", d.f.rng(e.where), d.eval.show(e.text)+" is not a valid variable name", "use letters, digits and _, and no digit first, such as \"LANG\"")
		case strings.HasPrefix(strings.ToLower(e.text), strings.ToLower(envPrefix)):
			d.fail("bad-grant", d.f.rng(e.where), e.text+" sets the value of a variable block", "read it as vars.NAME")
		default:
			return true
		}
		return false
	})
}

// grantNames decodes a block of a grant with a list of names. accept reports an invalid name
// and returns false. It sets the range of the block under its type, and of each name as
// "TYPE.NAME".
func (d *decoder) grantNames(b *hclsyntax.Block, ranges map[string]diag.Range, whenEmpty string, accept func(stringItem) bool) []string {
	ranges[b.Type] = d.f.rng(b.DefRange())
	taken := declaredNames{}
	var names []string
	for _, e := range d.grantList(d.grantBody(b), "names", whenEmpty) {
		if accept(e) && d.declareName(taken, e.text, e.where, "%q occurs twice in \"names\"", e.text) {
			names = append(names, e.text)
			ranges[b.Type+"."+e.text] = d.f.rng(e.where)
		}
	}
	return names
}

// ceilingIdentifiers decodes names and patterns of variables or modules, or nil if the ceiling
// has no list.
func (d *decoder) ceilingIdentifiers(body *hclsyntax.Body, name, what, example string) []definition.Name {
	return d.ceilingList(body, name, func(e stringItem) (string, bool) {
		ok := isIdentifier(strings.ReplaceAll(e.text, "*", "x"))
		if !ok {
			d.fail("bad-grant", d.f.rng(e.where), d.eval.show(e.text)+" is not a valid name of a "+what, fmt.Sprintf("use letters, digits, _ and *, such as %q", example))
		}
		return e.text, ok
	})
}

// secretGrants decodes a secrets block: the secrets that a script may read. Package configcheck
// checks that the operator permits it.
func (d *decoder) secretGrants(b *hclsyntax.Block, ranges map[string]diag.Range) []string {
	return d.grantNames(b, ranges, "name at least one secret that the script may read", func(e stringItem) bool {
		_, ok := d.secret(e.text, e.where)
		return ok
	})
}

// tools decodes a call block: names and patterns of callable tools. It sets the range of each
// as "tools.NAME".
func (d *decoder) tools(b *hclsyntax.Block, ranges map[string]diag.Range) []string {
	ranges["call"] = d.f.rng(b.DefRange())
	taken := declaredNames{}
	var names []string
	list := d.grantList(d.grantBody(b), "tools", "name at least one tool, or a pattern such as \"crm_*\"")
	for _, e := range list {
		switch {
		case !definition.IsPattern(e.text):
			d.fail("bad-name", d.f.rng(e.where), "this is not a valid tool name", patternCharacters)
		case d.declareName(taken, e.text, e.where, "%q occurs twice in \"tools\"", e.text):
			names = append(names, e.text)
			ranges["tools."+e.text] = d.f.rng(e.where)
		}
	}
	if len(names) == 0 || len(names) < len(list) {
		return append(names, "*") // avoids errors for calls that the reported entries may permit
	}
	return names
}

// Maximums of an ask grant.
const (
	maxAskRounds = 100
	maxAskTokens = 1 << 20
)

// askNames are the kinds of input requests, for grants and ceilings.
var askNames = []string{grant.Elicit, grant.Sample, grant.Roots}

// ask decodes an ask block. It sets the range of the block as "ask", and of each kind as
// "ask.elicit" and so on.
func (d *decoder) ask(b *hclsyntax.Block, ranges map[string]diag.Range) *grant.Ask {
	body := d.grantBody(b)
	ranges["ask"] = d.f.rng(b.DefRange())
	a := &grant.Ask{}
	reported := false
	for name, granted := range map[string]*bool{grant.Elicit: &a.Elicit, grant.Sample: &a.Sample, grant.Roots: &a.Roots} {
		attr := b.Body.Attributes[name]
		if attr == nil {
			*granted = d.hasSimilar(b.Body, rules["ask"], name) // it is reported; its users need not be
			reported = reported || *granted
			continue
		}
		ranges["ask."+name] = d.f.rng(attr.SrcRange)
		ok := false
		*granted, ok = d.boolean(body, name, true)
		reported = reported || !ok
	}
	a.MaxRounds = d.intAttr(body, "max_rounds", 1, maxAskRounds)
	a.MaxTokens = d.intAttr(body, "max_tokens", 1, maxAskTokens)
	if attr := b.Body.Attributes["max_tokens"]; attr != nil && !a.Sample && !reported {
		d.fail("contradiction", d.f.rng(attr.NameRange), "\"max_tokens\" needs a grant of sample", "write sample = true, or remove it")
	}
	if a.Names() == nil && !reported {
		d.fail("bad-grant", d.f.rng(b.DefRange()), "the block grants no input requests", "write elicit = true, sample = true or roots = true")
	}
	return a
}

// module decodes a module block. The module checks its arguments. It sets the range of the
// block as "modules.NAME", unless an argument was reported.
func (d *decoder) module(b *hclsyntax.Block, ranges map[string]diag.Range) grant.Module {
	d.checkBody(b)
	g := grant.Module{Name: b.Labels[0]}
	options := make(map[string]json.RawMessage, len(b.Body.Attributes))
	for name, attr := range b.Body.Attributes {
		if value := d.json(b.Body, name); !d.reportComputed(attr) && value != nil {
			options[name] = value
		}
	}
	if len(options) == len(b.Body.Attributes) {
		ranges["modules."+g.Name] = d.f.rng(b.DefRange())
	}
	// Decoded JSON always encodes.
	g.Options, _ = json.Marshal(options)
	return g
}

// Maximums of an fs grant.
const (
	maxGrantedFile  = 16 << 20
	maxGrantedTotal = 64 << 20
	maxRoot         = 4096
)

// fs decodes an fs block. It sets the range of its root as "fs.NAME.root".
func (d *decoder) fs(b *hclsyntax.Block, ranges map[string]diag.Range) grant.FS {
	body := d.grantBody(b)
	g := grant.FS{Name: b.Labels[0]}
	if written, ok := d.text(body, "root"); ok {
		where := d.f.rng(body.Attributes["root"].Expr.Range())
		g.Root, g.Relative = d.folderPath(written, where), !filepath.IsAbs(written)
		ranges["fs."+g.Name+".root"] = where
	}
	g.Write = d.enumAttr(body, "mode", "ro", "rw") == "rw"
	g.MaxFile = d.size(body, "max_file", maxGrantedFile)
	g.MaxTotal = d.size(body, "max_total", maxGrantedTotal)
	if g.MaxTotal > 0 && g.MaxFile > g.MaxTotal {
		d.fail("contradiction", d.f.rng(body.Attributes["max_file"].Expr.Range()), "\"max_file\" is larger than \"max_total\"", "raise \"max_total\", or lower \"max_file\"")
	}
	return g
}

// folderPath returns the path of a directory, absolute if possible. It returns "" after it has
// reported an error.
func (d *decoder) folderPath(written string, where diag.Range) string {
	switch {
	case written == "":
		d.fail("bad-grant", where, "the path is empty", "write an absolute path, or one relative to the directory of this file, such as \"logs\"")
	case strings.HasPrefix(written, "~"):
		d.fail("bad-grant", where, "~ is not supported in paths", "write the full path")
	case len(written) > maxRoot || strings.ContainsFunc(written, unicode.IsControl):
		d.fail("bad-grant", where, "this is not a valid path", fmt.Sprintf("write at most %d bytes, without control characters", maxRoot))
	case filepath.IsAbs(written):
		return filepath.Clean(written)
	default:
		return filepath.Join(d.f.folder, filepath.FromSlash(written))
	}
	return ""
}

// ceilingRoots decodes the directories that may contain roots, or nil if the ceiling has no
// list.
func (d *decoder) ceilingRoots(body *hclsyntax.Body, name string) []definition.Name {
	return d.ceilingList(body, name, func(e stringItem) (string, bool) {
		path := d.folderPath(e.text, d.f.rng(e.where))
		return path, path != ""
	})
}

// ceilingList decodes a list of a ceiling, or nil if the ceiling has no list. accept returns
// the value of an item, and false after it has reported an error.
func (d *decoder) ceilingList(body *hclsyntax.Body, name string, accept func(stringItem) (string, bool)) []definition.Name {
	if attr := body.Attributes[name]; attr == nil {
		return nil
	}
	names := []definition.Name{}
	list, _ := d.stringList(body, name)
	for _, e := range list {
		if text, ok := accept(e); ok {
			names = append(names, definition.Name{Text: text, Range: d.f.rng(e.where)})
		}
	}
	return names
}

// Defaults and maximums of a kv grant.
const (
	defaultKeys  = 1000
	maxKeys      = 100_000
	defaultKept  = 64 << 10
	maxKept      = 1 << 20
	defaultStore = 10 << 20
	maxStore     = 256 << 20
	maxKeep      = 365 * 24 * time.Hour
	// defaultSession is the lifetime of session values: no call reads them after the session has
	// ended.
	defaultSession = 24 * time.Hour
)

// kv decodes a kv block. It sets the range of its scope as "kv.NAME.scope"; without a scope,
// that is the range of the block.
func (d *decoder) kv(b *hclsyntax.Block, ranges map[string]diag.Range) grant.KV {
	body := d.grantBody(b)
	g := grant.KV{Name: b.Labels[0]}
	scoped := "kv." + g.Name + ".scope"
	ranges[scoped] = d.f.rng(b.DefRange())
	if attr := b.Body.Attributes["scope"]; attr != nil {
		ranges[scoped] = d.f.rng(attr.Expr.Range())
	}
	g.Scope = cmp.Or(d.enumAttr(body, "scope", grant.Scopes()...), grant.ScopeTool)
	g.TTL = d.durationWithin(body, "ttl", 0, maxKeep)
	if g.TTL == 0 && g.Scope == grant.ScopeSession {
		g.TTL = defaultSession
	}
	g.MaxKeys = cmp.Or(d.intAttr(body, "max_keys", 1, maxKeys), defaultKeys)
	g.MaxValue = cmp.Or(d.size(body, "max_value", maxKept), defaultKept)
	g.MaxTotal = cmp.Or(d.size(body, "max_total", maxStore), defaultStore)
	if attr := body.Attributes["max_value"]; attr != nil && g.MaxValue > g.MaxTotal {
		d.fail("contradiction", d.f.rng(attr.Expr.Range()), "\"max_value\" is larger than \"max_total\"",
			"raise \"max_total\", by default 10MiB, or lower \"max_value\"")
	}
	return g
}

// checkNoCaller reports grants that need a caller in a definition without one.
func (d *decoder) checkNoCaller(set grant.Set, ranges map[string]diag.Range) {
	for _, g := range set.KV {
		if g.Scope == grant.ScopePrincipal || g.Scope == grant.ScopeSession {
			d.fail("bad-grant", ranges["kv."+g.Name+".scope"], fmt.Sprintf("a hook has no caller, so it cannot use the scope %q", g.Scope),
				"write scope = \"tool\" for private values, or scope = \"server\" for shared values")
		}
	}
	if where, written := ranges["call"]; written {
		d.fail("bad-grant", where, "a hook has no caller, so it cannot call tools", "remove the block, and do the work in the hook")
	}
}
