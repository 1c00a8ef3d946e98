package scripting

import (
	"strconv"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// parallelState is the state of one parallel([…]).
type parallelState struct {
	// promised converts a value to a promise, and then is the method of promises: both are the
	// original functions of the engine.
	class          *goja.Object
	promised, then func(this goja.Value, args ...goja.Value) goja.Value

	values          *goja.Object // the array of results, in the order of the elements
	open            int
	failed          bool
	reason          goja.Value // the first failure
	resolve, reject func(any) error
}

func (r *execution) makeParallel() *goja.Object {
	class := r.Builtin("Promise")
	promised, _ := jsvalue.Callable(class.Get("resolve"))
	then, _ := jsvalue.Callable(builtins.Option(class.Get("prototype"), "then"))
	if promised == nil || then == nil {
		panic(r.TypeError("Promise was changed"))
	}
	return r.Function("parallel", func(c goja.FunctionCall) goja.Value {
		return r.parallel(c, &parallelState{class: class, promised: promised, then: then})
	})
}

// parallel is parallel([promises and functions]). It calls the functions one after the other, and
// waits for their results and for the promises. Its promise is fulfilled with the results in order,
// or rejected with the first failure, after all elements have ended.
func (r *execution) parallel(c goja.FunctionCall, j *parallelState) goja.Value {
	list, ok := c.Argument(0).(*goja.Object)
	if !ok || len(c.Arguments) != 1 || jsvalue.KindOf(list) != jsvalue.Array {
		panic(r.TypeError("parallel([…]): an array of promises, or of functions that return them, is needed"))
	}
	length := jsvalue.LengthOf(list)
	if length > int64(r.journal.limits.HostCalls) {
		panic(r.RangeError("parallel([…]): the array has more than " + strconv.Itoa(r.journal.limits.HostCalls) + " elements"))
	}
	items := make([]goja.Value, length)
	for i := range items {
		r.Proceed()
		if items[i] = list.Get(builtins.Index(int64(i))); items[i] == nil {
			items[i] = goja.Undefined()
		}
	}
	promise, resolve, reject := r.Runtime.NewPromise()
	j.values, j.open, j.resolve, j.reject = r.Runtime.NewArray(), len(items), resolve, reject
	for i, item := range items {
		r.Proceed()
		r.join(j, i, item)
	}
	if len(items) == 0 {
		j.settle()
	}
	return r.Runtime.ToValue(promise)
}

func (r *execution) join(j *parallelState, i int, item goja.Value) {
	if call, ok := jsvalue.Callable(item); ok {
		if thrown := r.Runtime.Try(func() { item = call(goja.Undefined()) }); thrown != nil {
			j.ended(i, nil, thrown.Value())
			return
		}
	}
	j.then(j.promised(j.class, item),
		r.Runtime.ToValue(func(c goja.FunctionCall) goja.Value { j.ended(i, c.Argument(0), nil); return goja.Undefined() }),
		r.Runtime.ToValue(func(c goja.FunctionCall) goja.Value { j.ended(i, nil, c.Argument(0)); return goja.Undefined() }))
}

// ended records the end of an element: its value, or its failure.
func (j *parallelState) ended(i int, value, reason goja.Value) {
	if reason != nil && !j.failed {
		j.failed, j.reason = true, reason
	}
	if reason == nil {
		_ = j.values.DefineDataProperty(builtins.Index(int64(i)), value, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	if j.open--; j.open == 0 {
		j.settle()
	}
}

func (j *parallelState) settle() {
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
