package hclfile

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// decoder converts the syntax tree of one file to definitions. It collects all errors.
type decoder struct {
	f        *File
	eval     *evaluator
	problems diag.List
	// inInput means that the current fields are inputs of a script.
	inInput bool
}

func newDecoder(f *File, s Scope) *decoder {
	d := &decoder{f: f}
	d.eval = newEvaluator(f, s, &d.problems)
	return d
}

func (d *decoder) fail(code string, where diag.Range, summary, detail string, notes ...diag.Note) {
	if len(d.problems) < maxCollected {
		d.problems = append(d.problems, diag.Diagnostic{Code: code, Range: where, Summary: summary, Detail: detail, Notes: notes})
	}
}

// warn reports a warning, which does not prevent a load.
func (d *decoder) warn(code string, where diag.Range, summary, detail string) {
	if len(d.problems) < maxCollected {
		d.problems = append(d.problems, diag.Diagnostic{Severity: diag.Warning, Code: code, Range: where, Summary: summary, Detail: detail})
	}
}

// declaredNames holds the names of blocks of one type.
type declaredNames map[string]hcl.Range

// declare adds the name of a block. If it is a duplicate, declare reports it and returns false.
func (d *decoder) declare(taken declaredNames, b *hclsyntax.Block) bool {
	return d.declareName(taken, b.Labels[0], b.LabelRanges[0], "there is a second "+b.Type+" %q", b.Labels[0])
}

// declareName adds key. If it is a duplicate, declareName reports it and returns false. format
// is the summary, with the name as written.
func (d *decoder) declareName(taken declaredNames, key string, where hcl.Range, format, name string) bool {
	if first, again := taken[key]; again {
		d.duplicate(where, first, fmt.Sprintf(format, name))
		return false
	}
	taken[key] = where
	return true
}

// checkName reports a name that does not match ^[A-Za-z0-9_.-]{1,64}$.
func (d *decoder) checkName(what, name string, where hcl.Range) {
	if !definition.IsName(name) {
		d.fail("bad-name", d.f.rng(where), fmt.Sprintf("%s has an invalid name", what),
			fmt.Sprintf("use 1 to %d of the characters A-Z a-z 0-9 _ . -", definition.MaxName))
	}
}

// checkIdentifier reports a name that cannot be used in an expression, as in var.NAME or
// http.NAME.
func (d *decoder) checkIdentifier(what, name string, where hcl.Range) {
	if !isIdentifier(name) {
		d.fail("bad-name", d.f.rng(where), fmt.Sprintf("%s has an invalid name", what),
			fmt.Sprintf("use 1 to %d of the characters A-Z a-z 0-9 _, and no digit first", definition.MaxName))
	}
}

func isIdentifier(s string) bool {
	return definition.IsName(s) && !strings.ContainsAny(s, ".-") && !isDigit(s[0])
}

// Decode evaluates a tool file. The definitions are complete only if the list has no errors.
func (f *File) Decode(s Scope) (_ definition.Definitions, problems diag.List) {
	defer f.reportPanic(&problems)
	d := newDecoder(f, s)
	r := fileRules[ToolsKind]
	d.check(f.body, r, "a tool file", f.body.SrcRange)
	var defs definition.Definitions
	taken := map[string]declaredNames{}
	for _, b := range blocks(f.body, r) {
		if b.Type == "locals" {
			d.checkBody(b)
			continue
		}
		d.declareDefinition(taken, b)
		switch b.Type {
		case "tool":
			defs.Tools = append(defs.Tools, d.tool(b))
		case "resource":
			defs.Resources = append(defs.Resources, d.resource(b))
		case "resource_folder":
			defs.Folders = append(defs.Folders, d.folder(b))
		case "resource_template":
			defs.Templates = append(defs.Templates, d.template(b))
		case "prompt":
			defs.Prompts = append(defs.Prompts, d.prompt(b))
		case "policy":
			defs.Policies = append(defs.Policies, d.policy(b))
		case "limit":
			defs.Limits = append(defs.Limits, d.limit(b))
		case "hook":
			defs.Hooks = append(defs.Hooks, d.hook(b))
		case "test":
			defs.Tests = append(defs.Tests, d.test(b))
		}
	}
	return defs, f.finish(d.problems)
}

// declareDefinition adds the name of a definition. Resources, folders and templates share a
// namespace, because policies and hooks refer to them alike.
func (d *decoder) declareDefinition(taken map[string]declaredNames, b *hclsyntax.Block) {
	kind := b.Type
	if kind == "resource_folder" || kind == "resource_template" {
		kind = "resource"
	}
	if taken[kind] == nil {
		taken[kind] = declaredNames{}
	}
	d.declareName(taken[kind], b.Labels[0], b.LabelRanges[0], "there is a second "+kind+" %q", b.Labels[0])
}

// hasher computes the hashes of one definition.
type hasher struct{ source, semantic hash.Hash }

// Write adds bytes to both hashes. It never fails.
func (h *hasher) Write(b []byte) (int, error) {
	h.semantic.Write(b)
	return h.source.Write(b)
}

// definition checks the name and block of a definition, named what in messages, and starts its
// hashes. It returns the range of the name.
func (d *decoder) definition(b *hclsyntax.Block, what string) diag.Range {
	d.checkName(what, b.Labels[0], b.LabelRanges[0])
	d.checkBody(b)
	d.begin(b)
	return d.f.rng(b.LabelRanges[0])
}

// begin starts the hashes of a definition with its position and source text. Everything that
// its expressions read before [decoder.hashes] is added.
func (d *decoder) begin(b *hclsyntax.Block) {
	where := blockRange(b)
	if isJSON(d.f.path) {
		where.Start = b.OpenBraceRange.Start // blocks of one type share its name
	}
	r := d.f.rng(where)
	h := &hasher{source: sha256.New(), semantic: sha256.New()}
	definition.WriteField(h.source, d.f.path)
	var at [24]byte
	binary.BigEndian.PutUint64(at[:8], uint64(r.Start.Byte))
	binary.BigEndian.PutUint64(at[8:16], uint64(r.Start.Line))
	binary.BigEndian.PutUint64(at[16:], uint64(r.Start.Column))
	h.source.Write(at[:])
	for _, field := range append([]string{b.Type}, b.Labels...) {
		definition.WriteField(h, field)
	}
	definition.WriteField(h, d.f.source[r.Start.Byte:r.End.Byte])
	d.eval.reads = h
}

// hashes completes and returns the hashes of a definition.
func (d *decoder) hashes() definition.Hashes {
	h := d.eval.reads
	d.eval.reads = nil
	return definition.Hashes{Hash: definition.Hash(h.source.Sum(nil)), Semantic: definition.Hash(h.semantic.Sum(nil))}
}

func blockRange(b *hclsyntax.Block) hcl.Range {
	return hcl.RangeBetween(b.TypeRange, b.CloseBraceRange)
}
