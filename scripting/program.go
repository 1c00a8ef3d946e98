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

// Program is a compiled body. It is immutable and may run any number of times
// at once.
type Program struct {
	compiled compiler.Program
}

// Compile checks and compiles src. It returns a program unless the list holds
// an error. Of a body with a syntax error the list holds the first one and
// nothing about the meaning of the rest. All ranges are in the file of src.Text,
// or in an imported file.
func Compile(src Source) (*Program, diag.List) {
	compiled, list := compiler.Compile(src)
	if compiled == nil {
		return nil, list
	}
	return &Program{*compiled}, list
}

// IsCodeName reports whether code can reach a tool, or a group of tools, by that
// name alone: it is an identifier of ASCII letters, no word of the language, and
// the name of no global. A tool that shares its name with a group is reached as a
// member of tools all the same, as is one of any other name.
func IsCodeName(name string) bool { return compiler.IsCodeName(name) }

// Name returns what the definition is called in messages.
func (p *Program) Name() string { return p.compiled.Name }

// Kind returns what the program is for.
func (p *Program) Kind() Kind { return p.compiled.Kind }

// Uses reports whether the body can reach the global name, so that callers
// need not encode what no body reads.
func (p *Program) Uses(name string) bool { return p.compiled.CanUse(name) }

// Reaches reports whether the body can reach a granted object.
func (p *Program) Reaches(o Object) bool { return p.compiled.Reaches(o) }

// Hash returns a hash of everything that Compile was given, imported files included.
func (p *Program) Hash() [32]byte { return p.compiled.Hash }

// Meaning returns a hash of what the program does: of everything that Compile
// was given but for where the body stands.
func (p *Program) SemanticHash() [32]byte { return p.compiled.SemanticHash }

// Size returns how many bytes the program is made of: the body, what it imports,
// and its variables.
func (p *Program) Size() int { return p.compiled.Size }

// wireProgram is what another process needs to compile a program once more.
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
	// BigIntResult is that of [Source].
	BigIntResult bool              `json:",omitempty"`
	Files        map[string]string // what it imports
}

// MarshalBinary returns the program as bytes, for another process.
func (p *Program) MarshalBinary() ([]byte, error) {
	s := p.compiled.Source
	w := wireProgram{p.compiled.Hash, s.Name, s.Kind, s.Language, s.Text, s.Path, s.Objects, s.Members, s.Vars, s.Inputs, s.BigInts, s.BigIntResult, map[string]string{}}
	for path, text := range p.compiled.Imported {
		w.Files[path] = text.Body()
	}
	data, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode the program %q: %w", s.Name, err)
	}
	return data, nil
}

// UnmarshalProgram returns the program that [Program.MarshalBinary] has encoded, by compiling
// it. t is that of [Source].
func UnmarshalProgram(data []byte, t Transpiler) (*Program, error) {
	var w wireProgram
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("decode a program: %w", err)
	}
	src := Source{
		Name: w.Name, Kind: w.Kind, Language: w.Language, Text: w.Text, Path: w.Path, Objects: w.Objects, Members: w.Members, Vars: w.Vars, Inputs: w.Inputs, BigInts: w.BigInts, BigIntResult: w.BigIntResult,
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
		return nil, fmt.Errorf("compile the program %q: %w", w.Name, problems)
	case compiled.Hash() != w.Hash:
		return nil, fmt.Errorf("compile the program %q: %w", w.Name, errOtherProgram)
	}
	return compiled, nil
}

var errOtherProgram = errors.New("it is another than it was")

// A body and all that it is compiled against. The types stand in package source because the
// compiler, which is below this package, takes them too.
type (
	Source     = source.Source
	Kind       = source.Kind
	Language   = source.Language
	Object     = source.Object
	Member     = source.Member
	Transpiler = source.Transpiler
)

// What bodies are for; see [source.Kind].
const (
	Tool     = source.Tool
	Hook     = source.Hook
	Resource = source.Resource
	Prompt   = source.Prompt
	Complete = source.Complete
	Code     = source.Code
)

// What bodies are written in; see [source.Language].
const (
	JS = source.JS
	TS = source.TS
)

// Codes of diagnostics that callers act on.
const (
	MissingExtension = source.MissingExtension
	FenceRemoved     = source.FenceRemoved
	ImportRemoved    = source.ImportRemoved
)
