package toolprompt

import (
	"strings"

	"github.com/mcpd/mcpd/scripting"
)

// maxName is the longest name of a tool that is a function, and the longest of a
// member that is shown, in bytes.
const maxName = 256

// words are the names that a function of a tool cannot have: those that the
// language keeps, and what beside them every script finds there.
var words = set(`
	arguments as async await break case catch class const continue debugger declare default delete do else enum eval export
	extends false finally for from function get if implements import in instanceof interface let namespace new null of package
	private protected public readonly return set static super switch this throw true try type typeof var void while with yield

	any bigint boolean never number object string symbol undefined unknown

	Infinity NaN globalThis isFinite isNaN parseFloat parseInt decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape
	AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError FinalizationRegistry
	Float32Array Float64Array Function Int16Array Int32Array Int8Array Intl Iterator JSON Map Math Number Object Promise Proxy
	RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String Symbol SyntaxError TypeError URIError Uint16Array
	Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet

	AbortController AbortSignal TextDecoder TextEncoder URL URLSearchParams AskDenied CapabilityError HostError RpcError ToolError
	atob btoa clearInterval clearTimeout console crypto csv dates log numbers queueMicrotask setInterval setTimeout structuredClone
	toml vars yaml input uri params value event agent call content progress http fs env secrets kv exec modules sql elicit sample
	roots ask

	parallel print tools
	__proto__ constructor hasOwnProperty prototype require then toString valueOf`)

func set(names string) map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(names) {
		m[name] = true
	}
	return m
}

// Callable reports whether a tool or a group can be reached by its bare name: it is
// an identifier of ASCII letters, digits, $ and _, and neither a word of JavaScript
// or TypeScript nor the name of something that scripts find there already. Each such
// name is one of [scripting.IsCodeName].
func Callable(name string) bool {
	return isIdentifier(name) && !words[name] && scripting.IsCodeName(name)
}

// isIdentifier reports whether a name can stand as the key of a member without
// quotes. Words that begin something else in a type are left out.
func isIdentifier(name string) bool {
	if name == "" || len(name) > maxName || name == "new" || '0' <= name[0] && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		if !isWordByte(name[i]) {
			return false
		}
	}
	return true
}

func isWordByte(c byte) bool { return isAlphanumeric(c) || c == '_' || c == '$' }

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// key returns a name as the key of a member.
func key(name string) string {
	if isIdentifier(name) {
		return name
	}
	return quote(name)
}

// maxPart is the most bytes of a name that become part of the name of a type.
const maxPart = 40

// pascal returns a name in the spelling of types, such as GetCustomer of
// get_customer. It is empty where the name has no letters or digits of ASCII.
func pascal(name string) string {
	var b strings.Builder
	begins := true
	for i := 0; i < len(name) && b.Len() < maxPart; i++ {
		c := name[i]
		switch {
		case !isAlphanumeric(c):
			begins = true
			continue
		case begins && 'a' <= c && c <= 'z':
			c -= 'a' - 'A'
		}
		b.WriteByte(c)
		begins = false
	}
	return b.String()
}
