package scripting

import (
	"math"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/dop251/goja"
)

// objectKind sorts objects by how they are written and copied.
type objectKind int

const (
	kindPlain objectKind = iota
	kindArray
	kindFunction
	kindTyped
	kindBuffer
	kindNumber
	kindString
	kindBoolean
	kindDate
	kindRegExp
	kindError
	kindMap
	kindSet
)

// The types that goja exports objects as. Telling the type of an object runs
// no user code; exporting most objects does.
var (
	proxyType   = reflect.TypeFor[goja.Proxy]()
	promiseType = reflect.TypeFor[*goja.Promise]()
	bufferType  = reflect.TypeFor[goja.ArrayBuffer]()
	bytesType   = reflect.TypeFor[[]byte]()
	dateType    = reflect.TypeFor[time.Time]()
	mapType     = reflect.TypeFor[[][2]any]()
	setType     = reflect.TypeFor[[]any]()
)

// maxProxies bounds how many proxies of proxies are looked through.
const maxProxies = 100

// kindOf sorts an object without running user code. Of a proxy it looks at the
// target, as Array.isArray does; a revoked one panics with a TypeError.
func kindOf(o *goja.Object) objectKind {
	for range maxProxies {
		t := o.ExportType()
		if t != proxyType {
			return kindOfClass(o.ClassName(), t)
		}
		if o.ClassName() == "Function" {
			return kindFunction
		}
		o = o.Export().(goja.Proxy).Target()
	}
	return kindPlain
}

func kindOfClass(class string, t reflect.Type) objectKind {
	switch class {
	case "Array":
		return kindArray
	case "Function":
		return kindFunction
	case "Number":
		return kindNumber
	case "String":
		return kindString
	case "Boolean":
		return kindBoolean
	case "RegExp":
		return kindRegExp
	case "Error":
		return kindError
	}
	switch t {
	case dateType:
		return kindDate
	case mapType:
		return kindMap
	case setType:
		return kindSet
	case bufferType:
		return kindBuffer
	}
	switch {
	case t == nil:
		return kindPlain
	case t.Kind() == reflect.Func:
		return kindFunction
	case t.Kind() == reflect.Slice:
		return kindTyped
	}
	return kindPlain
}

// typedLength returns the number of elements of a typed array, whatever its
// length property says.
func typedLength(o *goja.Object) int {
	v := reflect.ValueOf(o.Export())
	if v.Kind() != reflect.Slice {
		return 0
	}
	return v.Len()
}

// lengthOf returns the length of an array or of what behaves like one.
func lengthOf(o *goja.Object) int64 {
	v := o.Get("length")
	if v == nil {
		return 0
	}
	n := v.ToInteger()
	return max(0, min(n, 1<<53-1))
}

// callable returns v as a function that panics with what it throws, as
// functions in the midst of a script must. It allocates nothing else.
func callable(v goja.Value) (func(this goja.Value, args ...goja.Value) goja.Value, bool) {
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

// number returns v as a finite number, or ok false.
func number(v goja.Value) (f float64, ok bool) {
	switch x := v.Export().(type) {
	case int64:
		return float64(x), true
	case float64:
		return x, !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	return 0, false
}

// whole returns v as an integer of which a number holds all digits, or ok false.
func whole(v goja.Value) (n int64, ok bool) {
	f, ok := number(v)
	return int64(f), ok && f == math.Trunc(f) && math.Abs(f) <= 1<<53-1
}

// bigints says where in decoded JSON a number is a BigInt. Nil is nowhere.
type bigints struct {
	here bool
	// members are those within members of an object; "*" is for those of every other
	// member, and for the items of an array.
	members map[string]*bigints
}

// bigintsAt returns the places that pointers name (see [Source.BigInts]).
func bigintsAt(pointers []string) *bigints {
	if len(pointers) == 0 {
		return nil
	}
	root := &bigints{}
	for _, pointer := range pointers {
		at := root
		for _, name := range strings.Split(pointer, "/")[1:] {
			inner := at.members[name]
			if inner == nil {
				if at.members == nil {
					at.members = map[string]*bigints{}
				}
				inner = &bigints{}
				at.members[name] = inner
			}
			at = inner
		}
		at.here = true
	}
	return root
}

func (b *bigints) member(name string) *bigints {
	if b == nil {
		return nil
	}
	if inner, ok := b.members[name]; ok {
		return inner
	}
	return b.members["*"]
}

func (b *bigints) item() *bigints {
	if b == nil {
		return nil
	}
	return b.members["*"]
}

// maxBigInt is how many digits of a BigInt are read and written.
const maxBigInt = 308

// maxBigIntBits is how many bits no BigInt of so many digits exceeds.
const maxBigIntBits = 1024

func (d *decoder) bigint(text string) (goja.Value, bool) {
	if len(strings.TrimPrefix(text, "-")) > maxBigInt {
		return nil, false
	}
	b, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return nil, false
	}
	return d.rt.ToValue(b), true
}

// promiseOf returns the promise that v is, nil when it is none.
func promiseOf(v goja.Value) *goja.Promise {
	o, ok := v.(*goja.Object)
	if !ok || o.ExportType() != promiseType {
		return nil
	}
	return o.Export().(*goja.Promise)
}
