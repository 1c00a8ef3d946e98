package gomodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/mcpd/mcpd/scripting"
)

// maxAnswer bounds what a function answers, in bytes.
const maxAnswer = 4 << 20

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

// Names returns the names of all modules, in order.
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
func (b *Broker) Do(ctx context.Context, call Call, module, function string, arguments json.RawMessage) (json.RawMessage, error) {
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
	answer, err := f.apart(ctx, call, arguments)
	var refused *scripting.HostError
	switch {
	case errors.As(err, &refused):
		return nil, refused
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && len(answer) > maxAnswer:
		return nil, &scripting.HostError{Code: scripting.TooLarge, Message: fmt.Sprintf("the answer of modules.%s.%s has more than %d MiB", module, function, maxAnswer>>20)}
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
func (f Function) apart(ctx context.Context, call Call, arguments json.RawMessage) (json.RawMessage, error) {
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
