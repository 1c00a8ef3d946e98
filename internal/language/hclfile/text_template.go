package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

const (
	openSlot, closeSlot = "{{", "}}"
	// escapedSlot is the escape of openSlot.
	escapedSlot = "{{{{"
)

// textTemplate decodes a text with placeholders for the given names. It returns nil if the
// argument is missing or was reported. what describes the names, such as "argument".
func (d *decoder) textTemplate(body *hclsyntax.Body, name, what string, names []string) definition.TextTemplate {
	if attr := body.Attributes[name]; attr != nil && d.interpolates(attr.Expr, what, names) {
		return nil
	}
	text, ok := d.text(body, name)
	if !ok {
		return nil
	}
	phrase, bad := definition.TextTemplate{}, map[string]bool{}
	var literal []byte
	fail := func(slot string, start, end int, code, summary, detail string) {
		if !bad[slot] && len(d.problems) < maxCollected { // partRange takes time
			d.fail(code, d.partRange(body.Attributes[name].Expr, text, start, end), summary, detail)
		}
		bad[slot] = true
	}
	for at := 0; at < len(text); {
		open := strings.Index(text[at:], openSlot)
		if open < 0 {
			literal = append(literal, text[at:]...)
			break
		}
		literal = append(literal, text[at:at+open]...)
		start := at + open
		at = start + len(openSlot)
		if strings.HasPrefix(text[start:], escapedSlot) {
			literal = append(literal, openSlot...)
			at = start + len(escapedSlot)
			continue
		}
		inner, _, found := strings.Cut(text[at:min(len(text), at+2*definition.MaxName)], closeSlot)
		slot := strings.Trim(inner, " ")
		if !found || !isIdentifier(slot) {
			fail("", start, at, "bad-value", "{{ is not followed by a name and }}", "write {{name}} to insert a value, or {{{{ for two braces")
			continue
		}
		at += len(inner) + len(closeSlot)
		if slices.Contains(names, slot) {
			phrase = append(withText(phrase, literal), definition.TemplatePart{Name: slot})
			literal = literal[:0]
			continue
		}
		detail := d.eval.didYouMean(slot, slices.Values(names))
		if detail == "" && len(names) == 0 {
			detail = fmt.Sprintf("declare it: %s %q {}; or write {{{{ for two braces", what, slot)
		}
		fail(slot, start, at, "unknown-name", fmt.Sprintf("there is no %s %s", what, d.eval.show(slot)), orList(detail, "the "+what+"s are", names))
	}
	if len(bad) > 0 {
		return nil
	}
	return withText(phrase, literal)
}

// withText appends a part of text, unless it is empty.
func withText(p definition.TextTemplate, text []byte) definition.TextTemplate {
	if len(text) == 0 {
		return p
	}
	return append(p, definition.TemplatePart{Text: string(text)})
}

// interpolates reports an HCL reference to a value that is only known when the text is
// rendered.
func (d *decoder) interpolates(x hclsyntax.Expression, what string, names []string) bool {
	for _, traversal := range hclsyntax.Variables(x) {
		last := traversal.RootName()
		if len(traversal) == 2 && slices.Contains([]string{"params", "args", "argument", "input"}, last) {
			if step, ok := traversal[1].(hcl.TraverseAttr); ok {
				last = step.Name
			}
		}
		if slices.Contains(names, last) {
			d.fail("unknown-name", d.f.rng(traversal.SourceRange()), fmt.Sprintf("the %s %q has no value while the file is loaded", what, last),
				fmt.Sprintf("write {{%s}} to insert it later", last))
			return true
		}
	}
	return false
}

// partRange returns the range of a part of a computed text, or the range of the whole if the part
// is not literal.
func (d *decoder) partRange(x hclsyntax.Expression, text string, start, end int) diag.Range {
	where := d.f.rng(x.Range())
	part := text[start:end]
	source := d.f.source[where.Start.Byte:where.End.Byte]
	at := 0
	for range strings.Count(text[:start], part) + 1 {
		i := strings.Index(source[at:], part)
		if i < 0 {
			return where
		}
		at += i + len(part)
	}
	at += where.Start.Byte
	return d.f.span(at-len(part), at)
}

// uri decodes an argument that is an absolute URI.
func (d *decoder) uri(body *hclsyntax.Body, name string) (string, bool) {
	s, ok := d.text(body, name)
	if !ok {
		return "", false
	}
	if problem, detail := checkURI(s); problem != "" {
		d.fail("bad-uri", d.f.rng(body.Attributes[name].Expr.Range()), problem, detail)
		return "", false
	}
	return s, true
}

// checkURI returns why s is not an absolute URI (RFC 3986 section 3).
func checkURI(s string) (problem, detail string) {
	if len(s) > uritemplate.MaxURI {
		return "the URI is too long", fmt.Sprintf("write at most %d bytes", uritemplate.MaxURI)
	}
	if i := definition.BadURIByte(s); i >= 0 {
		switch {
		case s[i] == '{' || s[i] == '}':
			return "a URI must not contain braces", "write a resource_template block for URIs with variables in {…}"
		case s[i] == '%':
			return "a % in the URI is not followed by two hexadecimal digits", "write %25 for a percent sign"
		default:
			return "the URI contains an invalid character", "percent-encode it, as in %20 for a space"
		}
	}
	if !definition.HasScheme(s) {
		return "the URI is not absolute", "start it with a scheme, such as \"docs://handbook\""
	}
	return "", ""
}
