// Package source has the inputs of the compiler: the script, its language, its kind, and its
// grants. Package scripting has aliases for them; the compiler is below that package, and needs
// them too.
package source

import (
	"encoding/json"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/transpile"
)

// MaxScript is the maximum size of a script in bytes.
const MaxScript = 64 << 10

// MissingExtension is the code of the diagnostic for a script that needs an extension to compile.
const MissingExtension = "missing-extension"

// FenceRemoved is the code of the warning for a removed Markdown fence around agent code.
const FenceRemoved = "fence-removed"

// ImportRemoved is the code of the warning for a removed import in agent code.
const ImportRemoved = "import-removed"

// Kind is the kind of a script. It determines the globals.
type Kind int

const (
	// Tool scripts have input, agent, call, progress and content.
	Tool Kind = iota
	// Hook scripts have event and none of these.
	Hook
	// Resource scripts have uri and params instead of input: the URI that is read, and the
	// variables of its template.
	Resource
	// Prompt scripts have the globals of tools; input has the arguments of the prompt.
	Prompt
	// Complete scripts have value, the text to complete, and params, the arguments that are filled
	// in already. They have neither progress nor content.
	Complete
	// Code is code of an agent. It has its tools, by name and in groups, and no other host object.
	// Its result is the value of its last expression. Imports are removed. Vars, Inputs and Import
	// are ignored.
	Code
)

// Language is the language of a script.
type Language int

const (
	// JS is JavaScript: ES2022, with async generators, for await and import lowered.
	JS Language = iota
	// TS is TypeScript. Its types are stripped and not checked.
	TS
)

// Source is a script with everything that it is compiled against.
type Source struct {
	// Name is the name of the definition in messages, such as the name of a tool.
	Name     string
	Kind     Kind
	Language Language
	// Text is the script, at most [MaxScript] bytes, with its position in the file.
	Text diag.Text
	// Path is the path of the file with the script, relative to the tools directory. Imports are
	// relative to its directory, or to the tools directory if it is empty.
	Path string
	// Objects are the granted host objects. Other host objects do not exist in the script.
	Objects []Object
	// Members are the tools that agent code reaches as members of a group. Other kinds have none.
	Members []Member
	// Vars is the JSON object of the global vars. Nil means no variables.
	Vars json.RawMessage
	// Inputs are the names of the members of input, or of params if there is no input. Nil means
	// that they are unknown, and are not checked.
	Inputs []string
	// BigInts has the positions of integers in the input that become BigInts: JSON pointers, with *
	// for every item of an array and for every member that no pointer names.
	BigInts []string
	// BigIntResult allows a BigInt in the result, as an integer. Otherwise it is an error.
	BigIntResult bool
	// MustReturn is set if a script without a result fails, as in a tool that declares outputs: a
	// script that never returns one is an error. Otherwise it causes a warning.
	MustReturn bool
	// Import returns the content of an imported file, by its path relative to the tools directory,
	// slash-separated and cleaned. The program depends on the imported files. Nil means that
	// imports are not possible. Import is called from other goroutines than Compile, one at a time,
	// and never after Compile has returned. fs.ErrNotExist is reported as a missing file, other
	// errors with their text.
	Import func(path string) ([]byte, error)
	// Trial, unless nil, is called for a script that cannot be checked in advance, before it is
	// compiled in this process: a script of more than 4 KiB, or one with imports. If it returns an
	// error, the script is not compiled, and the error is reported to the author. It may be called
	// for several scripts at once. Package worker has a Trial that compiles in another process.
	Trial func(Source) error
	// Coverage makes the outcomes of calls say which statements ran. Such a script is slower. Agent
	// code has no coverage.
	Coverage bool
	// Transpiler compiles TypeScript, import declarations, async generators and for await. Without
	// one, such a script is an error. Package extensions/typescript has one.
	Transpiler Transpiler
}

// Transpiler compiles syntax that the engine lacks.
type Transpiler = transpile.Transpiler

// Object is a granted host object: {"http", "crm"} is http.crm in the script, {"kv", "notes"} is
// kv.notes, {"sql", "shop"} is sql.shop, {"fs", "logs"} is fs.logs, {"env", "LANG"} is env.LANG,
// {"secrets", "key"} is secrets.key, and {"exec", "git"} is the function exec.git. {"sql.write",
// "shop"} and {"sql.open", "shop"} add exec and open to sql.shop; {"fs.write", "logs"} adds the
// methods that write to fs.logs. {"tools", "crm_*"} are functions of tools for all tools with
// matching names. {"modules", "ledger"} is modules.ledger, with functions such as
// {"modules.ledger", "balance"}. {"ask", "elicit"} is elicit; the other requests are sample, roots,
// and ask, which sends several of them at once.
type Object struct {
	Kind, Name string
}

// Member is a tool as a member of a group: {"crm", "get_customer", "crm_get_customer"} makes
// crm.get_customer(args) call crm_get_customer, which is granted as an [Object]. A member without a
// group is a function of that name, if no tool and no group has the name; the first such member
// counts.
type Member struct {
	Group, Name, Tool string
}
