package scripting

import (
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/unistring"
	"github.com/evanw/esbuild/pkg/api"

	"github.com/mcpd/mcpd/diag"
)

// MaxBody is the most bytes that a body may have.
const MaxBody = 64 << 10

// The body stands in a block of the function, so that its declarations may
// take the names of globals, which are the function's parameters.
const (
	wrapperStart = "(async function(){{"
	wrapperEnd   = "\n}})"
)

// Compile checks and compiles src. It returns a program unless the list holds
// an error. All ranges are places in the file of src.Text, or in an imported file.
func Compile(src Source) (*Program, diag.List) {
	r := recovery{src: remembering(src), left: maxAgain}
	if src.Kind == Code {
		around := fenced(src.Text.Body())
		r.text, r.removed = withoutImports(around.without(src.Text.Body()))
		r.removed.fence = around
	}
	program := r.run()
	list := withoutEchoes(r.told.Sort())
	if list.HasErrors() {
		return nil, list
	}
	return program, list
}

// compilation is the work on one body.
type compilation struct {
	src  Source
	list diag.List
	// removed is what was left out of code, and text the code without it, at the
	// same places. Of other bodies there is neither.
	removed *leftOut
	text    string
	tools   *toolNames        // see [compilation.names]
	defined map[string]bool   // see [compilation.isDefined]
	guesses map[string]string // see [compilation.guess]
	// digest and meant become the hashes of the program.
	digest, meant hash.Hash
	origin        origin
	// patches are what is compiled instead of texts with mistakes.
	patches patches
	// spots are the mistakes of syntax that were found, also those that are
	// not told because they may come of what is left out.
	spots []spot
	// files are the imported files that were read, read is their size and that
	// of the body.
	files map[string]diag.Text
	read  int
	// cut says that the body could be cut into tokens.
	cut bool
	// stopped says that the tokens were reason enough to look no further.
	stopped bool
	// late says that the text could be parsed to its end.
	late bool
}

func (c *compilation) run() *Program {
	if size := len(c.src.Text.Body()); size > MaxBody {
		detail := "move parts of it into files and import them, or move data into a JSON file"
		if c.src.Kind == Code {
			detail = "do it in several programs, of which each returns what the next one needs"
		}
		c.fail(c.src.Text.Range(0, 0), "script-size", fmt.Sprintf("the %s has %d bytes, more than the %d that are allowed", c.what(), size, MaxBody), detail)
		return nil
	}
	c.hashSource()
	text := c.body()
	c.read = len(text)
	features, refused := inspect(text, c.src.Language)
	if refused != nil {
		told := refused.diagnostic(c.src.Text)
		if c.src.Kind == Code && strings.Contains(told.Summary, "import") {
			told.Detail, _ = absentOfCode("require")
		}
		c.mistake(told, spot{at: refused.start, refused: refused})
		return nil
	}
	c.cut = true
	if len(features.exports) > 0 {
		c.exporting(features.exports)
		return nil
	}
	if c.stopped = c.early(features); c.stopped || !c.tried(features) {
		return nil
	}
	if c.src.Language == TS || features.lowering || len(features.modules) > 0 {
		if !c.lower(features) {
			return nil
		}
	} else {
		if len(text) > maxUnproven && !c.proven() {
			return nil
		}
		c.verbatim(features.await)
	}
	return c.finish()
}

// body is the text to compile.
func (c *compilation) body() string { return c.patches.of("", c.written()) }

// written is the text without what is left out of code.
func (c *compilation) written() string {
	if c.removed != nil {
		return c.text
	}
	return c.src.Text.Body()
}

// names returns the names of the tools of code.
func (c *compilation) names() *toolNames {
	if c.tools == nil {
		c.tools = c.src.toolNames()
	}
	return c.tools
}

// guess is [toolNames.meant], which looks at every tool, once for each name.
func (c *compilation) guess(name string) string {
	guess, known := c.guesses[name]
	if !known {
		if c.guesses == nil {
			c.guesses = map[string]string{}
		}
		guess = c.names().meant(name)
		c.guesses[name] = guess
	}
	return guess
}

// isDefined reports whether a name is that of a global of the body.
func (c *compilation) isDefined(name string) bool {
	if c.defined == nil {
		c.defined = map[string]bool{}
		for _, list := range [][]string{globalsOf(&c.src, c.names()), builtins()} {
			for _, known := range list {
				c.defined[known] = true
			}
		}
	}
	return c.defined[name]
}

// exporting tells words with which nothing can be exported.
func (c *compilation) exporting(words []module) {
	detail := "it is the inside of a function: drop export and the function around the statements, and return the result" + c.argumentsAre()
	summary := "a body exports nothing"
	if c.src.Kind == Code {
		summary, detail = "code exports nothing", "drop export: the result is that of the last expression, or what return returns"
	}
	for _, at := range words[:min(len(words), maxReports)] {
		c.mistake(diag.Diagnostic{Code: "script-syntax", Range: c.src.Text.Range(at.start, at.end), Summary: summary, Detail: detail}, exportSpot(c.body(), at))
	}
}

// tried reports whether the body may be compiled in this process, and tells why
// not.
func (c *compilation) tried(found features) bool {
	if c.src.Trial == nil || len(c.src.Text.Body()) <= maxUnproven && len(found.modules) == 0 {
		return true
	}
	err := c.src.Trial(c.src)
	if err != nil {
		c.fail(c.src.Text.Range(0, 0), "script-too-costly", "the body cannot be compiled safely: "+err.Error(),
			"something in it, or in what it imports, keeps the compiler busy without end, or eats its memory; write it with fewer and simpler expressions; data belongs into a JSON file")
	}
	return err == nil
}

