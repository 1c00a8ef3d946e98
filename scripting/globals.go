package scripting

import (
	"errors"
	"slices"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/mcpd/mcpd/internal/base/wildcard"
	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/compiler"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// disableEval prevents scripts from compiling text. eval, Function and similar functions pass their
// options to the parser, and this option panics. Deeply nested text could otherwise overflow the
// stack of the process. The thrown value is a string, because options have no access to the
// runtime.
var disableEval = []parser.Option{refuseSource()}

func refuseSource() parser.Option {
	var option parser.Option = refuse
	return option
}

func refuse[T any](*T) {
	var b goja.StringBuilder
	b.WriteUTF8String("text cannot be run as code: eval and Function are not available")
	panic(goja.Value(b.String()))
}

// arguments returns the values of the globals, which are the parameters of the function of the
// script.
func (r *execution) arguments() (values []goja.Value, failure *Failure) {
	values = make([]goja.Value, len(r.Program.Parameters))
	failure = r.guarded("the arguments cannot be read", func() (err error) {
		for i, name := range r.Program.Parameters {
			if values[i], err = r.global(name); err != nil {
				return err
			}
		}
		return r.installGuards()
	})
	return values, failure
}

// installGuards replaces functions of the engine that the script may reach without naming a global,
// and defines all globals for a script that mentions globalThis.
func (r *execution) installGuards() error {
	for name, message := range r.Program.MissingNames {
		get := r.Runtime.ToValue(func(goja.FunctionCall) goja.Value { panic(r.Construct("ReferenceError", r.Runtime.ToValue(message))) })
		_ = r.Runtime.GlobalObject().DefineAccessorProperty(name, get, nil, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	r.guardPromises()
	r.GuardPrototypes()
	r.GuardProxies()
	if r.Program.Patterns {
		if err := r.BoundPatterns(); err != nil {
			return err
		}
	}
	if !r.Program.UsesGlobalThis {
		return nil
	}
	// Globals that wrap the global of the engine with the same name come first.
	global := r.Runtime.GlobalObject()
	for _, name := range []string{"JSON", "RegExp"} {
		if err := global.Set(name, r.Needed(name)); err != nil {
			return err
		}
	}
	for _, name := range r.Program.Globals() {
		if name == "JSON" || name == "RegExp" {
			continue
		}
		if err := r.defineLazyGlobal(name); err != nil {
			return err
		}
	}
	return nil
}

// defineLazyGlobal defines a property of globalThis that is created on first read.
func (r *execution) defineLazyGlobal(name string) error {
	become := func(v goja.Value) {
		_ = r.Runtime.GlobalObject().DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	get := r.Runtime.ToValue(func(goja.FunctionCall) goja.Value {
		v, err := r.global(name)
		if err != nil {
			panic(r.Throwable(err))
		}
		become(v)
		return v
	})
	set := r.Runtime.ToValue(func(c goja.FunctionCall) goja.Value {
		become(c.Argument(0))
		return goja.Undefined()
	})
	return r.Runtime.GlobalObject().DefineAccessorProperty(name, get, set, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// global returns the value of a global. Objects are created once.
func (r *execution) global(name string) (goja.Value, error) {
	if o, ok := r.globals[name]; ok {
		return o, nil
	}
	v, err := r.makeGlobal(name)
	if o, ok := v.(*goja.Object); ok && (r.Program.UsesGlobalThis || !isData(name)) {
		if r.globals == nil {
			r.globals = map[string]*goja.Object{}
		}
		r.globals[name] = o
	}
	return v, err
}

func (r *execution) makeGlobal(name string) (goja.Value, error) {
	switch name {
	case "input":
		if len(r.call.Input) == 0 {
			return r.Runtime.NewObject(), nil
		}
		d := jsvalue.Decoder{Runtime: r.Runtime, Src: string(r.call.Input), Big: r.Program.BigInts}
		return d.Document()
	case "event":
		return r.Data(r.call.Input, true)
	case "agent":
		return r.Data(r.call.Agent, true)
	case "call":
		return r.Data(r.call.Info, true)
	case "vars":
		return r.Data(r.Program.Vars, true)
	case "uri", "value", "params":
		return r.inputMember(name)
	case compiler.RanName:
		r.ran = make([]byte, (len(r.Program.Statements)+7)/8)
		return r.Runtime.ToValue(r.recordStatement), nil
	case "env":
		// The host is called before the script starts; every replay gets the same value.
		a, failure := r.callHostSync(OpEnv, []byte("{}"))
		switch {
		case failure != nil:
			r.abort(failure)
			return nil, jsvalue.ErrStopped
		case a.refusal != nil && r.ctx.Err() != nil:
			return nil, jsvalue.ErrStopped
		case a.refusal != nil:
			return nil, a.refusal
		}
		return r.Data(a.data, true)
	}
	return r.makeObject(name), nil
}

// inputMember returns a member of the input of the call, which is decoded once.
func (r *execution) inputMember(name string) (goja.Value, error) {
	if r.input == nil {
		v, err := r.Data(r.call.Input, true)
		if err != nil {
			return nil, err
		}
		o, ok := v.(*goja.Object)
		if !ok {
			return nil, errors.New("the input of the call is not an object")
		}
		r.input = o
	}
	return builtins.Option(r.input, name), nil
}

// isData reports whether a global is data, which no other global needs. Its identity matters only
// to a script that can reach it in two ways.
func isData(name string) bool {
	switch name {
	case "input", "event", "agent", "call", "vars", "uri", "value", "params", "env":
		return true
	}
	return false
}

// Needed returns a global that other globals need.
func (r *execution) Needed(name string) *goja.Object {
	v, _ := r.global(name) // none of them is data
	return v.(*goja.Object)
}

func (r *execution) makeObject(name string) *goja.Object {
	if r.Program.Kind == Code {
		if o := r.makeCodeGlobal(name); o != nil {
			return o
		}
	}
	switch name {
	case "log":
		o := r.Runtime.NewObject()
		for _, level := range compiler.LogLevels() {
			r.Method(o, level, func(c goja.FunctionCall) goja.Value {
				r.notifyHost(OpLog, r.logRecord(level, c))
				return goja.Undefined()
			})
		}
		return o
	case "console":
		o := r.Runtime.NewObject()
		for _, name := range compiler.ConsoleMethods() {
			r.Method(o, name, func(c goja.FunctionCall) goja.Value {
				r.notifyHost(OpConsole, mustJSON(printed{consoleLevel(name), r.consoleLine(c.Arguments), r.errorTraces(c.Arguments)}))
				return goja.Undefined()
			})
		}
		return o
	case "progress":
		o := r.Function("progress", r.progress)
		r.Method(o, "disconnect", r.disconnect)
		return o
	case "content":
		return r.makeContent()
	case "ToolError", "RpcError", "HostError", "AskDenied", "CapabilityError":
		return r.makeError(name)
	case "http":
		return r.grants("http", (*execution).makeClient)
	case "fs":
		return r.grants("fs", (*execution).makeFolder)
	case "kv":
		return r.grants("kv", (*execution).makeKVStore)
	case "exec":
		o := r.Runtime.NewObject()
		for _, granted := range r.Program.Objects {
			if granted.Kind == "exec" {
				r.Method(o, granted.Name, func(c goja.FunctionCall) goja.Value { return r.execute(granted.Name, c.Argument(0)) })
			}
		}
		return o
	case "sql":
		return r.grants("sql", (*execution).makeDatabase)
	case "tools":
		var patterns []string
		for _, granted := range r.Program.Objects {
			if granted.Kind == "tools" {
				patterns = append(patterns, granted.Name)
			}
		}
		covered := func(name string) (string, bool) { return name, compiler.CoversTool(patterns, name) }
		names := func() []string { return slices.DeleteFunc(slices.Clone(patterns), wildcard.Is) }
		return r.bareObject(toolsObject{r, covered, names}, "tools cannot be converted to text; write tools.NAME(args)")
	case "modules":
		return r.grants("modules", (*execution).makeModule)
	case "secrets":
		return r.makeSecrets()
	case "elicit":
		return r.makeElicit()
	case "sample":
		return r.makeSample()
	case "roots":
		return r.makeRoots()
	case "ask":
		return r.Function("ask", r.requestMany)
	case "setTimeout":
		return r.Function(name, func(c goja.FunctionCall) goja.Value { return r.setTimer(c, false) })
	case "setInterval":
		return r.Function(name, func(c goja.FunctionCall) goja.Value { return r.setTimer(c, true) })
	case "clearTimeout", "clearInterval":
		return r.Function(name, r.clearTimer)
	case "AbortController":
		class, prototype := r.Class("AbortController", func(this *goja.Object, _ goja.ConstructorCall) { r.Bind(this, r.newSignal()) })
		r.Accessor(prototype, "signal", func(c goja.FunctionCall) goja.Value { return builtins.Self[*abortSignal](&r.Realm, c.This).object }, nil)
		r.Method(prototype, "abort", func(c goja.FunctionCall) goja.Value {
			r.abortSignal(builtins.Self[*abortSignal](&r.Realm, c.This), r.abortReason(c.Argument(0)))
			return goja.Undefined()
		})
		return class
	case "AbortSignal":
		return r.makeAbortSignal()
	}
	return r.Standard(name)
}

// grants returns an object with one member for each grant of a kind. Members that the script cannot
// reach are omitted.
func (r *execution) grants(kind string, make func(r *execution, name string) *goja.Object) *goja.Object {
	o := r.Runtime.NewObject()
	for _, granted := range r.Program.Objects {
		if granted.Kind == kind && r.Program.Mentions(granted.Name) {
			_ = o.DefineDataProperty(granted.Name, make(r, granted.Name), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
		}
	}
	return o
}
