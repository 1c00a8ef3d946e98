package hclfile

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// decoder turns the syntax tree of one file into definitions. It collects
// every mistake and carries on.
type decoder struct {
	f        *File
	eval     *evaluator
	problems diag.List
	// inInput says that the fields being read are those of what a body is given.
	inInput bool
}

func newDecoder(f *File, s Scope) *decoder {
	d := &decoder{f: f}
	d.eval = newEvaluator(f, s, &d.problems)
	return d
}

// fail notes a mistake.
func (d *decoder) fail(code string, where diag.Range, summary, detail string, notes ...diag.Note) {
	if len(d.problems) < maxCollected {
		d.problems = append(d.problems, diag.Diagnostic{Code: code, Range: where, Summary: summary, Detail: detail, Notes: notes})
	}
}

// warn notes what is odd, and keeps nothing from loading.
func (d *decoder) warn(code string, where diag.Range, summary, detail string) {
	if len(d.problems) < maxCollected {
		d.problems = append(d.problems, diag.Diagnostic{Severity: diag.Warning, Code: code, Range: where, Summary: summary, Detail: detail})
	}
}

// named tells blocks of one type apart by name.
type named map[string]hcl.Range

// claim notes the name of a block. It reports a second one of the same name,
// and returns false for it.
func (d *decoder) claim(taken named, b *hclsyntax.Block) bool {
	return d.claimName(taken, b.Labels[0], b.LabelRanges[0], "there is a second "+b.Type+" %q", b.Labels[0])
}

// claimName notes key. It reports a second one, and returns false for it. The
// format says what there is twice, of the name as the reader knows it.
func (d *decoder) claimName(taken named, key string, where hcl.Range, format, name string) bool {
	if first, again := taken[key]; again {
		d.duplicate(where, first, fmt.Sprintf(format, name))
		return false
	}
	taken[key] = where
	return true
}

// maxName is the length of a name in bytes.
const maxName = 64

// checkName reports a name that is not like ^[A-Za-z0-9_.-]{1,64}$.
func (d *decoder) checkName(what, name string, where hcl.Range) {
	if !IsName(name) {
		d.fail("bad-name", d.f.rng(where), fmt.Sprintf("%s has a bad name", what),
			fmt.Sprintf("use 1 to %d of the characters A-Z a-z 0-9 _ . -", maxName))
	}
}

// IsName reports whether a definition may have the name: 1 to 64 letters,
// digits, dots, dashes and underscores.
func IsName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isWord(c) && c != '.' && c != '-' || c >= 0x80 {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

// checkIdentifier reports a name that cannot be written in an expression, as
// in var.NAME or http.NAME.
func (d *decoder) checkIdentifier(what, name string, where hcl.Range) {
	if !isIdentifier(name) {
		d.fail("bad-name", d.f.rng(where), fmt.Sprintf("%s has a bad name", what),
			fmt.Sprintf("use 1 to %d of the characters A-Z a-z 0-9 _, and no digit first", maxName))
	}
}

func isIdentifier(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isWord(c) || c >= 0x80 {
			return false
		}
	}
	return s != "" && len(s) <= maxName && !isDigit(s[0])
}

// Decode evaluates a tool file. The definitions are complete only when the
// list holds no error.
func (f *File) Decode(s Scope) (Definitions, diag.List) {
	d := newDecoder(f, s)
	r := fileRules[ToolsKind]
	d.check(f.body, r, "a tool file", f.body.SrcRange)
	var defs Definitions
	taken := map[string]named{}
	for _, b := range blocks(f.body, r) {
		if b.Type == "locals" {
			d.checkBody(b)
			continue
		}
		d.claimDefinition(taken, b)
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

// claimDefinition notes the name of a definition. Resources, folders and
// templates share their names, since policies and hooks name them alike.
func (d *decoder) claimDefinition(taken map[string]named, b *hclsyntax.Block) {
	kind := b.Type
	if kind == "resource_folder" || kind == "resource_template" {
		kind = "resource"
	}
	if taken[kind] == nil {
		taken[kind] = named{}
	}
	d.claimName(taken[kind], b.Labels[0], b.LabelRanges[0], "there is a second "+kind+" %q", b.Labels[0])
}
