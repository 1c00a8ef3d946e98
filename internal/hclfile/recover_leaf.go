package hclfile

import (
	"bytes"
	"regexp"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// assignment is the beginning of an argument.
var assignment = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_-]*)[ \t]*=(?:[^=>]|$)`)

// open reads the heading of a block.
func (r *reader) open(p piece) {
	b := r.heading(p)
	if b.Type == "" {
		r.f.left.beVague(r.top().body)
	} else {
		r.top().body.Blocks = append(r.top().body.Blocks, b)
	}
	brace := p.brace
	if brace < 0 {
		brace = p.from
	}
	r.frames = append(r.frames, frame{rule: r.childRule(b.Type), body: b.Body, block: b, indent: p.indent, brace: brace})
	if inner := bytes.TrimSpace(r.src[min(brace+1, p.to):p.to]); p.brace >= 0 && len(inner) > 0 && !endsLine(inner) {
		r.presumeArguments(b.Body, brace+1, p.to)
	}
}

// heading parses the line on which a block begins. It reports what is wrong
// with it, and returns what it seems to be.
func (r *reader) heading(p piece) *hclsyntax.Block {
	to, tail := p.to, "\n"
	if p.brace >= 0 && len(bytes.TrimSpace(r.src[p.brace+1:p.to])) == 0 && !bytes.Contains(r.src[p.from:p.brace], []byte("\n")) {
		to, tail = p.brace+1, "}\n"
	} else if i := bytes.IndexByte(r.src[p.from:p.to], '\n'); i >= 0 {
		to = p.from + i
	}
	if p.problem == nil && r.spend(p.words, p.from) {
		parsed, found := r.parse(p.from, to, nil, tail)
		if firstFatal(found) < 0 && len(parsed.Blocks) == 1 {
			parsed.Blocks[0].Body = &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
			return parsed.Blocks[0]
		}
		if r.failParsed(found); len(parsed.Attributes) > 0 {
			r.fail(scanProblem{"syntax", p.equals, p.equals + 1, noEqualsHere, `remove the "="`})
		}
	} else if p.problem != nil {
		r.fail(*p.problem)
	}
	r.f.left.leaveOut(r.f.source, p.from, to)
	return r.presumed(p.head)
}

// leaf parses an argument or a block on one line, and reports whether it could.
func (r *reader) leaf(p piece) bool {
	if p.problem != nil {
		r.fail(*p.problem)
		r.leaveOut(p)
		return false
	}
	if !r.spend(p.words, p.from) {
		return false
	}
	parsed, found := r.parse(p.from, p.to, p.heredocs, "\n")
	if firstFatal(found) >= 0 {
		if rule, h := r.top().rule, p.head; p.equals < 0 && (p.brace >= 0 || len(h.labels) > 0) && rule.arg(h.name) != nil && !rule.hasBlock(h.name) {
			r.fail(scanProblem{"syntax", h.from, h.nameEnd, noEquals, "write " + h.name + " = …"})
		} else {
			r.failParsed(found)
		}
		r.leaveOut(p)
		return false
	}
	r.problems = append(r.problems, r.f.syntaxProblems(found)...)
	r.merge(parsed)
	return true
}

// presumed returns a block as its heading seems to mean it.
func (r *reader) presumed(h heading) *hclsyntax.Block {
	rule := r.top().rule
	b := &hclsyntax.Block{Type: h.name, Body: &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}}
	if h.name == "" {
		return b
	}
	b.TypeRange = r.rng(h.from, h.nameEnd)
	if meant := rule.meaning(h.name); !rule.hasBlock(h.name) && rule.hasBlock(meant) {
		b.Type = meant
	}
	labels := h.labels
	if rule.hasBlock(b.Type) {
		labels = labels[:min(len(labels), len(rule.block(b.Type).labels))]
	}
	for _, l := range labels {
		b.Labels, b.LabelRanges = append(b.Labels, l.text), append(b.LabelRanges, r.rng(l.from, l.to))
	}
	b.OpenBraceRange = r.rng(h.end, h.end)
	return b
}

// leaveOut presumes what a piece with a mistake would have declared.
func (r *reader) leaveOut(p piece) {
	r.f.left.leaveOut(r.f.source, p.from, p.to)
	top, name := r.top(), p.head.name
	switch {
	case name == "":
		r.f.left.beVague(top.body)
	case p.equals < 0 && p.brace >= 0 && top.rule.arg(name) == nil, top.rule.hasBlock(name) && top.rule.arg(name) == nil:
		b := r.presumed(p.head)
		if b.CloseBraceRange = r.rng(p.to, p.to); p.brace >= 0 {
			r.presumeArguments(b.Body, p.brace+1, p.to)
		} else {
			r.f.left.beVague(b.Body)
		}
		top.body.Blocks = append(top.body.Blocks, b)
	default:
		if !r.presumeArgument(top.body, top.rule, name, p.head.from, p.head.nameEnd) {
			r.f.left.beVague(top.body)
		}
		r.presumeKnown(top.body, top.rule, p.from, p.to)
	}
}

// presumeKnown presumes what looks like arguments of a rule in a part of the source.
func (r *reader) presumeKnown(body *hclsyntax.Body, rule *rule, from, to int) {
	for _, at := range assignment.FindAllSubmatchIndex(r.src[from:to], maxDefinition) {
		if name := string(r.src[from+at[2] : from+at[3]]); rule.arg(name) != nil {
			r.presumeArgument(body, rule, name, from+at[2], from+at[3])
		}
	}
}

// presumeArguments presumes what looks like arguments in a part of the source.
func (r *reader) presumeArguments(body *hclsyntax.Body, from, to int) {
	r.f.left.beVague(body)
	for _, at := range assignment.FindAllSubmatchIndex(r.src[from:to], maxDefinition) {
		r.presumeArgument(body, &rule{open: true}, string(r.src[from+at[2]:from+at[3]]), from+at[2], from+at[3])
	}
}

// presumeArgument adds an argument of no value, or reports that the rule knows
// none of the name.
func (r *reader) presumeArgument(body *hclsyntax.Body, rule *rule, name string, from, to int) bool {
	if !rule.open && rule.arg(name) == nil {
		if name = rule.meaning(name); rule.arg(name) == nil {
			return false
		}
	}
	if body.Attributes[name] == nil {
		where := r.rng(from, to)
		body.Attributes[name] = &hclsyntax.Attribute{
			Name: name, NameRange: where, SrcRange: where, EqualsRange: where,
			Expr: &hclsyntax.LiteralValueExpr{Val: cty.DynamicVal, SrcRange: where},
		}
	}
	return true
}
