// Package transpile is what package scripting and a compiler of TypeScript have in common, so
// that neither needs the other: a [Transpiler] makes JavaScript that the engine runs of
// TypeScript, of import declarations and of syntax that the engine lacks.
package transpile

import "github.com/mcpd/mcpd/diag"

// Transpiler compiles sources to ES2022 without async generators and for await. It is safe
// for concurrent use, and reads no file but through [Input.Files].
type Transpiler interface {
	Transpile(Input) Output
}

// Input is one source.
type Input struct {
	Source     string
	TypeScript bool
	// Files has what the source imports, which is bundled with it. Nil means that it has no
	// import declarations.
	Files Files
	// Check leaves out the source map, for a caller that needs the errors alone.
	Check bool
	// MaxErrors bounds the errors of the output.
	MaxErrors int
}

// Files are the files that a source may import. Their methods are called from several
// goroutines at once.
type Files interface {
	// Resolve returns the path of the file that an import in the file importer names, which is
	// [Entry] for the source itself. declaration is false for anything but an import declaration.
	Resolve(importer, name string, declaration bool) (path string, err error)
	// Load returns a file. If the error is a [*Refused], the output has its diagnostic.
	Load(path string) (text string, format Format, err error)
}

// Format is the format of an imported file.
type Format int

// The formats of imported files.
const (
	JavaScript Format = iota
	TypeScript
	JSON
)

// Namespace is what the paths of imported files begin with in a source map, with a colon.
const Namespace = "tools"

// Entry is the path of the source itself.
const Entry = "<body>"

// Refused is the error for a file that has a mistake.
type Refused struct{ Diagnostic diag.Diagnostic }

func (r *Refused) Error() string { return r.Diagnostic.Summary }

// Output is what a source is compiled to. Unless it has errors, it has code.
type Output struct {
	Code []byte
	// Map is the source map of the code (ECMA-426), unless the input has Check.
	Map    []byte
	Errors []Error
}

// Error is an error in the source or in an imported file.
type Error struct {
	Text string
	// Syntax means that the parser reports it, and not what resolves imports.
	Syntax   bool
	Location *Location
	Notes    []Note
	// Refused is the diagnostic that [Files] has returned.
	Refused *diag.Diagnostic
}

// Note is a remark on an error.
type Note struct {
	Text     string
	Location *Location
}

// Location is a part of a line: the line counted from 1, the column and the length in bytes
// from 0.
type Location struct {
	File                 string
	Line, Column, Length int
}