// maxUnproven is the size of a body that the engine may find mistakes in. It
// goes on behind each one, in quadratic time, so that mistakes in larger
// bodies are looked for by the compiler, which stops at the first.
const maxUnproven = 4 << 10

// proven reports whether the body is JavaScript, and tells what it is not.
func (c *compilation) proven() bool {
	files := &modules{compilation: c, entry: newEntry(c.src.Text, c.body(), nil)}
	options := c.transformOptions()
	options.Sourcemap = api.SourceMapNone
	problems := api.Transform(files.entry.src, options).Errors
	files.report(problems)
	return len(problems) == 0
}

// finish hands the source to the engine. A bug of the engine becomes a
// diagnostic.
func (c *compilation) finish() (p *Program) {
	defer func() {
		if bug := recover(); bug != nil {
			c.fail(c.src.Text.All(), "script-internal", "the body could not be compiled", fmt.Sprintf("the JavaScript engine failed on it: %v", bug))
		}
	}()
	function, tree := c.parse()
	if function == nil {
		return nil
	}
	return c.program(function, tree)
}

func (c *compilation) fail(at diag.Range, code, summary, detail string) {
	c.list = append(c.list, diag.Diagnostic{Code: code, Summary: summary, Detail: detail, Range: at})
}

// verbatim makes source in which the body stands as it is, on the lines that
// it has in its file.
func (c *compilation) verbatim(async bool) {
	text := c.src.Text
	start := wrapperStart
	if !async {
		start = strings.Replace(start, "async ", "", 1)
	}
	if line := text.Pos(0).Line; line > 1 {
		start = strings.Repeat("\n", line-2) + start + "\n"
	}
	body := c.body()
	c.origin = origin{
		src: start + body + wrapperEnd, text: text,
		body: segment{to: len(start), length: len(body)},
	}
}

// parse returns the function that the source is, and the whole tree.
func (c *compilation) parse() (*ast.FunctionLiteral, *ast.Program) {
	tree, err := parser.ParseFile(nil, compiledName, c.origin.src, 0, parser.WithDisableSourceMaps)
	if err != nil {
		c.syntaxError(err)
		return nil, nil
	}
	function := onlyFunction(tree)
	if function == nil {
		c.fail(c.src.Text.Range(0, 0), "script-syntax", "the "+c.what()+" ends before its end", "remove the bracket that closes more than was opened")
		return nil, nil
	}
	return function, tree
}

// onlyFunction returns the function literal that a tree consists of. A body
// that closes the function around it makes more than one.
func onlyFunction(tree *ast.Program) *ast.FunctionLiteral {
	if len(tree.Body) != 1 {
		return nil
	}
	statement, ok := tree.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return nil
	}
	function, ok := statement.Expression.(*ast.FunctionLiteral)
	if !ok || len(function.Body.List) != 1 {
		return nil
	}
	if _, ok := function.Body.List[0].(*ast.BlockStatement); !ok {
		return nil
	}
	return function
}

// program finishes a tree that is known to be sound.
func (c *compilation) program(function *ast.FunctionLiteral, tree *ast.Program) *Program {
	c.late = true
	if c.origin.lowered && !unwrapModule(function) {
		c.fail(c.src.Text.All(), "script-internal", "the body could not be compiled", "its lowered form has an unexpected shape")
		return nil
	}
	if c.src.Kind == Code {
		c.complete(function)
	}
	function.Async = awaits(function)
	found := c.analyse(function)
	c.patches.hide(found)
	c.check(found)
	c.checkGrowth(function.Body, found)
	if len(c.patches) == 0 {
		c.checkShape(function)
	}
	p := &Program{
		name: c.src.Name, kind: c.src.Kind, objects: c.src.Objects, vars: c.src.Vars,
		names: c.names(), uses: map[string]bool{}, mentioned: found.names, computed: found.computed,
		patterns: found.patterns, origin: c.origin, source: c.src, imported: c.files, size: c.read + len(c.src.Vars),
	}
	// A name that is bound somewhere may mean the global elsewhere.
	p.everything = found.reads("globalThis")
	p.proxies = p.everything || found.reads("Proxy")
	p.hosted = p.everything || found.reads("tools") || slices.ContainsFunc(c.names().groups, found.reads)
	for _, name := range globalsOf(&c.src, c.names()) {
		if _, ok := found.refs[name]; ok {
			p.uses[name] = true
			p.parameters = append(p.parameters, name)
		}
	}
	if c.src.Kind == Code {
		p.missing = c.missing(found)
		c.declareAssigned(function, found.undeclared)
	}
	unfold(function.Body)
	takes(function, p.parameters)
	p.code = c.code(tree)
	c.digest.Sum(p.hash[:0])
	c.meant.Sum(p.meaning[:0])
	return p
}

// takes gives the function parameters.
func takes(function *ast.FunctionLiteral, names []string) {
	for _, name := range names {
		function.ParameterList.List = append(function.ParameterList.List, &ast.Binding{
			Target: &ast.Identifier{Name: unistring.NewFromString(name), Idx: function.ParameterList.Opening},
		})
	}
}

func (c *compilation) code(tree *ast.Program) *goja.Program {
	tree.File = unplaced()
	code, err := goja.CompileAST(tree, true)
	if err != nil {
		c.syntaxError(err)
	}
	return code
}
