// Package builtins makes objects of a script that ask no host: JSON, URL, TextEncoder, crypto,
// structuredClone, RegExp, csv, dates, numbers, toml and yaml.
//
// A [Realm] is the runtime of one call with what such objects need: [Realm.Standard] makes an object
// by its name. The realm also has the tools by which package scripting makes the objects that need the
// call: its host, its loop, or its kinds of failure. Functions, classes and errors are in native.go,
// options and shapes of arguments in shape.go, and the guards of prototypes and proxies in guards.go.
// What a realm needs of its call it asks a [Caller]. The package knows no journal and no host.
// Most of its tests run bodies, and stand in package scripting.
package builtins

import (
	"math/rand/v2"
	"time"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/compiler"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// Realm is the runtime of one call, with what objects that are made in Go need. It belongs to
// the goroutine of the call.
type Realm struct {
	// fixed at creation
	Runtime *goja.Runtime
	Program *compiler.Program
	Caller  Caller
	// MaxOutput and MaxDepth bound the JSON of a value.
	MaxOutput, MaxDepth int

	// engineSets is Reflect.setPrototypeOf of the engine, where the body may have proxies, and
	// traps how deep it is in them.
	engineSets func(this goja.Value, args ...goja.Value) goja.Value
	traps      int
	// States are the Go halves of objects such as URLs.
	States map[*goja.Object]any
	random *rand.ChaCha8
	// zones are the time zones that were asked for.
	zones map[string]*time.Location
}

// Caller is the call that a realm belongs to.
type Caller interface {
	// Stopped reports whether the call is over. It costs next to nothing.
	Stopped() bool
	// Needed returns a global that other globals are made of.
	Needed(name string) *goja.Object
	// Warn tells the author of the body something.
	Warn(message string)
	// CryptoRand returns the randomness of the object crypto.
	CryptoRand() *rand.ChaCha8
}

// Proceed ends a native function of a call that is over. Every loop over what
// a script made asks it at each step.
func (r *Realm) Proceed() {
	if r.Caller.Stopped() {
		panic(r.Throwable(jsvalue.ErrStopped))
	}
}

// Decode returns the value of JSON text.
func (r *Realm) Decode(text string) (goja.Value, error) {
	d := jsvalue.Decoder{Runtime: r.Runtime, Src: text, Stopped: r.Caller.Stopped}
	return d.Document()
}

// JSON returns the value as JSON, nil for undefined.
func (r *Realm) JSON(value goja.Value) ([]byte, error) { return r.Encode(value, false) }

// Encode is [Realm.JSON] where a BigInt may be an integer.
func (r *Realm) Encode(value goja.Value, bigints bool) ([]byte, error) {
	e := jsvalue.NewEncoder(r.MaxOutput, r.MaxDepth, r.Caller.Stopped)
	e.Awaited, e.BigInts = true, bigints
	wrote, err := e.Encode(value)
	if err != nil || !wrote {
		return nil, err
	}
	return e.Out, nil
}

// Standard makes an object that asks no host, by its name; nil for other names.
func (r *Realm) Standard(name string) *goja.Object {
	switch name {
	case "JSON":
		return r.format(r.parse, "stringify", r.stringify)
	case "RegExp":
		return r.makeRegExp()
	case "URL":
		return r.makeURL()
	case "URLSearchParams":
		class, prototype := r.Class("URLSearchParams", func(this *goja.Object, c goja.ConstructorCall) {
			r.Bind(this, &searchParams{pairs: r.pairs(c.Argument(0)), proceed: r.Proceed})
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
		return r.Function(name, r.atob)
	case "btoa":
		return r.Function(name, r.btoa)
	case "crypto":
		return r.makeCrypto()
	case "structuredClone":
		return r.Function(name, r.structuredClone)
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
		return r.Function(name, r.queueMicrotask)
	}
	return nil
}

// TextOf returns a value as text. Symbols, which refuse to become text, are described.
func TextOf(v goja.Value) string {
	if v == nil {
		return ""
	}
	return v.String()
}
