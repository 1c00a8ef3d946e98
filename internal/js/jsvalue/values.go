// Package jsvalue classifies the values of a JavaScript runtime, and decodes and encodes them as
// JSON.
//
// [KindOf] classifies an object without running user code. [Decoder] decodes JSON text to values,
// and [Encoder] encodes values like JSON.stringify; both have limits. The package does not depend
// on globals, calls and hosts. Its tests run scripts, and are in package scripting.
package jsvalue

import (
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/dop251/goja"
)

// Kind classifies objects by how they are encoded and copied.
type Kind int

const (
	Plain Kind = iota
	Array
	Function
	TypedArray
	Buffer
	Number
	String
	Boolean
	Date
	RegExp
	Error
	Map
	Set
)

// Types to which goja exports objects. Reading the type of an object runs no user code; exporting
// most objects does.
var (
	ProxyType   = reflect.TypeFor[goja.Proxy]()
	promiseType = reflect.TypeFor[*goja.Promise]()
	BufferType  = reflect.TypeFor[goja.ArrayBuffer]()
	BytesType   = reflect.TypeFor[[]byte]()
	dateType    = reflect.TypeFor[time.Time]()
	mapType     = reflect.TypeFor[[][2]any]()
	setType     = reflect.TypeFor[[]any]()
)

// maxProxies limits the length of a chain of proxies.
const maxProxies = 100

// KindOf classifies an object without running user code. For a proxy it classifies the target, like
// Array.isArray; a revoked proxy panics with a TypeError.
func KindOf(o *goja.Object) Kind {
	for range maxProxies {
		t := o.ExportType()
		if t != ProxyType {
			return kindOfClass(o.ClassName(), t)
		}
		if o.ClassName() == "Function" {
			return Function
		}
		o = o.Export().(goja.Proxy).Target()
	}
	return Plain
}

func kindOfClass(class string, t reflect.Type) Kind {
	switch class {
	case "Array":
		return Array
	case "Function":
		return Function
	case "Number":
		return Number
	case "String":
		return String
	case "Boolean":
		return Boolean
	case "RegExp":
		return RegExp
	case "Error":
		return Error
	}
	switch t {
	case dateType:
		return Date
	case mapType:
		return Map
	case setType:
		return Set
	case BufferType:
		return Buffer
	}
	switch {
	case t == nil:
		return Plain
	case t.Kind() == reflect.Func:
		return Function
	case t.Kind() == reflect.Slice:
		return TypedArray
	}
	return Plain
}

// TypedLength returns the number of elements of a typed array, regardless of its length property.
func TypedLength(o *goja.Object) int {
	v := reflect.ValueOf(o.Export())
	if v.Kind() != reflect.Slice {
		return 0
	}
	return v.Len()
}

// LengthOf returns the length of an array or an array-like object.
func LengthOf(o *goja.Object) int64 {
	v := o.Get("length")
	if v == nil {
		return 0
	}
	n := v.ToInteger()
	return max(0, min(n, 1<<53-1))
}

// Callable returns v as a function that panics with exceptions, as required in native functions of
// a script. It allocates nothing else.
func Callable(v goja.Value) (func(this goja.Value, args ...goja.Value) goja.Value, bool) {
	call, ok := goja.AssertFunction(v)
	if !ok {
		return nil, false
	}
	return func(this goja.Value, args ...goja.Value) goja.Value {
		result, err := call(this, args...)
		if err != nil {
			panic(err)
		}
		return result
	}, true
}

// Finite returns v as a finite number; ok is false if it is none.
func Finite(v goja.Value) (f float64, ok bool) {
	switch x := v.Export().(type) {
	case int64:
		return float64(x), true
	case float64:
		return x, !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	return 0, false
}

// Whole returns v as an integer that a number represents exactly; ok is false if it is none.
func Whole(v goja.Value) (n int64, ok bool) {
	f, ok := Finite(v)
	return int64(f), ok && f == math.Trunc(f) && math.Abs(f) <= 1<<53-1
}

// BigInts has the positions of BigInts in decoded JSON. Nil has none.
type BigInts struct {
	here bool
	// members has the positions within members of an object. "*" is for all other members, and for
	// the items of an array.
	members map[string]*BigInts
}

// BigIntsAt returns the positions of JSON pointers (see source.Source.BigInts).
func BigIntsAt(pointers []string) *BigInts {
	if len(pointers) == 0 {
		return nil
	}
	root := &BigInts{}
	for _, pointer := range pointers {
		at := root
		for _, name := range strings.Split(pointer, "/")[1:] {
			inner := at.members[name]
			if inner == nil {
				if at.members == nil {
					at.members = map[string]*BigInts{}
				}
				inner = &BigInts{}
				at.members[name] = inner
			}
			at = inner
		}
		at.here = true
	}
	return root
}

func (b *BigInts) member(name string) *BigInts {
	if b == nil {
		return nil
	}
	if inner, ok := b.members[name]; ok {
		return inner
	}
	return b.members["*"]
}

func (b *BigInts) item() *BigInts {
	if b == nil {
		return nil
	}
	return b.members["*"]
}

// PromiseOf returns v as a promise; nil if it is none.
func PromiseOf(v goja.Value) *goja.Promise {
	o, ok := v.(*goja.Object)
	if !ok || o.ExportType() != promiseType {
		return nil
	}
	return o.Export().(*goja.Promise)
}
