package compiler

import (
	"slices"

	"github.com/mcpd/mcpd/scripting/source"
)

func globalsOf(s *source.Source, tools *ToolNames) []string {
	if s.Kind == source.Code {
		return slices.Concat(codeGlobals(), tools.groups, tools.Bare)
	}
	return globals(s.Kind, s.Objects)
}

// globals returns the names that a body of this kind may use beside what the
// engine defines. JSON, RegExp and String are the engine's own, with bounds.
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

// subjects returns the globals that bodies of this kind see and others may not.
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

// codeGlobals are the names that code sees beside its tools: its own, and what
// other JavaScript hosts have too. None of them reaches anything.
func codeGlobals() []string {
	return []string{
		"console", "parallel", "print", "tools", "HostError",
		"AbortController", "AbortSignal", "JSON", "RegExp", "TextDecoder", "TextEncoder", "URL", "URLSearchParams",
		"atob", "btoa", "clearInterval", "clearTimeout", "crypto", "queueMicrotask", "setInterval", "setTimeout", "structuredClone",
	}
}

// builtins are the names that the engine itself defines.
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

// kvMethods are the methods of kv.NAME.
func kvMethods() []string { return []string{"get", "put", "delete", "cas", "list", "incr"} }

// LogLevels are the methods of log.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// ConsoleMethods are the methods of console.
func ConsoleMethods() []string { return []string{"debug", "error", "info", "log", "trace", "warn"} }

// HTTPMethods are the methods of http.NAME, but for request.
func HTTPMethods() []string { return []string{"get", "post", "put", "patch", "delete"} }
