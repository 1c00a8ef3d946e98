// Package compiler checks a script or agent code, and compiles it to a program.
//
// [Compile] takes a source and returns a [Program] for goja, or diagnostics. Package syntax checks
// the text first; transpile.go lowers TypeScript and imports; function.go wraps and parses the
// script; check.go and related files check names, members, promises and results. The files
// code_*.go have the additional parts for agent code: tool names, fences, imports and an implicit
// result. The package runs nothing and calls no host. Tests that run compiled programs are in
// package scripting.
package compiler

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"path"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
	"github.com/mcpd/mcpd/scripting/transpile"
)

// Compile checks and compiles src. It returns a program unless the list has an error. For a script
// with a syntax error, the list has only the first one. All ranges are in the file of src.Text or
// in an imported file.
func Compile(src source.Source) (*Program, diag.List) {
	src = trialOnce(src)
	text := src.Text.Body()
	var removed *importRemover
	switch {
	case src.Kind != source.Code:
	case !utf8.ValidString(text): // the parser reports the first invalid byte, also in a fence or an import
		removed = &importRemover{}
	default:
		around := fenced(text)
		text, removed = removeImports(around.without(text))
		removed.fence = around
	}
	c := newCompilation(src, text, removed)
	program := c.compile()
	switch {
	case !c.broken || program != nil || src.Language != source.JS: // text that parses is JavaScript
	case src.Kind == source.Code && src.Transpiler != nil:
		c, program = c.compileAsTypeScript()
	default:
		c.suggestTypeScript()
	}
	list := c.list
	if removed != nil {
		list = append(list, removed.warnings(src.Text)...)
	}
	if list = list.Sort(); list.HasErrors() {
		return nil, list
	}
	return program, list
}

// trialOnce returns the source with a trial that runs once, however often the script is compiled.
func trialOnce(src source.Source) source.Source {
	if src.Trial == nil {
		return src
	}
	given := src
	tried := sync.OnceValue(func() error { return given.Trial(given) })
	src.Trial = func(source.Source) error { return tried() }
	return src
}

type compilation struct {
	src  source.Source
	list diag.List
	// broken is set if list has only syntax errors.
	broken bool
	// text is the script. In agent code, white space replaces removed imports. In a module, the
	// declaration of a constant replaces the words export default.
	text string
	// end is the statement after the text of a module; otherwise empty.
	end         string
	removed     *importRemover    // of agent code; otherwise nil
	tools       *ToolNames        // see [compilation.names]
	defined     map[string]bool   // see [compilation.isDefined]
	suggestions map[string]string // see [compilation.suggestTool]
	// digest and semantic become the hashes of the program.
	digest, semantic hash.Hash
	origin           Origin
	// files are the imported files; read is the size of these files and the script.
	files map[string]diag.Text
	read  int
}

func newCompilation(src source.Source, text string, removed *importRemover) *compilation {
	return &compilation{src: src, text: text, removed: removed, digest: sha256.New(), semantic: sha256.New()}
}

// compileAsTypeScript compiles agent code that is not JavaScript as TypeScript: the agent does not
// declare the language. If it is neither, the language with the later error counts.
func (c *compilation) compileAsTypeScript() (*compilation, *Program) {
	src := c.src
	src.Language = source.TS
	typed := newCompilation(src, c.text, c.removed)
	program := typed.compile()
	if typed.broken && typed.list[0].Range.Start.Line <= c.list[0].Range.Start.Line {
		return c, nil
	}
	return typed, program
}

func (c *compilation) compile() *Program {
	if size := len(c.text); size > source.MaxScript {
		detail := "move parts of it into files and import them, or move data into a JSON file"
		if c.src.Kind == source.Code {
			detail = "split it into several programs; each returns what the next one needs"
		}
		c.fail(c.src.Text.Range(0, 0), "script-size", fmt.Sprintf("the %s has %d bytes, more than the %d that are allowed", c.kindName(), size, source.MaxScript), detail)
		return nil
	}
	c.hashSource()
	c.read = len(c.text)
	features, refused := syntax.Check(c.text, c.src.Language == source.TS)
	if refused != nil {
		d := refused.Diagnostic(c.src.Text)
		if c.src.Kind == source.Code && strings.Contains(d.Summary, "import") {
			d.Detail, _ = unknownCodeNameAdvice("require")
		}
		c.reject(d)
		return nil
	}
	if len(features.Exports) > 0 && !c.declareMain(features) {
		return nil
	}
	transpiled, ok := c.transpiled(features)
	if !ok || c.checkTokens(features) || !c.trialCompile(features) {
		return nil
	}
	if transpiled {
		if !c.lower(features) {
			return nil
		}
	} else {
		c.wrapScript(features.Await)
	}
	return c.parseAndBuild()
}

// reject reports syntax errors, and drops earlier diagnostics: they may be consequences.
func (c *compilation) reject(errors ...diag.Diagnostic) {
	c.list, c.broken = errors, true
}

func (c *compilation) names() *ToolNames {
	if c.tools == nil {
		c.tools = newToolNames(&c.src)
	}
	return c.tools
}

