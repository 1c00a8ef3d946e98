package hclfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// parseJSON parses HCL's JSON syntax to the tree of native syntax, so that all later steps are
// the same. The rules of the blocks decide which strings are templates, types or literal code.
// If the file has a syntax error, it reports only the first.
func (f *File) parseJSON() diag.List {
	p := jsonParser{f: f, src: f.source}
	if strings.HasPrefix(f.source, byteOrderMark) {
		p.at = len(byteOrderMark)
	}
	t := diag.TextBuilder{File: f.path}
	t.Add(f.source[p.at:], f.pos(p.at))
	if d := checkJSON(t.Text()); d != nil {
		return diag.List{*d}
	}
	if p.peek() != '{' {
		p.skip()
		p.fail(p.rng(0), "syntax", "the file must contain a JSON object", "write { \"tool\": { \"NAME\": { … } } }")
		return p.problems
	}
	body := p.body(fileRules[f.kind])
	if len(p.problems) > 0 {
		return p.problems.Sort()[:1]
	}
	f.body = body
	return nil
}

// checkJSON checks the syntax and the limits of a text, and returns its first error.
func checkJSON(t diag.Text) *diag.Diagnostic {
	err := jsonguard.Check([]byte(t.Body()), jsonguard.Limits{Bytes: maxFile, Depth: maxNesting, Tokens: maxTokens})
	if err == nil {
		return nil
	}
	d := diag.Diagnostic{Code: "syntax", Summary: err.Error(), Range: t.All()}
	var refused *jsonguard.Error
	if errors.As(err, &refused) {
		d.Summary = refused.Message
		d.Range = t.Range(refused.Offset, refused.Offset+1)
		switch refused.Kind {
		case jsonguard.TooDeep:
			d.Code = "too-deep"
		case jsonguard.TooLarge, jsonguard.TooMany, jsonguard.BadNumber:
			d.Code = "too-large"
		case jsonguard.DuplicateKey:
			d.Code, d.Detail = "duplicate", "keep one of them"
		case jsonguard.Syntax:
			d.Detail = jsonHint(t.Body(), refused.Offset)
		}
	}
	return &d
}

// jsonHint returns advice for common mistakes in JSON.
func jsonHint(body string, at int) string {
	first := strings.TrimLeft(body, " \t\r\n")
	switch rest := body[min(max(at, 0), len(body)):]; {
	case strings.HasPrefix(rest, conflictMark):
		return conflictHint
	case first != "" && isWord(first[0]):
		return `write a JSON object, or name the file .hcl if it is not JSON`
	case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "/*"):
		return `JSON has no comments; write a member "//": "…"`
	case strings.HasPrefix(rest, "}"), strings.HasPrefix(rest, "]"):
		return "remove the comma before it, or add the missing value"
	case strings.HasPrefix(rest, "'"):
		return "put strings in double quotes"
	case strings.HasPrefix(rest, "="):
		return "put a colon between a name and its value"
	case rest != "" && isWord(rest[0]) && !isDigit(rest[0]):
		return "put names and text in double quotes; write true, false and null in lower case"
	case strings.HasPrefix(rest, "\n"), strings.HasPrefix(rest, "\r"):
		return `close the string with a quote, or write \n for a line end`
	}
	return ""
}

// jsonParser parses a text with checked limits, so it is well formed and its depth is at most
// [maxNesting].
type jsonParser struct {
	f   *File
	src string
	at  int
	// depth is the number of open bodies.
	depth    int
	size     jsonSize
	problems diag.List
}

func (p *jsonParser) space() {
	for p.at < len(p.src) && strings.IndexByte(" \t\r\n", p.src[p.at]) >= 0 {
		p.at++
	}
}

