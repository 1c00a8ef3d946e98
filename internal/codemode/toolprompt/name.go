package toolprompt

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/scripting"
)

// maxName is the longest name of a tool that is a function, and the longest of a
// member that is shown, in bytes.
const maxName = 256

// words are the names that a function of a tool cannot have: those that the
// language keeps, and what beside them every script finds there.
var reservedWords = set(`
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
	return isIdentifier(name) && !reservedWords[name] && scripting.IsCodeName(name)
}

// isIdentifier reports whether a name can stand as the key of a member without
// quotes. Words that begin something else in a type are left out.
func isIdentifier(name string) bool {
	if name == "" || len(name) > maxName || name == "new" || '0' <= name[0] && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && c != '_' && c != '$' {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func propertyKey(name string) string {
	if isIdentifier(name) {
		return name
	}
	return quote(name)
}

// maxPart is the most bytes of a name that become part of the name of a type.
const maxPart = 40

// pascal returns a name in the spelling of types, such as GetCustomer of
// get_customer. It is empty where the name has no letters or digits of ASCII.
func pascalCase(name string) string {
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

// fence ends the part of a prompt that is code.
const fence = "```"

// ellipsis ends what was shortened.
const ellipsis = "…"

// maxLine bounds the bytes of a line of a comment.
const maxLine = 1 << 10

// shown reports whether a character can be seen: it neither controls a terminal,
// turns the direction of text, nor hides between others.
func isVisible(r rune) bool {
	if r < utf8.RuneSelf {
		return ' ' <= r && r <= '~'
	}
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// line returns a text as one line of at most most bytes that can stand in a
// comment: of runs of white space one space is left, and what cannot be seen is left
// out. Nothing in it ends the comment, or the code that the comment stands in.
func singleLine(text string, most int) string {
	var b strings.Builder
	space, last := false, ' '
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if !isVisible(r) {
			continue
		}
		if space || r == '/' && last == '*' {
			b.WriteByte(' ')
			space = false
		}
		if b.Len()+utf8.RuneLen(r) > most {
			b.WriteString(ellipsis)
			break
		}
		b.WriteRune(r)
		last = r
	}
	return strings.ReplaceAll(b.String(), fence, "'''")
}

// lines returns the lines of a text for a comment: at most most of them that are not
// empty. None begins as a tag of ours does.
func commentLines(text string, most int) []string {
	var list []string
	for len(text) > 0 {
		var next string
		next, text = cutLine(text)
		if next = strings.TrimLeft(singleLine(next, maxLine), "@ "); next == "" {
			continue
		}
		if len(list) == most {
			return append(list, ellipsis)
		}
		list = append(list, next)
	}
	return list
}

// cutLine returns the first line of a text, and what stands behind it.
func cutLine(text string) (first, rest string) {
	at := strings.IndexAny(text, "\n\r\u0085\u2028\u2029")
	if at < 0 {
		return text, ""
	}
	_, size := utf8.DecodeRuneInString(text[at:])
	return text[:at], text[at+size:]
}

// maxSentence bounds the bytes of a first sentence.
const maxSentence = 200

// FirstSentence returns the first sentence of a text, as a line for a comment.
func FirstSentence(text string) string {
	first := commentLines(text, 1)
	if len(first) == 0 {
		return ""
	}
	s := first[0]
	for i := 0; i+2 < len(s); i++ {
		if strings.IndexByte(".!?", s[i]) >= 0 && s[i+1] == ' ' && 'A' <= s[i+2] && s[i+2] <= 'Z' {
			s = s[:i+1]
			break
		}
	}
	return singleLine(s, maxSentence)
}

// quote returns a text as a string literal of one line, of which no byte is
// anything but printed. Escapes keep the value that the literal has.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case isVisible(r) && r != '`':
			b.WriteRune(r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// comment returns lines as a comment of which every line but the first begins with
// the indent, and ends with a line break. There is none of no lines.
func comment(lines []string, indent string) string {
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return "/** " + lines[0] + " */\n"
	}
	var b strings.Builder
	b.WriteString("/**\n")
	for _, l := range lines {
		b.WriteString(indent + " * " + l + "\n")
	}
	b.WriteString(indent + " */\n")
	return b.String()
}