// suggestTool is [ToolNames.suggest], cached for each name because it compares all tools.
func (c *compilation) suggestTool(name string) string {
	guess, known := c.suggestions[name]
	if !known {
		if c.suggestions == nil {
			c.suggestions = map[string]string{}
		}
		guess = c.names().suggest(name)
		c.suggestions[name] = guess
	}
	return guess
}

// isDefined reports whether a name is a global of the script.
func (c *compilation) isDefined(name string) bool {
	if c.defined == nil {
		c.defined = setOf(globalsOf(&c.src, c.names()))
	}
	return c.defined[name] || builtinSet()[name]
}

// reportExports reports the first export.
func (c *compilation) reportExports(word syntax.Span) {
	detail := "it is the body of a function: drop export and the function around the statements, and return the result" + c.inputHint() + "; only a script in a file of its own can be a module"
	summary := "a script exports nothing"
	if c.src.Kind == source.Code {
		summary, detail = "code exports nothing", "drop export: the result is the value of the last expression, or of return"
	}
	c.reject(diag.Diagnostic{Code: "script-syntax", Range: c.src.Text.Range(word.Start, word.End), Summary: summary, Detail: detail})
}

// trialCompile reports whether the script may be compiled in this process. If not, it adds a
// diagnostic.
func (c *compilation) trialCompile(found syntax.Features) bool {
	if c.src.Trial == nil || len(c.src.Text.Body()) <= maxWithoutTrial && len(found.Modules) == 0 {
		return true
	}
	err := c.src.Trial(c.src)
	if err != nil {
		c.fail(c.src.Text.Range(0, 0), "script-too-costly", "the script cannot be compiled safely: "+err.Error(),
			"the script, or a file that it imports, takes too much time or memory to compile; use fewer and simpler expressions, and move data into a JSON file")
	}
	return err == nil
}

// maxWithoutTrial is the maximum size of a script that is compiled without a trial.
const maxWithoutTrial = 4 << 10

func (c *compilation) fail(at diag.Range, code, summary, detail string) {
	c.list = append(c.list, diag.Diagnostic{Code: code, Summary: summary, Detail: detail, Range: at})
}

// syntaxError reports the first error of the engine; the others are usually consequences.
func (c *compilation) syntaxError(err error) {
	var found parser.ErrorList
	var late *goja.CompilerSyntaxError
	offset, message := len(c.origin.src), err.Error()
	switch {
	case errors.As(err, &found) && len(found) > 0:
		first := found[0]
		offset, message = c.origin.offset(first.Position.Line, first.Position.Column), first.Message
	case errors.As(err, &late):
		message = late.Message
		if late.File != nil {
			offset = late.Offset
		}
	}
	text, at, ok := c.origin.original(offset)
	if !ok || !c.origin.lowered && offset >= c.origin.body.to+c.origin.body.length {
		c.reject(c.endsEarly())
		return
	}
	where := callee(text, at).Range()
	detail := c.advise(message, text.Body(), at)
	if strings.HasSuffix(strings.TrimSpace(c.origin.src[:min(offset, len(c.origin.src))]), "await") {
		detail = "await needs an async function: write async before the function around it"
	}
	c.reject(diag.Diagnostic{Code: "script-syntax", Summary: plain(message), Detail: cmp.Or(c.adviseObject(where), detail), Range: where})
}

// endsEarly returns a syntax error at the end of the script.
func (c *compilation) endsEarly() diag.Diagnostic {
	end := len(strings.TrimRightFunc(c.text, unicode.IsSpace))
	return diag.Diagnostic{
		Code: "script-syntax", Range: c.src.Text.Range(max(0, end-1), end),
		Summary: "the " + c.kindName() + " ends unexpectedly", Detail: "something before its end is incomplete",
	}
}

// advise returns advice for a message of a compiler at an offset of a text.
func (c *compilation) advise(message, text string, at int) string {
	if isParseError(message) && c.src.Kind == source.Code {
		if advice := pythonSyntaxHint(errorContextAt(text, at, message)); advice != "" {
			return advice
		}
	}
	if isParseError(message) {
		if advice := syntaxHint(text, at, message); advice != "" {
			return advice
		}
	}
	return cmp.Or(lookUp(advice, message), lookUp(generic, message), correctIt)
}

// maxHintSize is the maximum size of a script that is parsed twice more for advice on a syntax
// error.
const maxHintSize = 8 << 10

// suggestTypeScript changes the advice for a syntax error in JavaScript if the script is
// valid TypeScript.
func (c *compilation) suggestTypeScript() {
	if !c.broken || c.src.Language != source.JS || c.src.Transpiler == nil || len(c.text) > maxHintSize || !c.parses(source.TS) || c.parses(source.JS) {
		return
	}
	first := &c.list[0]
	first.Detail = "it looks like TypeScript: start the script with <<TS instead of <<JS"
	if ext := path.Ext(c.src.Path); ext == ".js" || ext == ".mjs" {
		first.Detail = "it looks like TypeScript: call the file .ts instead of " + ext
	}
}

func (c *compilation) parses(language source.Language) bool {
	found, refused := syntax.Check(c.text, language == source.TS)
	if refused != nil || !c.trialCompile(found) {
		return false
	}
	in := transpile.Input{Source: c.newWrappedSource(found.Modules).src, TypeScript: language == source.TS, Check: true, MaxErrors: 1}
	return len(c.src.Transpiler.Transpile(in).Errors) == 0
}
