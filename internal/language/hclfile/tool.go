package hclfile

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

func (d *decoder) tool(b *hclsyntax.Block) definition.Tool {
	nameAt := d.definition(b, "the tool")
	t := definition.Tool{
		Name: b.Labels[0], NameRange: nameAt,
		ReadOnly: d.flag(b.Body, "read_only"), Destructive: d.flag(b.Body, "destructive"), OpenWorld: d.flag(b.Body, "open_world"),
		Icons: d.icons(b.Body, rules["tool"]), Call: d.call(b),
	}
	t.Title, _ = d.text(b.Body, "title")
	t.Description, t.HasDescription = d.text(b.Body, "description")
	t.Idempotent, _ = d.boolean(b.Body, "idempotent", true)
	d.annotations(b, &t)
	d.task(b, &t)
	d.inputs(b, &t)
	d.outputs(b, &t)
	if t.Cache = d.cache(b); t.Cache != nil {
		d.checkCache(b, &t, t.Cache)
	}
	if run := d.run(b); run != nil {
		t.Run = *run
	}
	d.dryRun(b, &t)
	t.Hashes = d.hashes()
	return t
}

// first returns the first block of a type, or nil.
func first(body *hclsyntax.Body, block string) *hclsyntax.Block {
	for _, b := range body.Blocks {
		if b.Type == block && len(b.Labels) == len(rules[block].labels) {
			return b
		}
	}
	return nil
}

// annotations reports contradicting hints.
func (d *decoder) annotations(b *hclsyntax.Block, t *definition.Tool) {
	if t.ReadOnly != nil && *t.ReadOnly && t.Destructive != nil && *t.Destructive {
		d.fail("contradiction", d.f.rng(b.Body.Attributes["destructive"].SrcRange), "a tool cannot be read-only and destructive", "remove one of them",
			diag.Note{Range: d.f.rng(b.Body.Attributes["read_only"].SrcRange), Message: "it is declared read-only here"})
	}
}

func (d *decoder) inputs(b *hclsyntax.Block, t *definition.Tool) {
	var sent []*field
	headers := declaredNames{}
	d.inInput = true
	all := d.fields(b, "input")
	d.inInput = false
	t.BigInts = bigintPointers(all)
	for _, f := range all {
		if f.from != nil {
			schema := schemaWriter{safe: true}
			schema.field(f, "")
			t.From = append(t.From, definition.From{Name: f.name, Expr: *f.from, Schema: schema.out, Range: d.f.rng(f.head)})
			continue
		}
		if f.header != "" && !d.declareName(headers, strings.ToLower(f.header), f.keywordRange("x-mcp-header"), "two inputs have the header %q", f.header) {
			continue
		}
		sent = append(sent, f)
	}
	open, _ := d.boolean(b.Body, "extra_arguments", false)
	t.InputRange = d.f.rng(b.DefRange())
	t.InputOrigin = definition.Origins{}
	defer t.InputOrigin.Sort()
	if attr := b.Body.Attributes["input_schema"]; attr != nil {
		d.exclusive(b, attr, "input", sent)
		t.InputRange = d.f.rng(attr.Expr.Range())
		t.Input = d.wholeSchema(attr, &t.InputOrigin, true)
		open = true // unless it was reported; then any argument is possible
	}
	if t.Input == nil {
		w := schemaWriter{locate: d.origins(&t.InputOrigin), safe: true}
		w.object(sent, open)
		t.Input = w.out
		if len(t.BigInts) > 0 {
			declared := schemaWriter{safe: true, named: true}
			declared.object(sent, open)
			t.Declared = declared.out
		}
		t.Sensitive = sensitivePointers(sent, "")
	}
}

func (f *field) keywordRange(name string) hcl.Range {
	for _, k := range f.keywords {
		if k.name == name {
			return k.where
		}
	}
	return f.head
}

// exclusive reports blocks and arguments that exclude a whole schema.
func (d *decoder) exclusive(b *hclsyntax.Block, attr *hclsyntax.Attribute, blockType string, fields []*field) {
	for _, f := range fields {
		d.fail("contradiction", d.f.rng(f.head), fmt.Sprintf("a tool with %q cannot have %s blocks", attr.Name, blockType),
			"move it into the schema", diag.Note{Range: d.f.rng(attr.NameRange), Message: "the schema is here"})
	}
	if blockType == "input" {
		d.rejectAttr(b.Body, "extra_arguments", "\"extra_arguments\" does not apply to an \"input_schema\"", "write additionalProperties in the schema")
	}
}

