package scripting

import (
	"path"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/mcpd/mcpd/diag"
)

// maxGuess is the size of a body that is parsed twice more to say of a mistake
// what it means.
const maxGuess = 8 << 10

// suggestTypeScript says of a mistake in JavaScript that the body is
// TypeScript, if it is that and not JavaScript, and reports whether it is. The
// mistake keeps its place.
func (c *compilation) suggestTypeScript() bool {
	if c.src.Language != JS || len(c.src.Text.Body()) > maxGuess || len(c.list) == 0 {
		return false
	}
	first := &c.list[0]
	if first.Severity != diag.Error || first.Code != "script-syntax" || !c.parses(TS) || c.parses(JS) {
		return false
	}
	first.Detail = "it looks like TypeScript: begin the body with <<TS instead of <<JS"
	if ext := path.Ext(c.src.Path); ext == ".js" || ext == ".mjs" {
		first.Detail = "it looks like TypeScript: call the file .ts instead of " + ext
	}
	return true
}

// parses reports whether the body is of a language.
func (c *compilation) parses(language Language) bool {
	found, refused := inspect(c.src.Text.Body(), language)
	if refused != nil || !c.tried(found) {
		return false
	}
	options := c.transformOptions()
	options.Sourcemap, options.Loader = api.SourceMapNone, api.LoaderJS
	if language == TS {
		options.Loader = api.LoaderTS
	}
	return len(api.Transform(newEntry(c.src.Text, c.src.Text.Body(), found.modules).src, options).Errors) == 0
}
