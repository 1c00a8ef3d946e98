package scripting

import "strings"

// ofPython returns what to write in JavaScript instead of what only Python has, and
// what [likely] says nothing of; nothing where it is not that.
func ofPython(s setting) string {
	switch {
	case strings.Contains(s.line, "__name__"):
		return nameOfPython("__name__")
	case s.first == "raise" && s.before == "raise":
		return nameOfPython("raise")
	case s.first == "from":
		return "nothing can be imported: the tools are there already"
	case s.before == "print" && (quotes(s.this) || wordStart(s.this+" ")):
		return "write print(…) with parentheses"
	case s.this == "if" && !s.newline && strings.Contains(s.line, " else "):
		return "write condition ? a : b instead of a if condition else b"
	case s.this == "for" && !s.newline:
		return "write list.map((x) => …) or list.filter((x) => …) instead of a comprehension"
	case s.before == "*" && strings.Contains(s.line, "**"):
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

// nameOfPython returns what code writes instead of what Python and shells have by a name;
// nothing of any other.
func nameOfPython(name string) string {
	switch name {
	case "echo", "println", "printf":
		return "write console.log(…)"
	case "json":
		return "write JSON.parse(text) and JSON.stringify(value)"
	case "asyncio":
		return "write await in front of a call, and await parallel([…]) for several at once"
	case "__name__":
		return "leave the condition out, and write its statements alone: the program is run as it stands"
	case "raise":
		return "write throw new Error(…)"
	case "Exception", "ValueError", "KeyError", "RuntimeError":
		return "write new Error(…)"
	case "dict":
		return "write { … } or Object.fromEntries(pairs)"
	case "range":
		return "write for (let i = 0; i < n; i++) { … }"
	case "enumerate":
		return "write list.entries()"
	case "sorted":
		return "write [...list].sort()"
	case "isinstance":
		return "write typeof x, or Array.isArray(x)"
	case "pass":
		return "leave it out: braces may be empty"
	}
	return ""
}
