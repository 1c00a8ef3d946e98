package hclfile

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// code decodes an argument with code in one of the languages; the first is the language of a
// quoted string. Code is never computed: the text in the file is the code. It returns nil if it
// reported an error.
func (d *decoder) code(attr *hclsyntax.Attribute, languages ...string) *definition.Code {
	switch x := attr.Expr.(type) {
	case *hclsyntax.TemplateExpr:
		return d.codeText(attr, x, languages)
	case *hclsyntax.FunctionCallExpr:
		if x.Name == "file" && isScript(languages) {
			return d.codeFile(x, languages)
		}
	}
	d.fail("wrong-type", d.f.rng(attr.Expr.Range()), fmt.Sprintf("%q must be literal code", attr.Name), codeForms(attr.Name, languages))
	return nil
}

func codeForms(name string, languages []string) string {
	tag := strings.ToUpper(languages[0])
	s := fmt.Sprintf("write %s = <<%s … %s", name, tag, tag)
	if !isScript(languages) {
		return s + ", or a quoted string without ${…}"
	}
	return s + `, or file("x.js")`
}

func (d *decoder) codeText(attr *hclsyntax.Attribute, x *hclsyntax.TemplateExpr, languages []string) *definition.Code {
	where := d.f.rng(x.SrcRange)
	if h := d.f.heredocAt(x); h != nil {
		language, raw := rawLanguage(h.tag)
		switch {
		case !raw:
			d.fail("wrong-heredoc", where, fmt.Sprintf("a heredoc tagged %s is text, not code", h.tag), codeForms(attr.Name, languages))
		case !slices.Contains(languages, language):
			d.fail("wrong-heredoc", where, fmt.Sprintf("%q cannot hold %s", attr.Name, h.tag), codeForms(attr.Name, languages))
		default:
			return d.nonEmptyCode(definition.Code{Language: language, Text: h.text(d.f)}, where)
		}
		return nil
	}
	for _, part := range x.Parts {
		if l, ok := part.(*hclsyntax.LiteralValueExpr); !ok || l.Val.Type() != cty.String {
			d.fail("wrong-type", d.f.rng(part.Range()), fmt.Sprintf("%q must be literal code, without ${…} and %%{…}", attr.Name), codeForms(attr.Name, languages))
			return nil
		}
	}
	if d.f.source[where.Start.Byte] == '<' {
		d.fail("wrong-heredoc", where, "this heredoc is text, not code", codeForms(attr.Name, languages))
		return nil
	}
	text := d.f.quotedText(where)
	if name := text.Body(); isScript(languages) && isScriptPath(name) {
		detail := fmt.Sprintf("write %s = file(%q)", attr.Name, path.Clean(name))
		if isJSON(d.f.path) {
			detail = "write the code in the string, or use a .hcl file: " + detail
		}
		d.fail("bad-value", where, fmt.Sprintf("%q is the name of a file, not code", attr.Name), detail)
		return nil
	}
	return d.nonEmptyCode(definition.Code{Language: languages[0], Text: text}, where)
}

// isScript reports whether the languages are script languages. Scripts may be in separate
// files.
func isScript(languages []string) bool {
	return languages[0] != definition.CEL && languages[0] != definition.SQL
}

// isScriptPath reports whether the text is the path of a script. It could also be JavaScript
// that reads a member and ignores it.
func isScriptPath(s string) bool {
	_, known := scriptLanguages[path.Ext(s)]
	return known && strings.Trim(s, definition.WordCharacters+".-/") == ""
}

// nonEmptyCode returns b, or reports empty code and returns nil.
func (d *decoder) nonEmptyCode(b definition.Code, where diag.Range) *definition.Code {
	if strings.TrimSpace(b.Text.Body()) == "" {
		d.fail("bad-value", where, "the code is empty", "write an expression or a script")
		return nil
	}
	return &b
}

// scriptLanguages maps file extensions to languages.
var scriptLanguages = map[string]string{".js": definition.JavaScript, ".mjs": definition.JavaScript, ".ts": definition.TypeScript, ".mts": definition.TypeScript}

// codeFile reads the script of file("x.js").
func (d *decoder) codeFile(x *hclsyntax.FunctionCallExpr, languages []string) *definition.Code {
	written, name, content, ok := d.eval.openFile(x)
	if !ok {
		return nil
	}
	language, known := scriptLanguages[path.Ext(name)]
	if !known || !slices.Contains(languages, language) {
		d.fail("bad-path", d.f.rng(x.Args[0].Range()), "the file has no script extension", "name it .js or .ts")
		return nil
	}
	return d.nonEmptyCode(definition.Code{Language: language, Text: diag.WholeFile(d.f.displayPath(written), string(content)), Path: name}, d.f.rng(x.Range()))
}

// displayPath returns the name in messages for a path relative to f.
func (f *File) displayPath(written string) string { return path.Join(path.Dir(f.path), written) }

// quotedText returns the text of the quoted string at r, which has no template, with its
// positions.
func (f *File) quotedText(r diag.Range) diag.Text {
	if isJSON(f.path) {
		t, _ := jsonText(f, f.source, r.Start.Byte+1)
		return t
	}
	b := diag.TextBuilder{File: f.path}
	src := f.source[r.Start.Byte+1 : max(r.Start.Byte+1, r.End.Byte-1)]
	pos := diag.Advance(r.Start, `"`)
	for {
		n := plainPrefix(src)
		b.Add(src[:n], pos)
		if n == len(src) {
			return b.Text()
		}
		pos, src = diag.Advance(pos, src[:n]), src[n:]
		value, size := unescapeHCL(src)
		b.Add(value, pos)
		pos, src = diag.Advance(pos, src[:size]), src[size:]
	}
}

// plainPrefix returns the length of s before its first escape.
func plainPrefix(s string) int {
	n := strings.IndexByte(s, '\\')
	if n < 0 {
		n = len(s)
	}
	if i := indexEscape(s); i >= 0 && i < n {
		n = i
	}
	return n
}

// unescapeHCL returns the value and length of the escape at the start of s.
func unescapeHCL(s string) (value string, size int) {
	if s[0] != '\\' {
		return s[:1] + "{", 3 // $${ or %%{
	}
	if len(s) < 2 {
		return s, len(s)
	}
	switch s[1] {
	case 'n':
		return "\n", 2
	case 'r':
		return "\r", 2
	case 't':
		return "\t", 2
	case 'u':
		return unescapeRune(s, 6)
	case 'U':
		return unescapeRune(s, 10)
	default:
		return s[1:2], 2
	}
}

func unescapeRune(s string, size int) (string, int) {
	size = min(size, len(s))
	n, err := strconv.ParseUint(s[2:size], 16, 32)
	if err != nil {
		return string(utf8.RuneError), size
	}
	return string(rune(n)), size
}
