package hclfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

const (
	// maxMessage bounds one message of an upstream, in bytes.
	maxMessage = 64 << 20
	// maxCommand bounds the words of a command.
	maxCommand = 256
)

// upstreams decodes the upstream blocks. Their containers may use the secrets.
func (d *decoder) upstreams(all []*hclsyntax.Block, secrets []definition.Secret) []definition.Upstream {
	var upstreams []definition.Upstream
	taken, n := declaredNames{}, containerScope{secrets: secrets, hosts: map[string]*hclsyntax.Block{}, volumes: map[string]definition.ContainerVolume{}}
	for _, b := range all {
		only := d.declare(taken, b)
		if u := d.upstream(b, &n); only { // the tools of a duplicate would cause further errors
			upstreams = append(upstreams, u)
		}
	}
	return upstreams
}

func (d *decoder) upstream(b *hclsyntax.Block, n *containerScope) definition.Upstream {
	r := rules["upstream"]
	nameAt := d.definition(b, "the upstream")
	u := definition.Upstream{Name: b.Labels[0], Range: d.f.rng(blockRange(b)), NameRange: nameAt}
	if inner := first(b.Body, "container"); inner != nil {
		u.Container = d.container(inner, b, n)
	}
	switch d.exactlyOne(b, r, "the upstream has no address", "command", "url", "container") {
	case "command":
		d.upstreamCommand(b, &u)
	case "url":
		d.upstreamURL(b, &u)
	case "container":
		d.upstreamContainer(b, &u)
	}
	d.upstreamNames(b, &u)
	d.upstreamAsk(b, &u)
	d.checkOverrideCaches(b, &u)
	u.Bounds = d.upstreamBounds(b)
	if _, written := u.Ranges["timeout"]; !written {
		u.Timeout = definition.DefaultUpstreamTimeout
	}
	u.AskTimeout = d.durationWithin(b.Body, "ask_timeout", definition.DefaultAskTimeout, definition.MaxAskTimeout)
	u.Start = d.duration(b.Body, "start_timeout", 0)
	u.Pin = cmp.Or(d.enumAttr(b.Body, "pin", definition.PinOnFirstUse, definition.PinStrict, definition.PinOff), definition.PinOnFirstUse)
	u.Lazy, _ = d.boolean(b.Body, "lazy", false)
	if u.Lazy && (u.Pin == definition.PinOff || !u.Offers(definition.OfferTools)) {
		d.fail("contradiction", d.f.rng(b.Body.Attributes["lazy"].Expr.Range()), "the tools of a lazy upstream must be pinned",
			"remove lazy, or offer its tools and pin them")
	}
	u.MaxMessage = d.size(b.Body, "max_message", maxMessage)
	u.Labels = d.stringMap(b.Body, "labels")
	u.Hashes = d.hashes()
	return u
}

func (d *decoder) upstreamCommand(b *hclsyntax.Block, u *definition.Upstream) {
	command, ok := d.stringList(b.Body, "command")
	where := d.f.rng(b.Body.Attributes["command"].Expr.Range())
	u.Command, u.AddressRange = textsOf(command), where
	if len(command) > 0 {
		u.AddressRange = d.f.rng(command[0].where)
	}
	switch {
	case !ok:
	case len(command) == 0 || u.Command[0] == "":
		d.fail("bad-value", where, "the command has no program", "write the program and its arguments, such as [\"github-mcp-server\", \"stdio\"]")
	case len(command) > maxCommand || slices.ContainsFunc(u.Command, func(word string) bool { return strings.ContainsRune(word, 0) }):
		d.fail("bad-value", where, "this is not a valid command", fmt.Sprintf("write at most %d words, without NUL", maxCommand))
	case strings.ContainsFunc(u.Command[0], unicode.IsSpace) && len(command) == 1:
		d.fail("bad-value", where, "the command is one word with spaces, and no shell splits it", "write each word separately, as in [\"npx\", \"-y\", \"…\"]")
	}
	u.Dir = d.nonEmptyText(b.Body, "dir", "write the working directory of the program, or remove it")
	u.Env = d.environment(b.Body, d.upstreamVariable, d.privateText)
	for _, name := range []string{"transport", "private_networks"} {
		d.requiresAttr(b, name, "url")
	}
	for _, inner := range ofType(blocks(b.Body, rules["upstream"]), "header") {
		d.fail("contradiction", d.f.rng(inner.DefRange()), "a program has no headers", "use \"env\" instead")
	}
}

