package compiler

import (
	"encoding/json"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
	"github.com/mcpd/mcpd/scripting/source"
)

// Program is a compiled body, and what running it takes. It is immutable.
type Program struct {
	Name string
	Kind source.Kind
	// Hash is of everything that the compiler was given, imported files included, and Meaning
	// of all of that but for where the body stands.
	Hash, SemanticHash [32]byte
	Code               *goja.Program
	// Parameters are the globals that the body mentions, in the order in which
	// its function takes them.
	Parameters []string
	// Everything says that the body can reach its globals by computed names.
	UsesGlobalThis bool
	// Proxies says that the body may make proxies, and Hosted that it may have objects of the
	// host whose prototypes can be set.
	Proxies, Hosted bool
	uses            map[string]bool
	Mentioned       map[string]bool
	computed        bool
	Patterns        bool
	Objects         []source.Object
	// Names are the tools of code, and Missing what is thrown where it reads a name
	// that nothing has.
	Names        *ToolNames
	MissingNames map[string]string
	BigInts      *jsvalue.BigInts
	Vars         json.RawMessage
	Origin       Origin
	Source       source.Source
	Imported     map[string]diag.Text
	Size         int
}

// CanUse reports whether the body can reach the global name, so that callers
// need not encode what no body reads.
func (p *Program) CanUse(name string) bool { return p.UsesGlobalThis || p.uses[name] }

// Reaches reports whether the body can reach a granted object.
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

// Mentions reports whether the body can reach a property of this name.
func (p *Program) Mentions(name string) bool { return p.computed || p.Mentioned[name] }

// Globals returns the names that the body may use beside what the engine defines.
func (p *Program) Globals() []string { return globalsOf(&p.Source, p.Names) }
