package engine

import (
	"context"

	"github.com/mcpd/mcpd/internal/execution/gofunc"
	"github.com/mcpd/mcpd/internal/host/gomodule"
	"github.com/mcpd/mcpd/scripting"
)

// HostModule is an object of the program for scripts: what a file grants with
// module "NAME" {}, its script calls as modules.NAME.FUNCTION(arguments). It has a
// Name, Functions, and a Check of the arguments that the block may have; without
// one it has none. The names are identifiers of JavaScript that no object has by
// itself. See [Options].
type HostModule = gomodule.Module

// HostFunc is a function of a [HostModule]; [NewHostFunc] makes it.
type HostFunc = gomodule.Function

// HostCall is for whom a [HostFunc] runs: the Caller, the Kind, Name and ID of what
// calls it, and the Options of its grant.
type HostCall = gomodule.Call

// HostError is an error that a [HostFunc] has its script see, by code and message.
type HostError = scripting.HostError

// NewHostFunc returns a function that scripts call with an object that fits In,
// which must be a struct, and that answers with Out, at most 4 MiB of JSON, both as
// encoding/json sees them; a type without a schema is an error of [New]. Of an error
// that is no [HostError], and of a panic, the script learns that the function failed,
// and the log why. Nobody waits for run past the end of ctx, which is that of the
// call. It runs once, also when the script is run again from its beginning.
func NewHostFunc[In, Out any](name string, run func(ctx context.Context, call HostCall, in In) (Out, error)) HostFunc {
	return gofunc.NewFunction(name, gofunc.Func[HostCall, In, Out](run))
}
