package compiler

import (
	"slices"
	"sync"

	"github.com/mcpd/mcpd/scripting/source"
)

func globalsOf(s *source.Source, tools *ToolNames) []string {
	if s.Kind == source.Code {
		return slices.Concat(codeGlobals(), tools.groups, tools.Bare)
	}
	return globals(s.Kind, s.Objects)
}

// globals returns the names that a script of this kind may use besides the globals of the engine. JSON,
// RegExp and String are objects of the engine with limits.
func globals(kind source.Kind, objects []source.Object) []string {
	names := []string{
		"AbortController", "AbortSignal", "JSON", "RegExp", "TextDecoder", "TextEncoder", "URL", "URLSearchParams",
		"AskDenied", "CapabilityError", "HostError", "RpcError", "ToolError",
		"atob", "btoa", "clearInterval", "clearTimeout", "console", "crypto", "csv", "dates", "log", "numbers", "queueMicrotask",
		"setInterval", "setTimeout", "structuredClone", "toml", "vars", "yaml",
	}
	names = append(names, kindGlobals(kind)...)
	names = append(names, grantsOf(objects)...)
	for _, name := range []string{"elicit", "sample", "roots", "ask"} {
		if slices.Contains(objects, source.Object{Kind: "ask", Name: name}) {
			names = append(names, name)
		}
	}
	return names
}

// kindGlobals returns the globals of this kind that other kinds may lack.
func kindGlobals(kind source.Kind) []string {
	switch kind {
	case source.Hook:
		return []string{"event"}
	case source.Resource:
		return []string{"uri", "params", "agent", "call", "content", "progress"}
	case source.Complete:
		return []string{"value", "params", "agent", "call"}
	case source.Code:
		return nil
	default:
		return []string{"input", "agent", "call", "content", "progress"}
	}
}

// codeGlobals returns the globals of agent code besides its tools: its own ones, and those of other
// JavaScript hosts. None of them has external effects.
func codeGlobals() []string {
	return []string{
		"console", "parallel", "print", "tools", "HostError",
		"AbortController", "AbortSignal", "JSON", "RegExp", "TextDecoder", "TextEncoder", "URL", "URLSearchParams",
		"atob", "btoa", "clearInterval", "clearTimeout", "crypto", "queueMicrotask", "setInterval", "setTimeout", "structuredClone",
	}
}

// builtins returns the names that the engine defines.
func builtins() []string {
	return []string{
		"AggregateError", "Array", "ArrayBuffer", "BigInt", "BigInt64Array", "BigUint64Array", "Boolean", "DataView",
		"Date", "Error", "EvalError", "Float32Array", "Float64Array", "Function", "GoError", "Infinity", "Int16Array",
		"Int32Array", "Int8Array", "JSON", "Map", "Math", "NaN", "Number", "Object", "Promise", "Proxy", "RangeError",
		"ReferenceError", "Reflect", "RegExp", "Set", "String", "Symbol", "SyntaxError", "TypeError", "URIError",
		"Uint16Array", "Uint32Array", "Uint8Array", "Uint8ClampedArray", "WeakMap", "WeakSet", "arguments",
		"decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "globalThis", "isFinite",
		"isNaN", "parseFloat", "parseInt", "undefined", "unescape",
	}
}

// builtinSet returns [builtins] as a set.
var builtinSet = sync.OnceValue(func() map[string]bool { return setOf(builtins()) })

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// kvMethods returns the methods of kv.NAME.
func kvMethods() []string { return []string{"get", "put", "delete", "cas", "list", "incr"} }

// LogLevels returns the methods of log.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// ConsoleMethods returns the methods of console.
func ConsoleMethods() []string { return []string{"debug", "error", "info", "log", "trace", "warn"} }

// HTTPMethods returns the methods of http.NAME, without request.
func HTTPMethods() []string { return []string{"get", "post", "put", "patch", "delete"} }
