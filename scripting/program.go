package scripting

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/compiler"
	"github.com/mcpd/mcpd/scripting/source"
)

// Program is a compiled script. It is immutable and may run any number of times concurrently.
type Program struct {
	compiled compiler.Program
}

// Compile checks and compiles src. It returns a program unless the list has an error. For a script
// with a syntax error, the list has only the first one. All ranges are in the file of src.Text or
// in an imported file.
func Compile(src Source) (*Program, diag.List) {
	compiled, list := compiler.Compile(src)
	if compiled == nil {
		return nil, list
	}
	return &Program{*compiled}, list
}

// IsCodeName reports whether agent code can reach a tool, or a group of tools, by name alone: the
// name must be an identifier of ASCII letters, not a reserved word, and not the name of a global.
// Tools with other names, or with the name of a group, are reached as members of tools.
func IsCodeName(name string) bool { return compiler.IsCodeName(name) }

// Name returns the name of the definition in messages.
func (p *Program) Name() string { return p.compiled.Name }

// Kind returns the kind of the program.
func (p *Program) Kind() Kind { return p.compiled.Kind }

// Uses reports whether the script can reach the global name, so that callers need not encode unused
// values.
func (p *Program) Uses(name string) bool { return p.compiled.CanUse(name) }

// Reaches reports whether the script can reach a granted object.
func (p *Program) Reaches(o Object) bool { return p.compiled.Reaches(o) }

// Hash returns a hash of all inputs of Compile, including imported files.
func (p *Program) Hash() [32]byte { return p.compiled.Hash }

// SemanticHash returns a hash of all inputs of Compile except positions: programs with the same
// SemanticHash behave alike.
func (p *Program) SemanticHash() [32]byte { return p.compiled.SemanticHash }

// Size returns the size of the source in bytes: the script, its imports, and its variables.
func (p *Program) Size() int { return p.compiled.Size }

// WithCoverage returns the program compiled with coverage: the outcomes of its calls say which
// statements ran ([Outcome.Ran]). It returns p if the program is agent code.
func (p *Program) WithCoverage() (*Program, error) {
	if p.Kind() == Code {
		return p, nil
	}
	src := p.compiled.Source
	src.Coverage, src.Trial = true, nil // it has compiled before
	src.Import = func(path string) ([]byte, error) {
		text, ok := p.compiled.Imported[path]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(text.Body()), nil
	}
	covered, problems := Compile(src)
	if covered == nil {
		return nil, fmt.Errorf("compile %q with coverage: %w", p.Name(), problems)
	}
	return covered, nil
}

// Statements returns the ranges of the statements of a program with coverage, by their number.
// A nested statement is one of its own.
func (p *Program) Statements() []diag.Range { return p.compiled.Statements }

// wireProgram is the encoding of a program for another process.
type wireProgram struct {
	Hash     [32]byte
	Name     string
	Kind     Kind
	Language Language
	Text     diag.Text
	Path     string
	Objects  []Object
	Members  []Member        `json:",omitempty"`
	Vars     json.RawMessage `json:",omitempty"`
	Inputs   []string
	BigInts  []string `json:",omitempty"`
	// BigIntResult is [Source.BigIntResult].
	BigIntResult bool              `json:",omitempty"`
	Coverage     bool              `json:",omitempty"`
	Files        map[string]string // the imported files
}

// MarshalBinary encodes the program for another process.
func (p *Program) MarshalBinary() ([]byte, error) {
	s := p.compiled.Source
	w := wireProgram{p.compiled.Hash, s.Name, s.Kind, s.Language, s.Text, s.Path, s.Objects, s.Members, s.Vars, s.Inputs, s.BigInts, s.BigIntResult, s.Coverage, map[string]string{}}
	for path, text := range p.compiled.Imported {
		w.Files[path] = text.Body()
	}
	data, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode program %q: %w", s.Name, err)
	}
	return data, nil
}

// UnmarshalProgram decodes the output of [Program.MarshalBinary], and compiles the program with t.
func UnmarshalProgram(data []byte, t Transpiler) (*Program, error) {
	var w wireProgram
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("decode program: %w", err)
	}
	src := Source{
		Name: w.Name, Kind: w.Kind, Language: w.Language, Text: w.Text, Path: w.Path, Objects: w.Objects, Members: w.Members, Vars: w.Vars, Inputs: w.Inputs, BigInts: w.BigInts, BigIntResult: w.BigIntResult, Coverage: w.Coverage,
		Transpiler: t,
		Import: func(path string) ([]byte, error) {
			body, ok := w.Files[path]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return []byte(body), nil
		},
	}
	compiled, problems := Compile(src)
	switch {
	case compiled == nil:
		return nil, fmt.Errorf("compile program %q: %w", w.Name, problems)
	case compiled.Hash() != w.Hash:
		return nil, fmt.Errorf("compile program %q: %w", w.Name, errOtherProgram)
	}
	return compiled, nil
}

var errOtherProgram = errors.New("its hash has changed")

// Source is the input of [Compile]: a script with everything that it is compiled against. Package
// source documents its fields.
type Source = source.Source

// Kind is the kind of a script. It determines the globals of the script.
type Kind = source.Kind

// Language is the language of a script.
type Language = source.Language

// Object is a granted host object, such as {"http", "crm"} for http.crm.
type Object = source.Object

// Member is a tool that agent code calls as a member of a group, such as crm.get_customer.
type Member = source.Member

// Transpiler compiles TypeScript, import declarations and other syntax that the engine lacks.
// Package extensions/typescript has one.
type Transpiler = source.Transpiler

// The kinds of scripts.
const (
	// Tool is the script of a tool. It has input, agent, call, progress and content.
	Tool = source.Tool
	// Hook is the script of a hook. It has event.
	Hook = source.Hook
	// Resource is the script of a resource. It has uri and params.
	Resource = source.Resource
	// Prompt is the script of a prompt. It has the globals of a tool.
	Prompt = source.Prompt
	// Complete is the script of a completion. It has value and params.
	Complete = source.Complete
	// Code is code of an agent: see the package documentation.
	Code = source.Code
)

// The languages of scripts.
const (
	// JS is JavaScript.
	JS = source.JS
	// TS is TypeScript. It needs a [Transpiler].
	TS = source.TS
)

// The codes of diagnostics that callers react to.
const (
	// MissingExtension is the error of a script that needs a [Transpiler], without one.
	MissingExtension = source.MissingExtension
	// FenceRemoved is the warning for a Markdown fence that was removed around agent code.
	FenceRemoved = source.FenceRemoved
	// ImportRemoved is the warning for an import that was removed from agent code.
	ImportRemoved = source.ImportRemoved
)
