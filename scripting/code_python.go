package scripting

import "strings"

// ofPython returns what to write in JavaScript instead of what only Python has, and
// what [likely] says nothing of; nothing where it is not that.
func ofPython(s setting) string {
	switch {
	case s.before == "print" && (quotes(s.this) || wordStart(s.this+" ")):
		return "write print(…) with parentheses"
	case s.this == "if" && !s.newline && strings.Contains(s.line, " else "):
		return "write condition ? a : b instead of a if condition else b"
	case s.this == "for" && !s.newline:
		return "write list.map((x) => …) or list.filter((x) => …) instead of a comprehension"
	case s.this == "*" && s.after == "*":
		return "write ...object instead of **object"
	case s.this == ":" && (s.first == "try" || s.first == "finally" || s.first == "else"):
		return "put what belongs to " + s.first + " between { and }"
	case s.first == "with":
		return "with does not exist: write its statements alone"
	case s.first == "for" && s.after == "in":
		return "write for (const x of list) { … }"
	}
	return ""
}
