// Package source is what a script is compiled from: the body, its language, what it is for, and
// what it is granted. Package scripting has the same names; the compiler below it needs them, too.
package source

import (
	"encoding/json"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/transpile"
)

// MaxBody is the most bytes that a body may have.
const MaxBody = 64 << 10

// MissingExtension is the code of the diagnostic for a body that the program cannot compile
// without an extension.
const MissingExtension = "missing-extension"

// FenceRemoved is the code of the warning that the fence around code was left out.
const FenceRemoved = "fence-removed"

// ImportRemoved is the code of the warning that an import of code was left out.
const ImportRemoved = "import-removed"

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
