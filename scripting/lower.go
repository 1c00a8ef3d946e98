package scripting

import (
	"strings"

	"github.com/dop251/goja/ast"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/transpile"
)

// bodyMarker is the function that a lowered body is handed to, so that it can
// be found again behind what lowering puts in front of it.
const bodyMarker = "$mcpd$body$"

const (
	loweredStart = bodyMarker + "(async function(){{"
	loweredEnd   = "\n}});\n"
)

// maxLowered bounds what lowering and bundling may make of a body.
const maxLowered = 1 << 20

// transpiled reports whether a text needs a [Transpiler], and says so at the place in it if
// the program has none.
func (c *compilation) transpiled(f features) (needs, ok bool) {
	var at diag.Range
	var what string
	switch {
	case len(f.modules) > 0:
		at, what = c.src.Text.Range(f.modules[0].start, f.modules[0].end), "import declarations"
	case c.src.Language == TS:
		at, what = c.src.Text.Range(0, 0), "TypeScript"
	case f.lowering:
		at, what = c.src.Text.Range(f.lowered.start, f.lowered.end), "async generators and for await"
	default:
		return false, true
	}
	if c.src.Transpiler == nil {
		c.fail(at, MissingExtension, "this program cannot compile "+what,
			"import github.com/mcpd/mcpd/extensions/typescript into the program, and add typescript.New() to engine.Options.Extensions and typescript.Transpiler() to the arguments of worker.Main")
	}
	return true, c.src.Transpiler != nil
}

// lower makes source that the engine speaks of TypeScript, imports and what
// the engine lacks. It reports whether it could.
func (c *compilation) lower(f features) bool {
	if f.indents > maxLowered {
		c.tooLarge()
		return false
	}
	files := &modules{compilation: c, entry: newEntry(c.src.Text, c.text, f.modules)}
	in := transpile.Input{Source: files.entry.src, TypeScript: c.src.Language == TS, MaxErrors: maxReports}
	out := transpile.Output{}
	if len(f.modules) == 0 {
		out = c.src.Transpiler.Transpile(in)
	} else {
		out = files.bundle(in)
	}
	files.hash()
	c.files, c.read = files.files, c.read+files.bytes
	if len(out.Errors) > 0 {
		files.report(out.Errors)
		return false
	}
	if len(out.Code) > maxLowered {
		c.tooLarge()
		return false
	}
	if _, refused := inspect(string(out.Code), JS); refused != nil {
		c.fail(c.src.Text.Range(0, 0), "script-syntax", refused.summary, "this is said of the JavaScript that the body is compiled to; "+refused.detail)
		return false
	}
	return c.lowered(string(out.Code), out.Map, files)
}

func (c *compilation) tooLarge() {
	c.fail(c.src.Text.Range(0, 0), "script-size", "the body and what it imports are too large", "compiled, they may have at most 1 MiB")
}

// lowered sets the origin to what a compiler made.
func (c *compilation) lowered(code string, sourceMap []byte, files *modules) bool {
	c.origin = origin{src: wrapperStart + code + wrapperEnd, lowered: true}
	mappings, err := decodeSourceMap(sourceMap, code)
	if err != nil {
		c.fail(c.src.Text.Range(0, 0), "script-internal", "the body could not be compiled", "its source map is damaged: "+err.Error())
		return false
	}
	c.origin.texts, c.origin.mappings = files.resolve(mappings, len(wrapperStart))
	return true
}

// unwrapModule makes the body that a lowered module hands to [bodyMarker] what
// the module returns. It reports false when the module does no such thing.
func unwrapModule(function *ast.FunctionLiteral) bool {
	block := function.Body.List[0].(*ast.BlockStatement)
	if len(block.List) == 0 {
		return false
	}
	last := &block.List[len(block.List)-1]
	statement, ok := (*last).(*ast.ExpressionStatement)
	if !ok {
		return false
	}
	call, ok := statement.Expression.(*ast.CallExpression)
	if !ok || len(call.ArgumentList) != 1 {
		return false
	}
	callee, ok := call.Callee.(*ast.Identifier)
	body, isFunction := call.ArgumentList[0].(*ast.FunctionLiteral)
	if !ok || !isFunction || callee.Name != bodyMarker {
		return false
	}
	body.Async = awaits(body)
	*last = &ast.ReturnStatement{Return: callee.Idx, Argument: &ast.CallExpression{
		Callee: body, LeftParenthesis: call.LeftParenthesis, RightParenthesis: call.RightParenthesis,
	}}
	return true
}

// entry is the source that a compiler gets: the body inside its function, and
// behind it the import declarations, which may stand at the top level only.
type entry struct {
	src      string
	text     diag.Text
	body     string
	segments []segment
	// imports is where the import declarations begin in src.
	imports int
}

func newEntry(text diag.Text, body string, modules []module) *entry {
	e := &entry{text: text, body: body}
	var b strings.Builder
	b.WriteString(loweredStart)
	from := 0
	for _, m := range modules {
		e.copy(&b, from, m.start)
		b.WriteString(blank(body[m.start:m.end]))
		from = m.end
	}
	e.copy(&b, from, len(body))
	b.WriteString(loweredEnd)
	e.imports = b.Len()
	for _, m := range modules {
		e.copy(&b, m.start, m.end)
		b.WriteString("\n")
	}
	e.src = b.String()
	return e
}

func (e *entry) copy(b *strings.Builder, from, to int) {
	e.segments = append(e.segments, segment{to: b.Len(), from: from, length: to - from})
	b.WriteString(e.body[from:to])
}

// importsAlone returns src with white space for the body. The import
// declarations keep their places.
func (e *entry) importsAlone() string {
	end := e.imports - len(loweredEnd)
	return loweredStart + blank(e.src[len(loweredStart):end]) + e.src[end:]
}

// blank returns white space with the same lines as s.
func blank(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, s)
}

// offset returns the place in the body of a place in the entry, and false when
// the author did not write it.
func (e *entry) offset(at int) (int, bool) {
	for _, s := range e.segments {
		if at >= s.to && at <= s.to+s.length {
			return s.from + at - s.to, true
		}
	}
	return 0, false
}
