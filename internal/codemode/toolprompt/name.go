package toolprompt

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/scripting"
)

// maxName bounds names of functions and of shown members, in bytes.
const maxName = 256

// reservedWords cannot be function names: reserved words of the language, and globals of
// scripts.
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

// Callable reports whether a tool or group can be called by its bare name: an identifier of
// ASCII letters, digits, $ and _, which is not a word of JavaScript or TypeScript, and not a
// global of scripts. Each such name satisfies [scripting.IsCodeName].
func Callable(name string) bool {
	return isIdentifier(name) && !reservedWords[name] && scripting.IsCodeName(name)
}

// isIdentifier reports whether a name can be an unquoted property name. Words with another
// meaning in types are excluded.
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

// maxPart bounds the part of a name that is used in a type name, in bytes.
const maxPart = 40

// pascalCase converts a name to a type name, such as get_customer to GetCustomer. It returns ""
// for names without ASCII letters and digits.
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

// fence ends a code block in a prompt.
const fence = "```"

// ellipsis marks truncated text.
const ellipsis = "…"

// maxLine bounds a line of a comment, in bytes.
const maxLine = 1 << 10

// isVisible reports whether a character is visible: no control character, no change of text
// direction, and no invisible character.
func isVisible(r rune) bool {
	if r < utf8.RuneSelf {
		return ' ' <= r && r <= '~'
	}
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// singleLine returns a text as one line of at most limit bytes that is safe in a comment. It
// collapses white space and drops invisible characters. Nothing in it ends the comment, or the
// code block around it.
func singleLine(text string, limit int) string {
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
		if b.Len()+utf8.RuneLen(r) > limit {
			b.WriteString(ellipsis)
			break
		}
		b.WriteRune(r)
		last = r
	}
	return strings.ReplaceAll(b.String(), fence, "'''")
}

// commentLines returns the lines of a text for a comment: at most limit lines that are not
// empty. None starts like our tags.
func commentLines(text string, limit int) []string {
	var list []string
	for len(text) > 0 {
		var next string
		next, text = cutLine(text)
		if next = strings.TrimLeft(singleLine(next, maxLine), "@ "); next == "" {
			continue
		}
		if len(list) == limit {
			return append(list, ellipsis)
		}
		list = append(list, next)
	}
	return list
}

// cutLine returns the first line of a text, and the rest.
func cutLine(text string) (first, rest string) {
	at := strings.IndexAny(text, "\n\r\u0085\u2028\u2029")
	if at < 0 {
		return text, ""
	}
	_, size := utf8.DecodeRuneInString(text[at:])
	return text[:at], text[at+size:]
}

// maxSentence bounds a first sentence, in bytes.
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

// quote returns a text as a string literal on one line with visible characters only. Escapes
// keep the value of the literal.
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

// comment returns lines as a comment with a line break at its end. All lines but the first are
// indented. It returns "" without lines.
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
