package scripting

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/transpile"
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
		if p.everything || p.mentions(o.Name) {
			return true
		}
		for name := range p.mentioned {
			if coversTool([]string{o.Name}, name) {
				return true
			}
		}
		return false
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

// Kind says what a body is for, and with that which globals it sees.
type Kind int

const (
	// Tool bodies see input, agent, call, progress and content.
	Tool Kind = iota
	// Hook bodies see event and none of these.
	Hook
	// Resource bodies see uri and params instead of input: what is read, and
	// the variables of its template.
	Resource
	// Prompt bodies see what tools see; input holds the prompt's arguments.
	Prompt
	// Complete bodies see value, the text to complete, and params, what is
	// filled in already; neither progress nor content.
	Complete
	// Code is what an agent wrote: it sees its tools, by their names and in groups,
	// and no other host object. Its result is that of its last expression. What it
	// imports is left out, and Vars, Inputs and Import are nothing to it.
	Code
)

// Language is what a body is written in.
type Language int

const (
	// JS is JavaScript: ES2022, with async generators, for await and import lowered.
	JS Language = iota
	// TS is TypeScript, whose types are stripped and not checked.
	TS
)

// Source is a body as its author wrote it, and all that it is compiled against.
type Source struct {
	// Name names the definition in messages, such as a tool's name.
	Name     string
	Kind     Kind
	Language Language
	// Text is the body, at most [MaxBody] bytes, and knows its place in the file.
	Text diag.Text
	// Path is the path of the file that the body stands in, relative to the
	// tools folder. Imports are relative to its folder, or to the tools folder
	// when it is empty.
	Path string
	// Objects are the host objects that the body is granted. What is not
	// granted does not exist in the script.
	Objects []Object
	// Members are the tools that code also reaches as members of a group. Other
	// bodies have none.
	Members []Member
	// Vars is the JSON object behind the global vars. Nil means no variables.
	Vars json.RawMessage
	// Inputs are the names of the members of input, or of params where there is
	// no input. Nil means that they are not known, and turns their check off.
	Inputs []string
	// BigInts are where in the input an integer is a BigInt: JSON pointers, with * for
	// every item of an array and every member that no pointer names.
	BigInts []string
	// BigIntResult says that a BigInt in the result is an integer. In any other result it
	// is a mistake.
	BigIntResult bool
	// MustReturn says that a body which returns nothing fails: a tool that declares outputs.
	// One that does not say so is warned of.
	MustReturn bool
	// Import returns the bytes of a file that the body imports, by its path
	// relative to the tools folder, slash-separated and cleaned. What it is
	// asked for is what the program depends on. Nil means that nothing can be
	// imported. It is called from other goroutines than Compile's, but from
	// one at a time and never after Compile has returned. An error that is
	// fs.ErrNotExist is told as a missing file; others are told with their text.
	Import func(path string) ([]byte, error)
	// Trial, unless nil, is given what the gate cannot bound before the
	// compilers of this process see it: a body of more than 4 KiB, or one that
	// imports. Its error keeps the body from being compiled; it is told to the
	// author as it is. It may be called for several bodies at once. Package
	// worker has one that compiles elsewhere.
	Trial func(Source) error
	// Transpiler compiles TypeScript, import declarations, async generators and for await.
	// Without one, a body that needs it is a mistake. Package extensions/typescript has one.
	Transpiler Transpiler
}

// Transpiler compiles what the engine does not know to what it knows.
type Transpiler = transpile.Transpiler

// Object is a granted host object: {"http", "crm"} is http.crm in the script,
// {"kv", "notes"} is kv.notes, {"sql", "shop"} is sql.shop, with exec and open where
// {"sql.write", "shop"} and {"sql.open", "shop"} stand beside it, {"fs", "logs"} is fs.logs, which can write where
// {"fs.write", "logs"} stands beside it, {"env", "LANG"} is env.LANG, {"secrets", "key"} is secrets.key,
// {"exec", "git"} is the function exec.git, {"tools", "crm_*"} are functions of tools for
// all tools whose names fit the pattern, {"modules", "ledger"} is modules.ledger, whose
// functions are {"modules.ledger", "balance"} and the like, and {"ask", "elicit"} is elicit. What can be asked is elicit, sample, roots,
// and ask, by which several of them are asked at once.
type Object struct {
	Kind, Name string
}

// Member is a tool as a member of a group: {"crm", "get_customer", "crm_get_customer"}
// makes crm.get_customer(args) call crm_get_customer, which is granted as an [Object].
// Without a group it is a function of that name, where no tool and no group has it: of two
// such members the first counts.
type Member struct {
	Group, Name, Tool string
}
