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
	"log/slog"
	"maps"
	"regexp"
	"slices"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/scripting"
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
	Run func(ctx context.Context, call CallInfo, arguments json.RawMessage) (json.RawMessage, error)
	// Err is why there can be no such function; nil of one that there can be.
	Err error
}

// Call is for whom a function runs.
type CallInfo struct {
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
var reservedNames = []string{
	"then", "toString", "valueOf", "toJSON", "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString",
	"__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
}

func check(modules []Module) error {
	known := map[string]bool{}
	for _, m := range modules {
		switch {
		case !isIdentifier(m.Name):
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
		case !isIdentifier(f.Name):
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

func isIdentifier(name string) bool {
	return identifier.MatchString(name) && !slices.Contains(reservedNames, name)
}

// maxAnswer bounds what a function answers, in bytes.
const maxResult = 4 << 20

// Broker runs the functions of modules. It is safe for concurrent use. A nil
// Broker has none.
type Broker struct {
	byName map[string]map[string]Function
	checks map[string]func(json.RawMessage) error
	logger *slog.Logger
}

// New returns the broker of these modules. What functions say of their failures is
// for the logger alone, which shows no secrets. The error says which module there
// cannot be, and why.
func New(modules []Module, logger *slog.Logger) (*Broker, error) {
	if err := check(modules); err != nil {
		return nil, err
	}
	b := &Broker{byName: map[string]map[string]Function{}, checks: map[string]func(json.RawMessage) error{}, logger: logger}
	for _, m := range modules {
		b.byName[m.Name], b.checks[m.Name] = map[string]Function{}, m.Check
		for _, f := range m.Functions {
			b.byName[m.Name][f.Name] = f
		}
	}
	return b, nil
}

func (b *Broker) Names() []string {
	if b == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(b.byName))
}

// Functions returns the names of the functions of a module, in order; none when
// there is no such module.
func (b *Broker) Functions(module string) []string {
	if b == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(b.byName[module]))
}

// Check says what is wrong with the arguments of a grant of a module, a JSON
// object. A check that panics finds them wrong.
func (b *Broker) Check(module string, options json.RawMessage) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = errors.New("the module could not check them")
		}
	}()
	check := b.checks[module]
	switch {
	case check != nil:
		return check(slices.Clone(options))
	case string(options) != "{}":
		return errors.New("the module takes none")
	}
	return nil
}

// Do runs a function, and returns its answer. The arguments are JSON without blanks
// around it, or nil. An error is a
// [*scripting.HostError], or that of ctx.
func (b *Broker) Do(ctx context.Context, call CallInfo, module, function string, arguments json.RawMessage) (json.RawMessage, error) {
	f, known := b.byName[module][function]
	if !known {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "the module has no such function"}
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	if arguments[0] != '{' {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the arguments must be an object"}
	}
	call.Caller.Agent, call.Options = call.Caller.Agent.Clone(), slices.Clone(call.Options)
	answer, err := f.runDetached(ctx, call, arguments)
	var refused *scripting.HostError
	switch {
	case errors.As(err, &refused):
		return nil, refused
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && len(answer) > maxResult:
		return nil, &scripting.HostError{Code: scripting.TooLarge, Message: fmt.Sprintf("the answer of modules.%s.%s has more than %d MiB", module, function, maxResult>>20)}
	case err == nil && !json.Valid(answer):
		err = errors.New("the answer is no JSON")
	}
	if err != nil {
		b.logger.LogAttrs(ctx, slog.LevelError, "a function of a module failed", slog.String("function", module+"."+function),
			slog.String(call.Kind, call.Name), slog.String("call_id", call.ID), slog.String("error", err.Error()))
		return nil, &scripting.HostError{Code: scripting.Unavailable, Message: "modules." + module + "." + function + " failed"}
	}
	return answer, nil
}

// errExited is what a function ends with that ends its goroutine.
var errExited = errors.New("the function ended its goroutine")

// apart runs the function in a goroutine of its own until it returns or ctx is
// done. It may run on then.
func (f Function) runDetached(ctx context.Context, call CallInfo, arguments json.RawMessage) (json.RawMessage, error) {
	type end struct {
		answer json.RawMessage
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		e := end{err: errExited}
		defer func() {
			if cause := recover(); cause != nil {
				e = end{err: fmt.Errorf("panic: %v", cause)}
			}
			ended <- e
		}()
		e.answer, e.err = f.Run(ctx, call, arguments)
	}()
	select {
	case e := <-ended:
		return e.answer, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
