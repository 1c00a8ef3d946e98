package engine

import (
	"context"
	"encoding/json"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/gofunc"
	"github.com/mcpd/mcpd/internal/host/gomodule"
)

// HostModule is an object of the program for scripts: what a file grants with
// module "NAME" {}, its script calls as modules.NAME.FUNCTION(arguments). The names are
// identifiers of JavaScript that no object has by itself. See [Options].
type HostModule struct {
	Name string
	// Functions are at least one.
	Functions []HostFunc
	// Check says what is wrong with the arguments of a grant, a JSON object; the author of
	// the file gets its error. Nil means that grants take none.
	Check func(options json.RawMessage) error
}

// HostFunc is a function of a [HostModule]; [NewHostFunc] makes it.
type HostFunc struct{ function gomodule.Function }

// HostCall is for whom a [HostFunc] runs.
type HostCall struct {
	// Caller is who makes the call; zero for a hook, which runs for nobody.
	Caller identity.Caller
	// Kind and Name are of what the script belongs to, such as "tool" and its
	// name, and ID is that of the call.
	Kind, Name, ID string
	// Options are the arguments of the grant, a JSON object.
	Options json.RawMessage
}

// NewHostFunc returns a function that scripts call with an object that fits In,
// which must be a struct, and that answers with Out, at most 4 MiB of JSON, both as
// encoding/json sees them; a type without a schema is an error of [New]. The script gets an
// error that is a [scripting.HostError] by its code and message; of another error, and of a
// panic, it learns that the function failed, and the log why. Nobody waits for run past the
// end of ctx, which is that of the call. It runs once, also when the script is run again from
// its beginning.
func NewHostFunc[In, Out any](name string, run func(ctx context.Context, call HostCall, in In) (Out, error)) HostFunc {
	if run == nil {
		return HostFunc{gofunc.NewFunction[In, Out](name, nil)}
	}
	return HostFunc{gofunc.NewFunction(name, func(ctx context.Context, call gomodule.Call, in In) (Out, error) { return run(ctx, HostCall(call), in) })}
}

// modulesOf returns modules as their broker has them.
func modulesOf(modules []HostModule) []gomodule.Module {
	var all []gomodule.Module
	for _, m := range modules {
		module := gomodule.Module{Name: m.Name, Check: m.Check}
		for _, f := range m.Functions {
			module.Functions = append(module.Functions, f.function)
		}
		all = append(all, module)
	}
	return all
}
