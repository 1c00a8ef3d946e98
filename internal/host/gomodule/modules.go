// Package gomodule is the broker of objects that a program which embeds mcpd gives
// to scripts: a [Module] is functions in Go, by name. The [Broker] runs one for a
// script that is granted its module. It neither validates arguments nor trusts a
// function: one that panics or does not end costs the operation alone.
package gomodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/mcpd/mcpd/identity"
)

// Module is an object for scripts, which grants name. Name and the names of its
// functions are 1 to 64 letters, digits and underscores, and no digit first.
type Module struct {
	Name string
	// Functions are at least one.
	Functions []Function
	// Check says what is wrong with the arguments of a grant, a JSON object; its
	// error is told to the author of the file. Nil means that grants take none.
	Check func(options json.RawMessage) error
}

// Function is a function of a [Module].
type Function struct {
	Name string
	// Run answers a script with JSON. The arguments are a JSON object. An error
	// that is a [*scripting.HostError] is told to the script; of any other the
	// script learns that the function failed, and the log what it says. Run may be
	// called from many goroutines. When it ignores ctx past its end it is left
	// behind: nobody waits for it.
	Run func(ctx context.Context, call Call, arguments json.RawMessage) (json.RawMessage, error)
	// Err is why there can be no such function; nil of one that there can be.
	Err error
}

// Call is for whom a function runs.
type Call struct {
	// Caller is who makes the call; zero for a hook, which runs for nobody.
	Caller identity.Caller
	// Kind and Name are of what the script belongs to, such as "tool" and its
	// name, and ID is that of the call.
	Kind, Name, ID string
	// Options are the arguments of the grant, a JSON object.
	Options json.RawMessage
}

// identifier is what a script can write behind a dot.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// reserved are the names that the language looks for on any object by itself.
var reserved = []string{
	"then", "toString", "valueOf", "toJSON", "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString",
	"__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
}

// check reports why there cannot be such modules together.
func check(modules []Module) error {
	known := map[string]bool{}
	for _, m := range modules {
		switch {
		case !sayable(m.Name):
			return fmt.Errorf("module %q: %w", m.Name, errName)
		case known[m.Name]:
			return fmt.Errorf("module %q: there is another one of this name", m.Name)
		case len(m.Functions) == 0:
			return fmt.Errorf("module %q: it has no functions", m.Name)
		}
		known[m.Name] = true
		if err := m.check(); err != nil {
			return fmt.Errorf("module %q: %w", m.Name, err)
		}
	}
	return nil
}

func (m Module) check() error {
	known := map[string]bool{}
	for _, f := range m.Functions {
		switch {
		case !sayable(f.Name):
			return fmt.Errorf("function %q: %w", f.Name, errName)
		case known[f.Name]:
			return fmt.Errorf("function %q: there is another one of this name", f.Name)
		case f.Err != nil:
			return fmt.Errorf("function %q: %w", f.Name, f.Err)
		case f.Run == nil:
			return fmt.Errorf("function %q: it is nil", f.Name)
		}
		known[f.Name] = true
	}
	return nil
}

var errName = errors.New("a name is 1 to 64 letters, digits and underscores, with no digit first, and none that objects have by themselves")

func sayable(name string) bool {
	return identifier.MatchString(name) && !slices.Contains(reserved, name)
}
