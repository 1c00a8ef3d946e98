package scripting

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/diag"
)

// Program is a compiled body. It is immutable and may run any number of times
// at once.
type Program struct {
	name string
	kind Kind
	// hash and meaning are those of [Program.Hash] and [Program.Meaning].
	hash, meaning [32]byte
	code          *goja.Program
	// parameters are the globals that the body mentions, in the order in which
	// its function takes them.
	parameters []string
	// everything says that the body can reach its globals by computed names.
	everything bool
	// proxies says that the body may make proxies, and hosted that it may have objects of the
	// host whose prototypes can be set.
	proxies, hosted bool
	uses            map[string]bool
	mentioned       map[string]bool
	computed        bool
	patterns        bool
	objects         []Object
	// names are the tools of code, and missing what is thrown where it reads a name
	// that nothing has.
	names    *toolNames
	missing  map[string]string
	bigints  *bigints
	vars     json.RawMessage
	origin   origin
	source   Source
	imported map[string]diag.Text
	size     int
}

// Name returns what the definition is called in messages.
func (p *Program) Name() string { return p.name }

// Kind returns what the program is for.
func (p *Program) Kind() Kind { return p.kind }

// Uses reports whether the body can reach the global name, so that callers
// need not encode what no body reads.
func (p *Program) Uses(name string) bool { return p.everything || p.uses[name] }

// Reaches reports whether the body can reach a granted object.
func (p *Program) Reaches(o Object) bool {
	switch {
	case p.kind == Code:
		return p.names.granted[o.Name] && o.Kind == "tools" // by one of several names
	case o.Kind == "ask":
		return p.everything || p.mentioned[o.Name]
	case !p.Uses(o.Kind):
		return false
	case o.Kind == "tools":
		return p.reachesTool(o.Name)
	}
	return p.everything || p.mentions(o.Name)
}

// Hash returns a hash of everything that Compile was given, imported files included.
func (p *Program) Hash() [32]byte { return p.hash }

// Meaning returns a hash of what the program does: of everything that Compile
// was given but for where the body stands.
func (p *Program) Meaning() [32]byte { return p.meaning }

// Size returns how many bytes the program is made of: the body, what it imports,
// and its variables.
func (p *Program) Size() int { return p.size }

// mentions reports whether the body can reach a property of this name.
func (p *Program) mentions(name string) bool { return p.computed || p.mentioned[name] }

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
	s := p.source
	w := wireProgram{p.hash, s.Name, s.Kind, s.Language, s.Text, s.Path, s.Objects, s.Members, s.Vars, s.Inputs, s.BigInts, s.BigIntResult, map[string]string{}}
	for path, text := range p.imported {
		w.Files[path] = text.Body()
	}
	data, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode the program %q: %w", p.name, err)
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
	case compiled.hash != w.Hash:
		return nil, fmt.Errorf("compile the program %q: %w", w.Name, errOtherProgram)
	}
	return compiled, nil
}

var errOtherProgram = errors.New("it is another than it was")