func (d *decoder) outputs(b *hclsyntax.Block, t *definition.Tool) {
	fields := d.fields(b, "output")
	t.OutputRange = d.f.rng(b.DefRange())
	if attr := b.Body.Attributes["output_schema"]; attr != nil {
		d.exclusive(b, attr, "output", fields)
		t.OutputRange = d.f.rng(attr.Expr.Range())
		t.OutputOrigin = definition.Origins{}
		t.Output = d.wholeSchema(attr, &t.OutputOrigin, false)
		t.OutputOrigin.Sort()
		return
	}
	if len(fields) == 0 {
		return
	}
	t.OutputOrigin = definition.Origins{}
	w := schemaWriter{locate: d.origins(&t.OutputOrigin)}
	w.object(fields, false)
	t.OutputOrigin.Sort()
	t.Output = w.out
	t.SensitiveOutput = sensitivePointers(fields, "")
	t.BigIntOutput = bigintPointers(fields)
}

// task decodes whether and when a tool runs as a task, and how long the result is stored.
func (d *decoder) task(b *hclsyntax.Block, t *definition.Tool) {
	t.Task = d.enumAttr(b.Body, "task", definition.TaskOptional, definition.TaskRequired)
	for _, name := range []string{"task_ttl", "ask_first"} {
		if attr := b.Body.Attributes[name]; attr != nil && b.Body.Attributes["task"] == nil {
			d.fail("contradiction", d.f.rng(attr.NameRange), fmt.Sprintf("the tool has %q but does not run as a task", name), "write task = \"optional\" or task = \"required\", or remove it")
		}
	}
	if t.Task == "" {
		return
	}
	t.TaskTTL = d.duration(b.Body, "task_ttl", definition.DefaultTaskTTL)
	if attr := b.Body.Attributes["timeout"]; attr != nil && t.Timeout > t.TaskTTL {
		d.fail("contradiction", d.f.rng(attr.Expr.Range()), "the timeout is longer than the lifetime of the task",
			"raise \"task_ttl\", by default 1h, or lower \"timeout\"")
	}
	t.AskFirst, _ = d.boolean(b.Body, "ask_first", false)
	if t.AskFirst && t.Grant.Ask == nil {
		d.fail("contradiction", d.f.rng(b.Body.Attributes["ask_first"].NameRange), "the tool has \"ask_first\" but may not send input requests", "add an allow { ask } block, or remove it")
	}
}

// dryRun decodes the behavior of a tool in a dry run.
func (d *decoder) dryRun(b *hclsyntax.Block, t *definition.Tool) {
	attr := b.Body.Attributes["dry_run"]
	if attr == nil {
		return
	}
	t.DryRun = d.code(attr, definition.JavaScript, definition.TypeScript)
	if t.ReadOnly != nil && *t.ReadOnly {
		d.fail("contradiction", d.f.rng(attr.NameRange), fmt.Sprintf("a read-only tool needs no %q", "dry_run"),
			"remove it: a dry run runs read-only tools normally")
	}
}

// cache decodes the cache block in a block. It returns nil if there is none. A result may be
// reused only if it does not differ from a new one: the tool changes nothing, sends no input
// requests, and stores nothing per caller.
func (d *decoder) cache(b *hclsyntax.Block) *definition.Cache {
	block := first(b.Body, "cache")
	if block == nil {
		return nil
	}
	d.checkBody(block)
	return &definition.Cache{
		TTL: d.durationWithin(block.Body, "ttl", 0, maxCached), Range: d.f.rng(block.DefRange()),
		Scope: cmp.Or(d.enumAttr(block.Body, "scope", definition.CachePrincipal, definition.CacheServer), definition.CachePrincipal),
	}
}

// checkOverrideCaches reports caches of tools whose upstream may send input requests.
func (d *decoder) checkOverrideCaches(b *hclsyntax.Block, u *definition.Upstream) {
	attr := b.Body.Attributes["ask"]
	if attr == nil || len(u.Ask.Names()) == 0 {
		return
	}
	for i := range u.Overrides {
		if c := u.Overrides[i].Cache; c != nil {
			d.fail("contradiction", c.Range, "a tool with a cache cannot have an upstream that sends input requests", "remove one of them: the response of a user must not be reused",
				diag.Note{Range: d.f.rng(attr.SrcRange), Message: "it is allowed here"})
		}
	}
}

// checkCacheEffects reports a tool with a cache that is not declared read-only or is not
// idempotent.
func (d *decoder) checkCacheEffects(b *hclsyntax.Block, c *definition.Cache, readOnly *bool, idempotent bool) {
	switch attr := b.Body.Attributes["read_only"]; {
	case attr == nil && !d.hasSimilar(b.Body, rules[b.Type], "read_only"):
		d.fail("contradiction", c.Range, "a tool with a cache must be read-only", "write read_only = true if it has no side effects, or remove the cache")
	case readOnly != nil && !*readOnly:
		d.fail("contradiction", c.Range, "a tool with a cache must be read-only", "remove the cache, or set read_only = true if it has no side effects",
			diag.Note{Range: d.f.rng(attr.SrcRange), Message: "it is set here"})
	}
	if attr := b.Body.Attributes["idempotent"]; attr != nil && !idempotent {
		d.fail("contradiction", c.Range, "a tool with a cache must be idempotent", "remove the cache, or idempotent = false",
			diag.Note{Range: d.f.rng(attr.SrcRange), Message: "it is set here"})
	}
}