// requiresAttr reports an argument without the argument that it requires.
func (d *decoder) requiresAttr(b *hclsyntax.Block, name, other string) {
	d.rejectAttr(b.Body, name, fmt.Sprintf("%q needs an upstream with %q", name, other), "remove it")
}

// upstreamVariable returns the name of a variable for the program of an upstream, and false
// after it has reported an error. The operator may set variables that make an interpreter load
// other code.
func (d *decoder) upstreamVariable(x hclsyntax.Expression, taken declaredNames) (string, bool) {
	v, problems := x.Value(nil)
	if problems.HasErrors() || !hasKind(v, stringKind) || !isIdentifier(v.AsString()) {
		d.fail("bad-name", d.f.rng(x.Range()), "this is not a valid variable name", "use letters, digits and _, and no digit first, as in { GITHUB_TOKEN = secret.github }")
		return "", false
	}
	return v.AsString(), d.declareName(taken, v.AsString(), x.Range(), "%q occurs twice in \"env\"", v.AsString())
}

// upstreamNames decodes which items of an upstream are provided, and their names.
func (d *decoder) upstreamNames(b *hclsyntax.Block, u *definition.Upstream) {
	u.Prefix = u.Name + "_"
	if prefix, ok := d.text(b.Body, "prefix"); ok {
		if prefix != "" && !definition.IsToolName(prefix) {
			d.fail("bad-name", d.f.rng(b.Body.Attributes["prefix"].Expr.Range()), "this is not a valid prefix of a name", "use the characters A-Z a-z 0-9 _ . - /, or \"\" for no prefix")
		}
		u.Prefix = prefix
	}
	const characters = "use the characters A-Z a-z 0-9 _ . - / and * as wildcard, in the names of the server"
	u.Include, u.Exclude = d.toolPatterns(b.Body, "include", characters), d.toolPatterns(b.Body, "exclude", characters)
	u.Offer = definition.OfferKinds
	if d.hasSimilar(b.Body, rules["upstream"], "offer") {
		u.Offer = textsOf(d.choices(b.Body, "offer", definition.OfferKinds, wrongWord{"bad-value", "%s is not allowed in \"offer\"", "write some of"}))
	}
	u.Instructions, _ = d.boolean(b.Body, "instructions", false)
	u.Escape = d.escapes(b.Body)
	u.Rename = d.stringMap(b.Body, "rename")
	u.RenameRanges = map[string]diag.Range{}
	var exprs func(string) (key, value hclsyntax.Expression)
	if u.Rename != nil {
		exprs = d.memberExprs(b.Body.Attributes["rename"].Expr)
	}
	given := map[string]string{}
	for _, from := range slices.Sorted(maps.Keys(u.Rename)) {
		key, value := exprs(from)
		to, where := u.Rename[from], d.f.rng(hcl.RangeBetween(key.Range(), value.Range()))
		u.RenameRanges[to] = where
		switch first, duplicate := given[to]; {
		case !definition.IsToolName(to):
			d.fail("bad-name", where, fmt.Sprintf("the new name of %q is not valid", clip(from)), fmt.Sprintf("use 1 to %d of the characters A-Z a-z 0-9 _ . - /", definition.MaxPatternName))
		case duplicate:
			d.fail("bad-name", where, fmt.Sprintf("%q and %q get the same name", clip(first), clip(from)), "use different names")
		}
		given[to] = from
	}
	taken := declaredNames{}
	for _, inner := range ofType(blocks(b.Body, rules["upstream"]), "override") {
		if d.declare(taken, inner) {
			u.Overrides = append(u.Overrides, d.override(inner))
		}
	}
}

