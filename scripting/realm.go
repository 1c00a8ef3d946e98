package scripting

import (
	"math/rand/v2"
	"time"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/compiler"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// realm is the runtime of one call, with what objects that are made in Go need. It belongs to
// the goroutine of the call.
type realm struct {
	// fixed at creation
	rt      *goja.Runtime
	program *compiler.Program
	caller  caller
	// maxOutput and maxDepth bound the JSON of a value.
	maxOutput, maxDepth int

	// engineSets is Reflect.setPrototypeOf of the engine, where the body may have proxies, and
	// traps how deep it is in them.
	engineSets func(this goja.Value, args ...goja.Value) goja.Value
	traps      int
	// states are the Go halves of objects such as URLs.
	states map[*goja.Object]any
	random *rand.ChaCha8
	// zones are the time zones that were asked for.
	zones map[string]*time.Location
}

// caller is the call that a realm belongs to.
type caller interface {
	// Stopped reports whether the call is over. It costs next to nothing.
	Stopped() bool
	// Needed returns a global that other globals are made of.
	Needed(name string) *goja.Object
	// Warn tells the author of the body something.
	Warn(message string)
	// Secret returns the randomness of the object crypto.
	Secret() *rand.ChaCha8
}

// proceed ends a native function of a call that is over. Every loop over what
// a script made asks it at each step.
func (r *realm) proceed() {
	if r.caller.Stopped() {
		panic(r.throwable(jsvalue.ErrStopped))
	}
}

func (r *realm) decode(text string) (goja.Value, error) {
	d := jsvalue.Decoder{Runtime: r.rt, Src: text, Stopped: r.caller.Stopped}
	return d.Document()
}

// json returns the value as JSON, nil for undefined.
func (r *realm) json(value goja.Value) ([]byte, error) { return r.encoded(value, false) }

// encoded is [realm.json] where a BigInt may be an integer.
func (r *realm) encoded(value goja.Value, bigints bool) ([]byte, error) {
	e := jsvalue.NewEncoder(r.maxOutput, r.maxDepth, r.caller.Stopped)
	e.Awaited, e.BigInts = true, bigints
	wrote, err := e.Encode(value)
	if err != nil || !wrote {
		return nil, err
	}
	return e.Out, nil
}

// makeStandard makes what other JavaScript hosts have too.
func (r *realm) makeStandard(name string) *goja.Object {
	switch name {
	case "JSON":
		return r.format(r.parse, "stringify", r.stringify)
	case "RegExp":
		return r.makeRegExp()
	case "URL":
		return r.makeURL()
	case "URLSearchParams":
		class, prototype := r.class("URLSearchParams", func(this *goja.Object, c goja.ConstructorCall) {
			r.bind(this, &searchParams{pairs: r.pairs(c.Argument(0)), proceed: r.proceed})
		})
		r.readParams(prototype)
		r.writeParams(prototype)
		r.walkParams(prototype)
		return class
	case "TextEncoder":
		return r.makeTextEncoder()
	case "TextDecoder":
		return r.makeTextDecoder()
	case "atob":
		return r.function(name, r.atob)
	case "btoa":
		return r.function(name, r.btoa)
	case "crypto":
		return r.makeCrypto()
	case "structuredClone":
		return r.function(name, r.structuredClone)
	case "dates":
		return r.makeDates()
	case "numbers":
		return r.makeNumbers()
	case "toml":
		return r.makeTOML()
	case "yaml":
		return r.format(r.parseYAML, "print", r.printYAML)
	case "csv":
		return r.format(r.parseCSV, "print", r.printCSV)
	case "queueMicrotask":
		return r.function(name, r.queueMicrotask)
	}
	return nil
}

// textOf returns a value as text. Symbols, which refuse to become text, are described.
func textOf(v goja.Value) string {
	if v == nil {
		return ""
	}
	return v.String()
}