// checkCache reports reasons against caching the results of a tool.
func (d *decoder) checkCache(b *hclsyntax.Block, t *definition.Tool, c *definition.Cache) {
	d.checkCacheEffects(b, c, t.ReadOnly, t.Idempotent)
	if t.Grant.Ask != nil {
		d.fail("contradiction", c.Range, "a tool with a cache cannot send input requests", "remove one of them: the response of a user must not be reused",
			diag.Note{Range: t.GrantRanges["ask"], Message: "it is allowed here"})
	}
	if t.Grant.Call != nil {
		d.fail("contradiction", c.Range, "a tool with a cache cannot call other tools", "remove one of them: other tools have their own caches and policies",
			diag.Note{Range: t.GrantRanges["call"], Message: "it is allowed here"})
	}
	for _, m := range t.Grant.Modules {
		d.fail("contradiction", c.Range, "a tool with a cache cannot use a module, which may depend on the caller", "remove one of them",
			diag.Note{Range: t.GrantRanges["modules."+m.Name], Message: "it is granted here"})
	}
	for _, kv := range t.Grant.KV {
		if kv.Scope == grant.ScopeSession || kv.Scope == grant.ScopePrincipal && c.Scope == definition.CacheServer {
			d.fail("contradiction", c.Range, fmt.Sprintf("the cache would share results that depend on values of each %s", kv.Scope), "remove the cache, widen the scope of the values, or narrow the scope of the cache",
				diag.Note{Range: t.GrantRanges["kv."+kv.Name+".scope"], Message: "the scope is set here"})
		}
	}
}

// annotationsOf decodes the annotations block in body. It returns nil if there is none.
func (d *decoder) annotationsOf(body *hclsyntax.Body) *definition.Annotations {
	b := first(body, "annotations")
	if b == nil {
		return nil
	}
	d.checkBody(b)
	a := &definition.Annotations{}
	a.Audience = textsOf(d.choices(b.Body, "audience", []string{definition.User, definition.Assistant}, wrongWord{"bad-value", "%s is not an audience", "the audiences are"}))
	if v, ok := d.attrValue(b.Body, "priority", numberKind); ok {
		n, _ := v.AsBigFloat().Float64()
		if n < 0 || n > 1 {
			d.fail("bad-value", d.f.rng(b.Body.Attributes["priority"].Expr.Range()), "\"priority\" must be from 0 to 1", "write 1 for required content, 0 for optional content")
		}
		a.Priority = &n
	}
	return a
}

// icons decodes the icon blocks in body, except for those without a source, which are reported.
func (d *decoder) icons(body *hclsyntax.Body, r *rule) []definition.Icon {
	var icons []definition.Icon
	for _, b := range ofType(blocks(body, r), "icon") {
		if i := d.icon(b); i.Src != "" {
			icons = append(icons, i)
		}
	}
	return icons
}

func (d *decoder) icon(b *hclsyntax.Block) definition.Icon {
	d.checkBody(b)
	i := definition.Icon{MIMEType: d.mimeType(b.Body)}
	if src, ok := d.text(b.Body, "src"); ok {
		i.Src = src
		if problem, detail := checkIcon(src); problem != "" {
			d.fail("bad-uri", d.f.rng(b.Body.Attributes["src"].Expr.Range()), problem, detail)
		}
	}
	i.Sizes = d.listOf(b.Body, "sizes", iconSize.MatchString, "this is not a valid icon size", "write width and height as in \"48x48\", or \"any\" for an icon that scales")
	i.Theme = d.enumAttr(b.Body, "theme", definition.LightTheme, definition.DarkTheme)
	return i
}

// checkIcon returns why a text is not the source of an icon. Clients load it automatically, so
// only these two schemes are safe.
func checkIcon(src string) (problem, detail string) {
	const wanted = "write an https URI, or the image itself as data:image/png;base64,…"
	scheme, rest, _ := strings.Cut(src, ":")
	switch strings.ToLower(scheme) {
	case "https":
		if host, _, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/"); !strings.HasPrefix(rest, "//") || host == "" {
			return "the URI of the icon has no host", wanted
		}
		return checkURI(src)
	case "data":
		if definition.BadURIByte(src) >= 0 || !strings.HasPrefix(strings.ToLower(rest), "image/") || !strings.Contains(rest, ",") {
			return "the data of the icon is not an image", wanted
		}
		return "", ""
	default:
		return "an icon needs an https or data URI", wanted
	}
}

// iconSize is WIDTHxHEIGHT or any.
var iconSize = regexp.MustCompile(`^([1-9][0-9]{0,4}x[1-9][0-9]{0,4}|any)$`)

// maxCached is the maximum lifetime of a cached result.
const maxCached = 24 * time.Hour
