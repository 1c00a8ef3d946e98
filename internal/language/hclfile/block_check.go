package hclfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// checkBody is check for a block with the same rule everywhere.
func (d *decoder) checkBody(b *hclsyntax.Block) {
	d.check(b.Body, rules[b.Type], rules[b.Type].what, b.DefRange())
}

// check reports everything in body that its rule does not allow. what names the block in
// messages, such as "a tool block"; head is its range.
func (d *decoder) check(body *hclsyntax.Body, r *rule, what string, head hcl.Range) {
	listed := &reportedLists{}
	var unknown []*hclsyntax.Attribute
	for name, attr := range body.Attributes {
		if r.arg(name) == nil && !r.anyArgument {
			unknown = append(unknown, attr)
		}
	}
	slices.SortFunc(unknown, func(a, b *hclsyntax.Attribute) int { return a.NameRange.Start.Byte - b.NameRange.Start.Byte })
	for _, attr := range unknown {
		name, where := attr.Name, d.f.rng(attr.NameRange)
		if r.hasBlock(name) {
			d.fail("unknown-argument", where, fmt.Sprintf("%q is a block in %s, not an argument", name, what),
				fmt.Sprintf("write %s { … } without the equals sign", header(name, r.block(name))))
		} else {
			d.fail("unknown-argument", where, fmt.Sprintf("%s has no argument %q", what, name), listed.advice(name, r))
		}
	}
	seen := map[string]hcl.Range{}
	for _, b := range body.Blocks {
		d.checkBlock(b, r, what, seen, listed)
	}
	for _, a := range r.args {
		if a.required && !d.hasSimilar(body, r, a.name) {
			d.fail("missing-argument", d.f.rng(head), fmt.Sprintf("%s needs the argument %q", what, a.name), missingDetail(a))
		}
	}
}

func missingDetail(a argument) string {
	switch {
	case a.name == "run":
		return "write run = <<JS … JS, or run = file(\"x.js\")"
	case a.name == "query":
		return "write query = <<SQL … SQL"
	case a.form == code:
		return fmt.Sprintf("write %s = <<CEL … CEL", a.name)
	default:
		return fmt.Sprintf("write %s = …", a.name)
	}
}

// reportedLists are the lists of names already in the messages for a block.
type reportedLists struct{ reported []string }

// once returns a list, or a reference to it if it was reported before.
func (l *reportedLists) once(list string) string {
	if slices.Contains(l.reported, list) {
		return "the possible names are listed above"
	}
	if list != "" {
		l.reported = append(l.reported, list)
	}
	return list
}

// advice returns what to write instead of an unknown argument.
func (l *reportedLists) advice(name string, r *rule) string {
	if meaning := r.suggest(name); meaning != "" && r.arg(meaning) == nil && r.hasBlock(meaning) {
		return fmt.Sprintf("did you mean the block %s { … }?", header(meaning, r.block(meaning)))
	}
	if guess := r.didYouMean(name); guess != "" {
		return guess
	}
	if path := r.locationHint(name); path != "" {
		return path
	}
	if len(r.names()) == 0 {
		return "remove it: the block has no arguments"
	}
	return l.once(orList(orList("", "its arguments are", r.argNames()), "its blocks are", r.blocks))
}

func (d *decoder) checkBlock(b *hclsyntax.Block, r *rule, what string, seen map[string]hcl.Range, listed *reportedLists) {
	if !r.hasBlock(b.Type) {
		d.unknownBlock(b, r, what, listed)
		return
	}
	br := r.block(b.Type)
	if len(b.Labels) != len(br.labels) {
		detail := fmt.Sprintf("write %s { … }", header(b.Type, br))
		if b.Type == "mock" {
			detail = mockForms
		}
		d.fail("wrong-labels", d.f.rng(b.DefRange()), fmt.Sprintf("%s with %s", article(b.Type), countLabels(len(b.Labels))), detail)
	}
	first, again := seen[b.Type]
	if !again {
		seen[b.Type] = b.TypeRange
	} else if br.single {
		d.duplicate(b.TypeRange, first, fmt.Sprintf("%s has a second block %q", what, b.Type))
	}
}

