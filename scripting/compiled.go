package scripting

import (
	"encoding/json"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/diag"
)

// compiledProgram is a compiled body, and what running it takes. It is immutable.
type compiledProgram struct {
	name string
	kind Kind
	// hash is of everything that the compiler was given, imported files included, and meaning
	// of all of that but for where the body stands.
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

// canUse reports whether the body can reach the global name, so that callers
// need not encode what no body reads.
func (p *compiledProgram) canUse(name string) bool { return p.everything || p.uses[name] }

// reaches reports whether the body can reach a granted object.
func (p *compiledProgram) reaches(o Object) bool {
	switch {
	case p.kind == Code:
		return p.names.granted[o.Name] && o.Kind == "tools" // by one of several names
	case o.Kind == "ask":
		return p.everything || p.mentioned[o.Name]
	case !p.canUse(o.Kind):
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

// mentions reports whether the body can reach a property of this name.
func (p *compiledProgram) mentions(name string) bool { return p.computed || p.mentioned[name] }

// globals returns the names that the body may use beside what the engine defines.
func (p *compiledProgram) globals() []string { return globalsOf(&p.source, p.names) }
