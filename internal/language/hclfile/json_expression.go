package hclfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

func (p *jsonParser) expression(f form) hclsyntax.Expression {
	c := p.peek()
	switch start := p.at; {
	case c == '{':
		return p.object(f, start)
	case c == '[':
		var exprs []hclsyntax.Expression
		p.items(func() { exprs = append(exprs, p.expression(f)) })
		return &hclsyntax.TupleConsExpr{Exprs: exprs, SrcRange: p.rng(start), OpenRange: p.rng(start)}
	case c == '"':
		return p.stringExpression(f, start)
	default:
		for p.at < len(p.src) && strings.IndexByte(" \t\r\n,]}", p.src[p.at]) < 0 {
			p.at++
		}
		return p.scalar(p.src[start:p.at], p.rng(start))
	}
}

func (p *jsonParser) object(f form, start int) hclsyntax.Expression {
	x := &hclsyntax.ObjectConsExpr{}
	p.members(func(key string, where hcl.Range) {
		k := &hclsyntax.ObjectConsKeyExpr{Wrapped: literalText(key, where), ForceNonLiteral: true}
		x.Items = append(x.Items, hclsyntax.ObjectConsItem{KeyExpr: k, ValueExpr: p.expression(f)})
	})
	x.SrcRange, x.OpenRange = p.rng(start), p.rng(start)
	return x
}

func (p *jsonParser) scalar(word string, where hcl.Range) hclsyntax.Expression {
	v := cty.NullVal(cty.DynamicPseudoType)
	switch word {
	case "true":
		v = cty.True
	case "false":
		v = cty.False
	case "null":
	default:
		n, err := cty.NullVal(cty.Number), error(nil)
		if len(word) <= maxNumber {
			n, err = cty.ParseNumberVal(word)
		}
		if err != nil || n.IsNull() {
			p.fail(where, "too-large", fmt.Sprintf("the number is longer than %d bytes", maxNumber), fewerDigits)
		}
		v = n
	}
	return &hclsyntax.LiteralValueExpr{Val: v, SrcRange: where}
}

// literalText returns the expression of a string without templates.
func literalText(s string, where hcl.Range) *hclsyntax.TemplateExpr {
	return &hclsyntax.TemplateExpr{
		Parts:    []hclsyntax.Expression{&hclsyntax.LiteralValueExpr{Val: cty.StringVal(s), SrcRange: where}},
		SrcRange: where,
	}
}

// stringExpression reads a string in the given form.
func (p *jsonParser) stringExpression(f form, start int) hclsyntax.Expression {
	t := p.text()
	where := p.rng(start)
	body := t.Body()
	switch {
	case f == typeName:
		return p.embed(t, where, scan, hclsyntax.ParseExpression)
	case f == expression && (strings.Contains(body, "${") || strings.Contains(body, "%{")):
		return p.embed(t, where, scanTemplate, hclsyntax.ParseTemplate)
	default:
		return literalText(body, where)
	}
}

type (
	scanFunc  func([]byte) ([]heredoc, *scanProblem)
	parseFunc func([]byte, string, hcl.Pos) (hclsyntax.Expression, hcl.Diagnostics)
)

// embed parses the text of a string separately. Ranges in the result refer to it by number,
// which File.rng resolves.
func (p *jsonParser) embed(t diag.Text, where hcl.Range, scan scanFunc, parse parseFunc) hclsyntax.Expression {
	failed := &hclsyntax.LiteralValueExpr{Val: cty.DynamicVal, SrcRange: where}
	if !p.spend(embeddedWords + len(t.Body())/4) {
		return failed
	}
	heredocs, problem := scan([]byte(t.Body()))
	if problem != nil {
		p.problems = append(p.problems, diag.Diagnostic{
			Code: problem.code, Summary: problem.summary, Detail: problem.detail, Range: t.Range(problem.start, problem.end),
		})
		return failed
	}
	if len(heredocs) > 0 {
		p.fail(where, "syntax", "a JSON string cannot contain a heredoc", "write the text as a separate string")
		return failed
	}
	p.f.embedded = append(p.f.embedded, t)
	x, found := parse([]byte(t.Body()), strconv.Itoa(len(p.f.embedded)-1), hcl.InitialPos)
	if first := firstFatal(found); first != nil {
		p.problems = append(p.problems, p.f.syntaxProblem(first))
	}
	return x
}

// text reads a string with its positions, also for escapes.
func (p *jsonParser) text() diag.Text {
	p.take('"')
	t, end := jsonText(p.f, p.src, p.at)
	p.at = end
	return t
}

// jsonText decodes a JSON string; start is the offset after its opening quote. It returns the
// offset after the closing quote.
func jsonText(f *File, src string, start int) (diag.Text, int) {
	b := diag.TextBuilder{File: f.path}
	at, pos := start, f.pos(start)
	for {
		n := strings.IndexAny(src[at:], `"\`)
		if n < 0 {
			n = len(src) - at
		}
		if n > 0 || at == start || at >= len(src) || src[at] == '"' { // the end has a position too
			b.Add(src[at:at+n], pos)
			pos = diag.Advance(pos, src[at:at+n])
		}
		at += n
		if at >= len(src) || src[at] == '"' {
			return b.Text(), min(at+1, len(src))
		}
		text := []byte(src[at:min(at+longestEscape, len(src))])
		r, size := jsontext.Escape(text)
		size = max(size, 1) // 0 for an invalid escape, which checkJSON has rejected
		b.Add(string(r), pos)
		pos = diag.Advance(pos, src[at:at+size])
		at += size
	}
}

// longestEscape is the length of a surrogate pair.
const longestEscape = len(`\uD83D\uDE00`)
