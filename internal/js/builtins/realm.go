// Package builtins creates the objects of scripts that need no host: JSON, URL, TextEncoder,
// crypto, structuredClone, RegExp, csv, dates, numbers, toml and yaml.
//
// A [Realm] is the runtime of one call with the state of such objects. [Realm.Standard] creates an
// object by name. Package scripting uses the realm to create the objects that need the call: its
// host, its loop, or its kinds of failure. Functions, classes and errors are in native.go, options
// and shapes of arguments in shape.go, and the guards of prototypes and proxies in guards.go. A
// realm accesses its call through a [Caller]. The package does not depend on journals and hosts.
// Most of its tests run scripts, and are in package scripting.
package builtins

import (
	"math/rand/v2"
	"time"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/compiler"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// Realm is the runtime of one call, with the state of native objects. It belongs to the goroutine
// of the call.
type Realm struct {
	// fixed at creation
	Runtime *goja.Runtime
	Program *compiler.Program
	Caller  Caller
	// MaxOutput and MaxDepth limit the JSON of a value.
	MaxOutput, MaxDepth int

	// engineSets is the original Reflect.setPrototypeOf, if the script may have proxies. traps is
	// the current nesting of proxy traps.
	engineSets func(this goja.Value, args ...goja.Value) goja.Value
	traps      int
	// States has the Go state of objects such as URLs.
	States map[*goja.Object]any
	random *rand.ChaCha8
	// zones caches time zones.
	zones map[string]*time.Location
}

// Caller is the call of a realm.
type Caller interface {
	// Stopped reports whether the call is over. It is cheap.
	Stopped() bool
	// Needed returns a global that other globals need.
	Needed(name string) *goja.Object
	// Warn logs a warning for the author of the script.
	Warn(message string)
	// CryptoRand returns the random stream of crypto.
	CryptoRand() *rand.ChaCha8
}

// Proceed panics when the call is over. Every loop over values of a script calls it at each step.
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

// JSON returns the value as JSON; nil for undefined.
func (r *Realm) JSON(value goja.Value) ([]byte, error) { return r.Encode(value, false) }

// Encode is [Realm.JSON] with an option to write a BigInt as an integer.
func (r *Realm) Encode(value goja.Value, bigints bool) ([]byte, error) {
	e := jsvalue.NewEncoder(r.MaxOutput, r.MaxDepth, r.Caller.Stopped)
	e.Awaited, e.BigInts = true, bigints
	wrote, err := e.Encode(value)
	if err != nil || !wrote {
		return nil, err
	}
	return e.Out, nil
}

// Standard returns an object that needs no host, by name; nil for other names.
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

// TextOf returns a value as text. Symbols, which cannot be converted, are described.
func TextOf(v goja.Value) string {
	if v == nil {
		return ""
	}
	return v.String()
}
