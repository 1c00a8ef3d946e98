// Package transpile has the interface between package scripting and a TypeScript compiler, so that
// neither depends on the other. A [Transpiler] compiles TypeScript, import declarations and missing
// syntax to JavaScript for the JavaScript engine.
package transpile

import "github.com/mcpd/mcpd/diag"

// Transpiler compiles sources to ES2022 without async generators and for await. It is safe for
// concurrent use, and reads files only through [Input.Files].
type Transpiler interface {
	// Transpile compiles one source. Errors of the source are in the output.
	Transpile(Input) Output
}

// Input is one source.
type Input struct {
	// Source is the text.
	Source string
	// TypeScript reports that the source is TypeScript, not JavaScript.
	TypeScript bool
	// Files has the imported files, which are bundled with the source. Nil means that the source
	// has no import declarations.
	Files Files
	// Check omits the source map, for callers that only need the errors.
	Check bool
	// MaxErrors limits the errors of the output.
	MaxErrors int
}

// Files are the files that a source may import. Their methods are called from several goroutines at
// once.
type Files interface {
	// Resolve returns the path of an imported file. importer is the path of the importing file, or
	// [Entry] for the source itself. declaration is false for anything but an import declaration.
	Resolve(importer, name string, declaration bool) (path string, err error)
	// Load returns a file. If the error is a [*Refused], the output has its diagnostic.
	Load(path string) (text string, format Format, err error)
}

// Format is the format of an imported file.
type Format int

// The formats of imported files.
const (
	// JavaScript is a file with JavaScript.
	JavaScript Format = iota
	// TypeScript is a file with TypeScript.
	TypeScript
	// JSON is a file with a JSON value.
	JSON
)

// Namespace is the prefix of the paths of imported files in a source map, before a colon.
const Namespace = "tools"

// Entry is the path of the source itself.
const Entry = "<body>"

// Refused is the error for an invalid file.
type Refused struct{ Diagnostic diag.Diagnostic }

// Error returns the summary of the diagnostic.
func (r *Refused) Error() string { return r.Diagnostic.Summary }

// Output is the result of a compilation: code, or errors.
type Output struct {
	Code []byte
	// Map is the source map of the code (ECMA-426), unless the input has Check.
	Map    []byte
	Errors []Error
}

// Error is an error in the source or in an imported file.
type Error struct {
	Text string
	// Syntax is set for errors of the parser, not of the resolution of imports.
	Syntax   bool
	Location *Location
	Notes    []Note
	// Refused is the diagnostic that [Files] returned.
	Refused *diag.Diagnostic
}

// Note is a remark on an error.
type Note struct {
	Text     string
	Location *Location
}

// Location is a part of a line. Lines count from 1; columns and lengths are bytes, and columns
// count from 0.
type Location struct {
	File                 string
	Line, Column, Length int
}
