package scripting

import (
	"strconv"

	"github.com/dop251/goja"
)

// joint is what parallel([…]) waits for.
type joint struct {
	// promised makes a promise of a value, and then is the method of promises: both
	// are those that the engine began with.
	class          *goja.Object
	promised, then func(this goja.Value, args ...goja.Value) goja.Value

	values          *goja.Object // the array of results, in the order of what they are of
	open            int
	failed          bool
	reason          goja.Value // what failed first
	resolve, reject func(any) error
}

// makeParallel makes parallel.
func (r *run) makeParallel() *goja.Object {
	class := r.builtin("Promise")
	prototype, _ := class.Get("prototype").(*goja.Object)
	promised, ok := callable(class.Get("resolve"))
	if !ok || prototype == nil {
		panic(r.typeError("Promise was changed"))
	}
	then, ok := callable(prototype.Get("then"))
	if !ok {
		panic(r.typeError("Promise was changed"))
	}
	return r.function("parallel", func(c goja.FunctionCall) goja.Value {
		return r.parallel(c, &joint{class: class, promised: promised, then: then})
	})
}

// parallel is parallel([promises and functions]): it calls the functions, one
// behind the other, and waits for all that they return, and for the promises.
// Its promise is fulfilled with the results in order, or rejected with what failed
// first, but not before everything has ended.
func (r *run) parallel(c goja.FunctionCall, j *joint) goja.Value {
	list, ok := c.Argument(0).(*goja.Object)
	if !ok || len(c.Arguments) != 1 || kindOf(list) != kindArray {
		panic(r.typeError("parallel([…]): an array of promises, or of functions that return them, is needed"))
	}
	length := lengthOf(list)
	if length > int64(r.limits.HostCalls) {
		panic(r.rangeError("parallel([…]): the array has more than " + strconv.Itoa(r.limits.HostCalls) + " elements"))
	}
	items := make([]goja.Value, length)
	for i := range items {
		r.proceed()
		if items[i] = list.Get(index(int64(i))); items[i] == nil {
			items[i] = goja.Undefined()
		}
	}
	promise, resolve, reject := r.rt.NewPromise()
	j.values, j.open, j.resolve, j.reject = r.rt.NewArray(), len(items), resolve, reject
	for i, item := range items {
		r.proceed()
		r.join(j, i, item)
	}
	if len(items) == 0 {
		j.settle()
	}
	return r.rt.ToValue(promise)
}

// join begins one of the elements.
func (r *run) join(j *joint, i int, item goja.Value) {
	if call, ok := callable(item); ok {
		if thrown := r.rt.Try(func() { item = call(goja.Undefined()) }); thrown != nil {
			j.ended(i, nil, thrown.Value())
			return
		}
	}
	j.then(j.promised(j.class, item),
		r.rt.ToValue(func(c goja.FunctionCall) goja.Value { j.ended(i, c.Argument(0), nil); return goja.Undefined() }),
		r.rt.ToValue(func(c goja.FunctionCall) goja.Value { j.ended(i, nil, c.Argument(0)); return goja.Undefined() }))
}

// ended takes in how an element has ended: with a value, or with why it failed.
func (j *joint) ended(i int, value, reason goja.Value) {
	if reason != nil && !j.failed {
		j.failed, j.reason = true, reason
	}
	if reason == nil {
		_ = j.values.DefineDataProperty(index(int64(i)), value, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	if j.open--; j.open == 0 {
		j.settle()
	}
}

// settle settles the promise of parallel.
func (j *joint) settle() {
	var err error
	if j.failed {
		err = j.reject(j.reason)
	} else {
		err = j.resolve(j.values)
	}
	if err != nil {
		panic(err)
	}
}
