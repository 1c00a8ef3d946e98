package hclfile

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// tool decodes a tool block.
func (d *decoder) tool(b *hclsyntax.Block) Tool {
	at, nameAt := d.definition(b, "the tool")
	t := Tool{
		Name: b.Labels[0], Range: at, NameRange: nameAt,
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
	t.Cache = d.cache(b, &t)
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

// annotations reports hints that contradict each other.
func (d *decoder) annotations(b *hclsyntax.Block, t *Tool) {
	if t.ReadOnly != nil && *t.ReadOnly && t.Destructive != nil && *t.Destructive {
		d.fail("contradiction", d.f.rng(b.Body.Attributes["destructive"].SrcRange), "a tool cannot be read-only and destructive", "remove one of the two",
			diag.Note{Range: d.f.rng(b.Body.Attributes["read_only"].SrcRange), Message: "it is read-only here"})
	}
}

func (d *decoder) inputs(b *hclsyntax.Block, t *Tool) {
	var sent []*field
	headers := named{}
	d.inInput = true
	all := d.fields(b, "input")
	d.inInput = false
	t.BigInts = bigintPointers(all, "")
	for _, f := range all {
		if f.from != nil {
			schema := schemaWriter{safe: true}
			schema.field(f, "")
			t.From = append(t.From, From{Name: f.name, Expr: *f.from, Schema: schema.out, Range: d.f.rng(f.head)})
			continue
		}
		if f.header != "" && !d.claimName(headers, strings.ToLower(f.header), f.keywordRange("x-mcp-header"), "two inputs have the header %q", f.header) {
			continue
		}
		sent = append(sent, f)
	}
	open, _ := d.boolean(b.Body, "extra_arguments", false)
	t.InputRange = d.f.rng(b.DefRange())
	t.InputOrigin = map[string]diag.Range{}
	if attr := b.Body.Attributes["input_schema"]; attr != nil {
		d.exclusive(b, attr, "input", sent)
		t.InputRange = d.f.rng(attr.Expr.Range())
		t.Input = d.wholeSchema(attr, t.InputOrigin, true)
		open = true // unless its mistake was told, which leaves any argument possible
	}
	if t.Input == nil {
		w := schemaWriter{place: d.origins(t.InputOrigin), safe: true}
		w.object(sent, "", open)
		t.Input = w.out
		if len(t.BigInts) > 0 {
			declared := schemaWriter{safe: true, named: true}
			declared.object(sent, "", open)
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

// exclusive reports blocks and arguments that a whole schema leaves no room for.
func (d *decoder) exclusive(b *hclsyntax.Block, attr *hclsyntax.Attribute, blockType string, fields []*field) {
	for _, f := range fields {
		d.fail("contradiction", d.f.rng(f.head), fmt.Sprintf("the tool has %q, and so no %s blocks", attr.Name, blockType),
			"describe it in the schema", diag.Note{Range: d.f.rng(attr.NameRange), Message: "the schema is given here"})
	}
	if extra := b.Body.Attributes["extra_arguments"]; extra != nil && blockType == "input" {
		d.fail("contradiction", d.f.rng(extra.NameRange), "\"extra_arguments\" does not apply to an \"input_schema\"",
			"write additionalProperties in the schema")
	}
}

func (d *decoder) outputs(b *hclsyntax.Block, t *Tool) {
	fields := d.fields(b, "output")
	t.OutputRange = d.f.rng(b.DefRange())
	if attr := b.Body.Attributes["output_schema"]; attr != nil {
		d.exclusive(b, attr, "output", fields)
		t.OutputRange = d.f.rng(attr.Expr.Range())
		t.OutputOrigin = map[string]diag.Range{}
		t.Output = d.wholeSchema(attr, t.OutputOrigin, false)
		return
	}
	if len(fields) == 0 {
		return
	}
	t.OutputOrigin = map[string]diag.Range{}
	w := schemaWriter{place: d.origins(t.OutputOrigin)}
	w.object(fields, "", false)
	t.Output = w.out
	t.SensitiveOutput = sensitivePointers(fields, "")
	t.BigIntOutput = bigintPointers(fields, "")
}