func (p *jsonParser) peek() byte {
	p.space()
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

// take skips the punctuation c if it is next.
func (p *jsonParser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

func (p *jsonParser) rng(start int) hcl.Range {
	return hcl.Range{Start: hcl.Pos{Byte: start}, End: hcl.Pos{Byte: p.at}}
}

func (p *jsonParser) fail(where hcl.Range, code, summary, detail string) {
	if p.size.exceeded {
		return
	}
	p.problems = append(p.problems, diag.Diagnostic{Code: code, Range: p.f.rng(where), Summary: summary, Detail: detail})
}

// members reads an object and calls member at the value of each key.
func (p *jsonParser) members(member func(key string, where hcl.Range)) {
	p.take('{')
	for !p.take('}') && p.spend(memberWords) {
		start := p.at // at the quote: take has skipped the spaces
		key := p.text().Body()
		where := p.rng(start)
		p.take(':')
		member(key, where)
		p.take(',')
	}
}

// items reads an array and calls item at each value.
func (p *jsonParser) items(item func()) {
	p.take('[')
	for !p.take(']') && p.spend(1) {
		item()
		p.take(',')
	}
}

// skip skips one value.
func (p *jsonParser) skip() { p.expression(code) }

// comment is the name of a member with a comment.
const comment = "//"

func (p *jsonParser) body(r *rule) *hclsyntax.Body {
	b := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
	start := p.at
	p.depth++
	defer func() { p.depth-- }()
	p.members(func(key string, where hcl.Range) {
		switch {
		case key == comment:
			p.skip()
		case r.arg(key) == nil && rules[key] != nil:
			// This includes a misplaced block: its rule says how to read it.
			p.blocks(b, r.block(key), hclsyntax.Block{Type: key, TypeRange: where})
		default:
			p.attribute(b, r, key, where)
		}
	})
	b.SrcRange = p.rng(start)
	return b
}

func (p *jsonParser) attribute(b *hclsyntax.Body, r *rule, key string, where hcl.Range) {
	f := code // an unknown argument is reported only as unknown
	if a := r.arg(key); a != nil {
		f = a.form
	} else if r.anyArgument {
		f = expression
	}
	x := p.expression(f)
	b.Attributes[key] = &hclsyntax.Attribute{
		Name: key, Expr: x, NameRange: where, EqualsRange: where, SrcRange: hcl.RangeBetween(where, x.Range()),
	}
}

// blocks reads one or more blocks: an object with a member for each label, down to the body,
// where an array may hold several.
func (p *jsonParser) blocks(into *hclsyntax.Body, r *rule, head hclsyntax.Block) {
	if p.peek() == '[' {
		p.items(func() { p.blocks(into, r, head) })
		return
	}
	if len(head.Labels) < len(r.labels) && p.peek() == '{' {
		p.members(func(key string, where hcl.Range) {
			next := head
			next.Labels = append(head.Labels[:len(head.Labels):len(head.Labels)], key)
			next.LabelRanges = append(head.LabelRanges[:len(head.LabelRanges):len(head.LabelRanges)], where)
			p.blocks(into, r, next)
		})
		return
	}
	start := p.at
	if p.depth == 1 {
		p.define()
	}
	if p.peek() != '{' {
		p.skip()
		p.fail(p.rng(start), "syntax", fmt.Sprintf("%s must be a JSON object", article(head.Type)), "write "+jsonHeader(r))
		return
	}
	head.Body = p.body(r)
	head.OpenBraceRange = hcl.Range{Start: hcl.Pos{Byte: start}, End: hcl.Pos{Byte: start + 1}}
	head.CloseBraceRange = hcl.Range{Start: hcl.Pos{Byte: p.at - 1}, End: hcl.Pos{Byte: p.at}}
	into.Blocks = append(into.Blocks, &head)
}

// jsonHeader returns how to write a block in JSON, from its value on.
func jsonHeader(r *rule) string {
	open, end := "", ""
	for _, l := range r.labels {
		open += fmt.Sprintf("{%q: ", strings.ToUpper(l))
		end += "}"
	}
	return open + "{…}" + end
}

// jsonSize is the size of a JSON file, in words: an array item counts one, an object member
// [memberWords], and more if HCL parses its text.
type jsonSize struct {
	// definition counts the words since the last definition started, at the offset began.
	definition, began int
	definitions       int
	// exceeded means that the rest of the file is not read.
	exceeded bool
}

// define starts a top-level definition.
func (p *jsonParser) define() {
	p.size.definition, p.size.began = 0, p.at
	if p.size.definitions++; p.size.definitions > maxDefinitions {
		p.exceed(fmt.Sprintf("the file contains more than %d definitions", maxDefinitions), "split it into several files")
	}
}

// spend counts words, and reports whether the definition may contain so many.
func (p *jsonParser) spend(words int) bool {
	if p.size.definition += words; p.size.definition > maxDefinition {
		p.exceed(fmt.Sprintf("the definition that starts here contains more than %d values", maxDefinition),
			fmt.Sprintf("split it, or put data into a file that a script imports; an object member counts as %d values, a type or template as more", memberWords))
	}
	return !p.size.exceeded
}

// exceed stops reading the file.
func (p *jsonParser) exceed(summary, detail string) {
	if p.size.exceeded {
		return
	}
	p.size.exceeded = true
	p.problems = diag.List{{Code: "too-large", Range: p.f.span(p.size.began, p.size.began+1), Summary: summary, Detail: detail}}
	p.at = len(p.src)
}
