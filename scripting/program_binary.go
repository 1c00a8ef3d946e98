package scripting

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mcpd/mcpd/diag"
)

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

// UnmarshalBinary makes the program what [Program.MarshalBinary] has returned, by
// compiling it.
func (p *Program) UnmarshalBinary(data []byte) error {
	var w wireProgram
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("decode a program: %w", err)
	}
	src := Source{
		Name: w.Name, Kind: w.Kind, Language: w.Language, Text: w.Text, Path: w.Path, Objects: w.Objects, Members: w.Members, Vars: w.Vars, Inputs: w.Inputs, BigInts: w.BigInts, BigIntResult: w.BigIntResult,
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
		return fmt.Errorf("compile the program %q: %w", w.Name, problems)
	case compiled.hash != w.Hash:
		return fmt.Errorf("compile the program %q: %w", w.Name, errOtherProgram)
	}
	*p = *compiled
	return nil
}

var errOtherProgram = errors.New("it is another than it was")