// escapes decodes which items are provided although they contain invisible characters.
func (d *decoder) escapes(body *hclsyntax.Body) []string {
	list, ok := d.stringList(body, "escape")
	if ok && len(list) == 0 {
		d.fail("bad-value", d.f.rng(body.Attributes["escape"].Expr.Range()), "the list \"escape\" is empty", "add URIs of resources, names of prompts, or patterns, or remove it")
	}
	taken := declaredNames{}
	for _, e := range list {
		if e.text == "" {
			d.fail("bad-name", d.f.rng(e.where), "this is not a valid name", "write a URI, the name of a prompt, \"instructions\", or a pattern such as \"docs://*\"")
		} else {
			d.declareName(taken, e.text, e.where, "%q occurs twice in \"escape\"", e.text)
		}
	}
	return textsOf(list)
}

// override decodes the replaced metadata of a tool.
func (d *decoder) override(b *hclsyntax.Block) definition.Override {
	d.checkBody(b)
	o := definition.Override{Tool: b.Labels[0], Range: d.f.rng(b.DefRange())}
	for name, to := range map[string]**string{"title": &o.Title, "description": &o.Description} {
		if text, ok := d.text(b.Body, name); ok {
			*to = &text
		}
	}
	o.ReadOnly, o.Destructive = d.flag(b.Body, "read_only"), d.flag(b.Body, "destructive")
	o.Idempotent, o.OpenWorld = d.flag(b.Body, "idempotent"), d.flag(b.Body, "open_world")
	o.Labels = d.stringMap(b.Body, "labels")
	o.Bounds = d.upstreamBounds(b)
	// Only the operator can declare the tool read-only; the upstream is not trusted.
	if o.Cache = d.cache(b); o.Cache != nil {
		d.checkCacheEffects(b, o.Cache, o.ReadOnly, o.Idempotent == nil || *o.Idempotent)
	}
	if len(b.Body.Attributes)+len(b.Body.Blocks) == 0 {
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the block overrides nothing", "add a description, read_only, a timeout or another argument, or remove it")
	}
	return o
}

// upstreamAsk decodes which input requests the upstream may send to the clients of its calls.
// The default is none.
func (d *decoder) upstreamAsk(b *hclsyntax.Block, u *definition.Upstream) {
	for _, word := range d.choices(b.Body, "ask", askNames, wrongWord{"bad-value", "%s is not allowed in \"ask\"", "write some of"}) {
		switch word.text {
		case grant.Elicit:
			u.Ask.Elicit = true
		case grant.Sample:
			u.Ask.Sample = true
		case grant.Roots:
			u.Ask.Roots = true
		}
	}
	u.Ask.MaxRounds = d.intAttr(b.Body, "max_rounds", 1, maxAskRounds)
	u.Ask.MaxTokens = d.intAttr(b.Body, "max_tokens", 1, maxAskTokens)
	if attr := b.Body.Attributes["max_tokens"]; attr != nil && !u.Ask.Sample && !d.hasSimilar(b.Body, rules["upstream"], "ask") {
		d.fail("contradiction", d.f.rng(attr.NameRange), "\"max_tokens\" needs ask = [\"sample\"]", "write ask = [\"sample\"], or remove it")
	}
}

func (d *decoder) upstreamURL(b *hclsyntax.Block, u *definition.Upstream) {
	u.Private, _ = d.boolean(b.Body, "private_networks", false)
	u.AddressRange = d.f.rng(b.Body.Attributes["url"].Expr.Range())
	if text, ok := d.text(b.Body, "url"); ok {
		if problem, detail := u.SetURL(text, u.Private); problem != "" {
			d.fail("bad-value", u.AddressRange, problem, detail)
		}
	}
	d.upstreamHTTP(b, u)
}

func (d *decoder) upstreamHTTP(b *hclsyntax.Block, u *definition.Upstream) {
	for _, name := range []string{"dir", "env"} {
		d.requiresAttr(b, name, "command")
	}
	u.Transport = d.enumAttr(b.Body, "transport", definition.UpstreamStreamable, definition.UpstreamSSE)
	u.Grant.Headers = d.headers(b)
}
