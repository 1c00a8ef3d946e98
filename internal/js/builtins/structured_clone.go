package builtins

import (
	"strconv"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// Limits of structuredClone.
const (
	maxCloneDepth  = 500
	maxCloneValues = 1_000_000
)

// cloner copies a value within one runtime. It supports cycles and shared parts.
type cloner struct {
	r      *Realm
	copies map[*goja.Object]*goja.Object
	values int
	depth  int
}

// structuredClone copies plain objects, arrays, Date, Map, Set, RegExp, errors, ArrayBuffer, typed
// arrays and boxed primitives. Functions, symbols and other objects throw, as on other platforms.
func (r *Realm) structuredClone(c goja.FunctionCall) goja.Value {
	copying := cloner{r: r, copies: map[*goja.Object]*goja.Object{}}
	return copying.value(c.Argument(0))
}

func (c *cloner) refuse(what string) {
	panic(c.r.TypeError("structuredClone: " + what))
}

func (c *cloner) value(v goja.Value) goja.Value {
	if c.values++; c.values > maxCloneValues {
		c.refuse("more than " + strconv.Itoa(maxCloneValues) + " values")
	}
	c.r.Proceed()
	o, ok := v.(*goja.Object)
	if !ok {
		if _, symbol := v.(*goja.Symbol); symbol {
			c.refuse("a symbol cannot be copied")
		}
		return v
	}
	if done, ok := c.copies[o]; ok {
		return done
	}
	if c.depth++; c.depth > maxCloneDepth {
		c.refuse("nested deeper than " + strconv.Itoa(maxCloneDepth))
	}
	defer func() { c.depth-- }()
	return c.object(o)
}

func (c *cloner) object(o *goja.Object) goja.Value {
	switch jsvalue.KindOf(o) {
	case jsvalue.Function:
		c.refuse("a function cannot be copied")
	case jsvalue.Array:
		return c.array(o)
	case jsvalue.TypedArray:
		return c.typed(o)
	case jsvalue.Buffer:
		data, _ := c.r.BytesOf(o)
		return c.keep(o, c.r.newBuffer(append([]byte(nil), data...)).(*goja.Object))
	case jsvalue.Number, jsvalue.String, jsvalue.Boolean:
		return c.keep(o, c.r.Construct(o.ClassName(), c.r.Runtime.ToValue(o.Export())))
	case jsvalue.Date:
		return c.keep(o, c.r.Construct("Date", o))
	case jsvalue.RegExp:
		return c.keep(o, c.r.Construct("RegExp", o))
	case jsvalue.Error:
		return c.failure(o)
	case jsvalue.Map:
		return c.collection(o, "Map")
	case jsvalue.Set:
		return c.collection(o, "Set")
	}
	return c.members(o, c.keep(o, c.r.Runtime.NewObject()))
}

// keep records a copy before its members are copied, because they may refer to it.
func (c *cloner) keep(o, made *goja.Object) *goja.Object {
	c.copies[o] = made
	return made
}

func (c *cloner) members(from, to *goja.Object) *goja.Object {
	for _, key := range from.Keys() {
		_ = jsvalue.Define(to, key, c.value(from.Get(key)))
	}
	return to
}

func (c *cloner) array(o *goja.Object) goja.Value {
	made := c.keep(o, c.r.Runtime.NewArray())
	length := jsvalue.LengthOf(o)
	_ = made.Set("length", length)
	return c.members(o, made)
}

func (c *cloner) typed(o *goja.Object) goja.Value {
	if c.values += jsvalue.TypedLength(o) / 8; c.values > maxCloneValues*8 {
		c.refuse("the typed array is too large")
	}
	data, ok := c.r.BytesOf(o)
	if !ok {
		c.refuse("the typed array cannot be copied")
	}
	name := TextOf(o.Get("constructor").ToObject(c.r.Runtime).Get("name"))
	buffer := c.r.newBuffer(append([]byte(nil), data...))
	return c.keep(o, c.r.Construct(name, buffer))
}

func (c *cloner) failure(o *goja.Object) goja.Value {
	name := TextOf(o.Get("name"))
	switch name {
	case "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError":
	default:
		name = "Error"
	}
	made := c.keep(o, c.r.Construct(name, c.r.Runtime.ToValue(TextOf(o.Get("message")))))
	if cause := o.Get("cause"); cause != nil {
		_ = made.Set("cause", c.value(cause))
	}
	return made
}

func (c *cloner) collection(o *goja.Object, class string) goja.Value {
	made, method := c.keep(o, c.r.Construct(class)), "set"
	if class == "Set" {
		method = "add"
	}
	add, _ := jsvalue.Callable(made.Get(method))
	c.r.Runtime.ForOf(o, func(item goja.Value) bool {
		if class == "Set" {
			add(made, c.value(item))
			return true
		}
		pair := item.ToObject(c.r.Runtime)
		add(made, c.value(pair.Get("0")), c.value(pair.Get("1")))
		return true
	})
	return made
}