func (d *decoder) unknownBlock(b *hclsyntax.Block, r *rule, what string, listed *reportedLists) {
	where := d.f.rng(b.TypeRange)
	if a := r.arg(b.Type); a != nil {
		d.fail("unknown-block", where, fmt.Sprintf("%q is an argument of %s, not a block", b.Type, what), missingDetail(*a))
		return
	}
	if hint := fileHint(b.Type); hint != "" && r == fileRules[d.f.kind] {
		d.fail("misplaced-block", where, fmt.Sprintf("%s does not belong in %s", article(b.Type), what), "move it to "+hint)
		return
	}
	detail := r.didYouMean(b.Type)
	if outer := parents(b.Type); len(outer) > 0 && r.synonym(b.Type) == "" {
		detail = "it belongs in " + article(orOf(outer))
	}
	for _, inner := range r.blocks {
		if r.block(inner).hasBlock(b.Type) {
			detail = "it belongs in " + article(inner)
		}
	}
	if detail == "" && fileRules[d.f.kind].hasBlock(b.Type) {
		detail = "move it out of all blocks"
	}
	if detail == "" {
		detail = cmp.Or(listed.once(orList("", "its blocks are", r.blocks)), "it has only arguments")
	}
	d.fail("unknown-block", where, fmt.Sprintf("%s has no block %q", what, b.Type), detail)
}

func (d *decoder) duplicate(second, first hcl.Range, summary string) {
	d.fail("duplicate", d.f.rng(second), summary, "keep one of them", diag.Note{Range: d.f.rng(first), Message: "the first one is here"})
}

// blocks returns the blocks of body that the rule allows and that have all labels.
func blocks(body *hclsyntax.Body, r *rule) []*hclsyntax.Block {
	usable := make([]*hclsyntax.Block, 0, len(body.Blocks))
	for _, b := range body.Blocks {
		if !r.hasBlock(b.Type) {
			continue
		}
		if br := r.block(b.Type); len(b.Labels) == len(br.labels) {
			usable = append(usable, b)
		}
	}
	return usable
}

// ofType returns the blocks of one type.
func ofType(all []*hclsyntax.Block, block string) (found []*hclsyntax.Block) {
	for _, b := range all {
		if b.Type == block {
			found = append(found, b)
		}
	}
	return found
}

// longestList bounds the names that a message lists.
const longestList = 24

// orList returns the suggestion, or else the names if there are not too many.
func orList(suggestion, lead string, names []string) string {
	if suggestion != "" || len(names) == 0 || len(names) > longestList {
		return suggestion
	}
	return lead + " " + strings.Join(names, ", ")
}

func countLabels(n int) string {
	switch n {
	case 0:
		return "no label"
	case 1:
		return "one label"
	default:
		return fmt.Sprintf("%d labels", n)
	}
}

// synonyms maps words of other languages to possible arguments and blocks. The first one that
// the block allows is suggested.
var synonyms = map[string][]string{
	"tools": {"call"}, "environment": {"env"},
	"url": {"uri", "uri_template", "src"}, "uri": {"uri_template", "uri_prefix"}, "prefix": {"uri_prefix"},
	"content": {"text"}, "contents": {"text"}, "body": {"run"}, "code": {"run"}, "script": {"run"},
	"blob": {"base64"}, "data": {"base64"}, "path": {"root", "file"}, "dir": {"root"}, "folder": {"root", "resource_folder"},
	"template": {"uri_template", "resource_template"}, "text": {"message"}, "messages": {"message"}, "enum": {"values"},
	"input": {"argument", "param"}, "argument": {"param", "input"}, "param": {"argument", "input"}, "variable": {"param"},
}

// suggest returns the argument or block that was probably intended by an invalid name, or "".
func (r *rule) suggest(written string) string {
	return cmp.Or(r.synonym(written), diag.Suggest(written, r.names()))
}

// synonym returns an allowed argument or block with this synonym, or "".
func (r *rule) synonym(written string) string {
	names := r.names()
	for _, other := range synonyms[written] {
		if slices.Contains(names, other) {
			return other
		}
	}
	return ""
}

// didYouMean returns a question with the suggestion, or "".
func (r *rule) didYouMean(written string) string {
	if meaning := r.suggest(written); meaning != "" {
		return fmt.Sprintf("did you mean %q?", meaning)
	}
	return ""
}

// hasSimilar reports whether body contains one of the names, or a name that is reported as a
// misspelling of one.
func (d *decoder) hasSimilar(body *hclsyntax.Body, r *rule, names ...string) bool {
	near := func(written string) bool {
		if r.arg(written) == nil && !r.hasBlock(written) {
			written = r.suggest(written)
		}
		return slices.Contains(names, written)
	}
	for name := range body.Attributes {
		if near(name) {
			return true
		}
	}
	return slices.ContainsFunc(body.Blocks, func(b *hclsyntax.Block) bool { return near(b.Type) })
}
