package compiler

import (
	"encoding/json"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
	"github.com/mcpd/mcpd/scripting/source"
)

// Program is a compiled script with everything that running it requires. It is immutable.
type Program struct {
	Name string
	Kind source.Kind
	// Hash is a hash of all inputs of the compiler, including imported files; SemanticHash of all
	// inputs except positions.
	Hash, SemanticHash [32]byte
	Code               *goja.Program
	// Parameters are the globals that the script mentions, in the order of the parameters of its
	// function.
	Parameters []string
	// UsesGlobalThis is set if the script can reach its globals by computed names.
	UsesGlobalThis bool
	// Proxies is set if the script may create proxies, and Hosted if it may have host objects with
	// mutable prototypes.
	Proxies, Hosted bool
	uses            map[string]bool
	Mentioned       map[string]bool
	computed        bool
	Patterns        bool
	Objects         []source.Object
	// Names are the tools of agent code. MissingNames has the messages that are thrown for unknown
	// names.
	Names        *ToolNames
	MissingNames map[string]string
	BigInts      *jsvalue.BigInts
	Vars         json.RawMessage
	Origin       Origin
	Source       source.Source
	Imported     map[string]diag.Text
	Size         int
	// Statements are the ranges of the statements by their number, for a source with coverage.
	Statements []diag.Range
}

// CanUse reports whether the script can reach the global name, so that callers need not encode
// unused values.
func (p *Program) CanUse(name string) bool { return p.UsesGlobalThis || p.uses[name] }

// Reaches reports whether the script can reach a granted object.
func (p *Program) Reaches(o source.Object) bool {
	switch {
	case p.Kind == source.Code:
		return p.Names.granted[o.Name] && o.Kind == "tools" // by one of several names
	case o.Kind == "ask":
		return p.UsesGlobalThis || p.Mentioned[o.Name]
	case !p.CanUse(o.Kind):
		return false
	case o.Kind == "tools":
		if p.UsesGlobalThis || p.Mentions(o.Name) {
			return true
		}
		for name := range p.Mentioned {
			if CoversTool([]string{o.Name}, name) {
				return true
			}
		}
		return false
	}
	return p.UsesGlobalThis || p.Mentions(o.Name)
}

// Mentions reports whether the script can reach a property of this name.
func (p *Program) Mentions(name string) bool { return p.computed || p.Mentioned[name] }

// Globals returns the names that the script may use besides the globals of the engine.
func (p *Program) Globals() []string { return globalsOf(&p.Source, p.Names) }
