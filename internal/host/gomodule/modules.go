// Package gomodule provides script objects implemented in Go by a program that embeds mcpd: a
// [Module] is a set of named functions. The [Broker] runs them for scripts with a module grant.
// It does not validate arguments, and does not trust functions: one that panics or hangs only
// fails its operation.
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

// Module is an object for scripts, named by grants. Its name and the names of its functions
// have 1 to 64 letters, digits and underscores, and do not start with a digit.
type Module struct {
	Name string
	// Functions has at least one function.
	Functions []Function
	// Check validates the options of a grant, a JSON object; its error is shown to the author
	// of the file. Nil accepts no options.
	Check func(options json.RawMessage) error
}

// Function is a function of a [Module].
type Function struct {
	Name string
	// Run returns the result as JSON. The arguments are a JSON object. A [*scripting.HostError]
	// is returned to the script; any other error is logged, and the script only learns that the
	// function failed. Run must be safe for concurrent use. If it does not return when ctx is
	// done, it is abandoned.
	Run func(ctx context.Context, call CallInfo, arguments json.RawMessage) (json.RawMessage, error)
	// Err is set if the function is invalid.
	Err error
}

// CallInfo describes the call of a function.
type CallInfo struct {
	// Caller is the caller; zero for a hook.
	Caller identity.Caller
	// Kind and Name identify the script, such as "tool" and its name. ID is the call id.
	Kind, Name, ID string
	// Options are the options of the grant, a JSON object.
	Options json.RawMessage
}

// identifier matches names that a script can write after a dot.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// reservedNames are names that JavaScript looks up on any object.
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
			return fmt.Errorf("module %q: the name is used twice", m.Name)
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
			return fmt.Errorf("function %q: the name is used twice", f.Name)
		case f.Err != nil:
			return fmt.Errorf("function %q: %w", f.Name, f.Err)
		case f.Run == nil:
			return fmt.Errorf("function %q: it is nil", f.Name)
		}
		known[f.Name] = true
	}
	return nil
}

var errName = errors.New("a name is 1 to 64 letters, digits and underscores, with no digit first, and not the name of a built-in member")

func isIdentifier(name string) bool {
	return identifier.MatchString(name) && !slices.Contains(reservedNames, name)
}

// maxResult bounds the result of a function, in bytes.
const maxResult = 4 << 20

// Broker runs the functions of modules. It is safe for concurrent use. A nil Broker has no
// modules.
type Broker struct {
	byName map[string]map[string]Function
	checks map[string]func(json.RawMessage) error
	logger *slog.Logger
}

// New returns a broker for modules. Errors of functions only go to the logger, which must
// redact secrets. New returns an error for an invalid module.
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

// Functions returns the sorted names of the functions of a module, or nil if it does not exist.
func (b *Broker) Functions(module string) []string {
	if b == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(b.byName[module]))
}

// Check validates the options of a module grant, a JSON object. A panic of the module's check
// is an error.
func (b *Broker) Check(module string, options json.RawMessage) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = errors.New("the module could not check the arguments")
		}
	}()
	check := b.checks[module]
	switch {
	case check != nil:
		return check(slices.Clone(options))
	case string(options) != "{}":
		return errors.New("the module takes no arguments")
	}
	return nil
}

// Do runs a function and returns its result. The arguments are JSON without surrounding white
// space, or nil. The error is a [*scripting.HostError] or the error of ctx.
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
		return nil, &scripting.HostError{Code: scripting.TooLarge, Message: fmt.Sprintf("the result of modules.%s.%s has more than %d MiB", module, function, maxResult>>20)}
	case err == nil && !json.Valid(answer):
		err = errors.New("the result is not JSON")
	}
	if err != nil {
		b.logger.LogAttrs(ctx, slog.LevelError, "module function failed", slog.String("function", module+"."+function),
			slog.String(call.Kind, call.Name), slog.String("call_id", call.ID), slog.String("error", err.Error()))
		return nil, &scripting.HostError{Code: scripting.Unavailable, Message: "modules." + module + "." + function + " failed"}
	}
	return answer, nil
}

// errExited reports a function that called runtime.Goexit.
var errExited = errors.New("the function called runtime.Goexit")

// runDetached runs the function in a goroutine until it returns or ctx is done. In the latter
// case the function may continue to run.
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
