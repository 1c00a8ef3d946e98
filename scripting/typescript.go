package scripting

import (
	"path"

	"github.com/evanw/esbuild/pkg/api"
)

// maxGuess is the size of a body that is parsed twice more to say of a mistake
// what it means.
const maxGuess = 8 << 10

// suggestTypeScript makes the hint of a syntax error in a JavaScript body that
// the body is TypeScript, if it is that and not JavaScript.
func (c *compilation) suggestTypeScript() {
	if !c.broken || c.src.Language != JS || len(c.text) > maxGuess || !c.parses(TS) || c.parses(JS) {
		return
	}
	first := &c.list[0]
	first.Detail = "it looks like TypeScript: begin the body with <<TS instead of <<JS"
	if ext := path.Ext(c.src.Path); ext == ".js" || ext == ".mjs" {
		first.Detail = "it looks like TypeScript: call the file .ts instead of " + ext
	}
}

// parses reports whether the body is of a language.
func (c *compilation) parses(language Language) bool {
	found, refused := inspect(c.text, language)
	if refused != nil || !c.tried(found) {
		return false
	}
	options := c.transformOptions()
	options.Sourcemap, options.Loader = api.SourceMapNone, api.LoaderJS
	if language == TS {
		options.Loader = api.LoaderTS
	}
	return len(api.Transform(newEntry(c.src.Text, c.text, found.modules).src, options).Errors) == 0
}
