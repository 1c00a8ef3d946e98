package scripting

import (
	"fmt"
	"hash"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/mcpd/mcpd/diag"
)

// MaxBody is the most bytes that a body may have.
const MaxBody = 64 << 10

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
	// fatal are the places in list of what is an error unless there is a worse one (see
	// [compilation.settle]).
	fatal []int
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

func (c *compilation) fail(at diag.Range, code, summary, detail string) {
	c.list = append(c.list, diag.Diagnostic{Code: code, Summary: summary, Detail: detail, Range: at})
}
