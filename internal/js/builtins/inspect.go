package builtins

import (
	"math"
	"math/big"
	"strings"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// maxShownDepth limits the depth at which nested objects are shown.
const maxShownDepth = 10

// InspectLine returns values as console shows them, side by side, in about limit bytes.
func (r *Realm) InspectLine(values []goja.Value, limit int) string {
	in := inspector{r: r, limit: limit}
	for i, v := range values {
		r.Proceed()
		if i > 0 {
			in.out = append(in.out, ' ')
		}
		if _, text := v.(goja.String); text {
			in.shown(v)
		} else {
			in.value(v)
		}
		if in.full() {
			break
		}
	}
	return truncate.Text(strings.ToValidUTF8(string(in.out), "\uFFFD"), max(limit+1, truncate.Least))
}

// inspector shows values for people: as JSON on one line where possible, and otherwise as consoles
// show them. It reads no more of a value than fits.
type inspector struct {
	r     *Realm
	limit int // approximate limit of out in bytes
	out   []byte
	outer []*goja.Object // objects around the current value
}

func (in *inspector) full() bool { return len(in.out) > in.limit }

func (in *inspector) add(text string) { in.out = append(in.out, text...) }

// truncateTo returns as much of a string as fits.
func (in *inspector) truncateTo(s goja.String) goja.String {
	if room := max(in.limit-len(in.out), 0) + 1; s.Length() > room {
		return s.Substring(0, room)
	}
	return s
}

func (in *inspector) value(v goja.Value) {
	in.r.Proceed()
	switch v := v.(type) {
	case nil:
		in.add("undefined")
	case *goja.Object:
		in.object(v)
	case goja.String:
		e := jsvalue.Encoder{Out: in.out, MaxBytes: math.MaxInt}
		_ = e.Text(in.truncateTo(v)) // there is no limit to exceed
		in.out = e.Out
	case *goja.Symbol:
		in.add("Symbol(" + v.String() + ")")
	default:
		in.primitive(v)
	}
}

// primitive shows a number, a boolean or a similar value in JavaScript syntax.
func (in *inspector) primitive(v goja.Value) {
	switch x := v.Export().(type) {
	case *big.Int:
		if x.BitLen() > 8*in.limit {
			in.add("[BigInt]")
			return
		}
		in.add(x.String() + "n")
	case float64:
		if x == 0 && math.Signbit(x) {
			in.add("-")
		}
		in.add(v.String())
	default:
		in.add(v.String())
	}
}

func (in *inspector) object(o *goja.Object) {
	for _, outer := range in.outer {
		if outer == o {
			in.add("[Circular]")
			return
		}
	}
	kind := jsvalue.KindOf(o)
	if in.named(o, kind) {
		return
	}
	if len(in.outer) >= maxShownDepth {
		in.add("[" + o.ClassName() + "]")
		return
	}
	in.outer = append(in.outer, o)
	switch kind {
	case jsvalue.Array, jsvalue.TypedArray:
		in.elements(o)
	case jsvalue.Map, jsvalue.Set:
		in.collection(o, kind)
	default:
		in.members(o)
	}
	in.outer = in.outer[:len(in.outer)-1]
}

// named shows an object that is not a collection of values, and reports whether o is one.
func (in *inspector) named(o *goja.Object, kind jsvalue.Kind) bool {
	switch kind {
	case jsvalue.Function:
		in.add("[Function")
		if name, ok := o.Get("name").(goja.String); ok && name.Length() > 0 {
			in.add(": " + in.truncateTo(name).String())
		}
		in.add("]")
	case jsvalue.Error:
		in.writeTextProperty(o, "name")
		in.add(": ")
		in.writeTextProperty(o, "message")
	case jsvalue.Date:
		if o.Export() == nil {
			in.add("Invalid Date")
			break
		}
		in.writeMethodResult(o, "toISOString")
	case jsvalue.RegExp, jsvalue.Number, jsvalue.String, jsvalue.Boolean:
		in.writeMethodResult(o, "toString")
	default:
		promise := jsvalue.PromiseOf(o)
		if promise == nil {
			return false
		}
		in.add([...]string{
			goja.PromiseStatePending:   "Promise { <pending> }",
			goja.PromiseStateFulfilled: "Promise { <fulfilled> }",
			goja.PromiseStateRejected:  "Promise { <rejected> }",
		}[promise.State()])
	}
	return true
}

func (in *inspector) writeMethodResult(o *goja.Object, method string) {
	if call, ok := jsvalue.Callable(o.Get(method)); ok {
		in.shown(call(o))
	}
}

func (in *inspector) writeTextProperty(o *goja.Object, name string) { in.shown(o.Get(name)) }

func (in *inspector) shown(v goja.Value) {
	if s, ok := v.(goja.String); ok {
		in.add(in.truncateTo(s).String())
	}
}

func (in *inspector) elements(o *goja.Object) {
	in.add("[")
	for i := range jsvalue.LengthOf(o) {
		if i > 0 {
			in.add(",")
		}
		if in.full() {
			break
		}
		in.value(o.Get(Index(i)))
	}
	in.add("]")
}

func (in *inspector) members(o *goja.Object) {
	if made := jsvalue.ToJSON("", o); made != goja.Value(o) {
		in.value(made)
		return
	}
	in.add("{")
	for i, key := range o.Keys() {
		if i > 0 {
			in.add(",")
		}
		if in.full() {
			break
		}
		in.value(in.r.Runtime.ToValue(key))
		in.add(":")
		in.value(o.Get(key))
	}
	in.add("}")
}

func (in *inspector) collection(o *goja.Object, kind jsvalue.Kind) {
	in.add(map[jsvalue.Kind]string{jsvalue.Map: "Map [", jsvalue.Set: "Set ["}[kind])
	first := true
	in.r.Runtime.ForOf(o, func(v goja.Value) bool {
		if !first {
			in.add(",")
		}
		first = false
		in.value(v)
		return !in.full()
	})
	in.add("]")
}
