package compiler

import (
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/js/syntax"
)

// errorContext is the text around a syntax error.
type errorContext struct {
	message string
	// before, this and after are three words or characters; the error is at this.
	before, this, after string
	// first is the first word or character of the line; line is the line, and prior the line
	// before.
	first, line, prior string
	// newline is set if a line ends before this.
	newline bool
	// adjacent is set if nothing separates before and this.
	adjacent bool
}

func errorContextAt(text string, at int, message string) errorContext {
	at = min(at, len(text))
	s := errorContext{message: message, this: text[at:wordEnd(text, at)]}
	end := len(strings.TrimRight(text[:at], " \t\r\n"))
	s.before = lastWord(text[:end])
	s.newline, s.adjacent = strings.Contains(text[end:at], "\n"), end == at
	rest := strings.TrimLeft(text[at+len(s.this):], " \t\r\n")
	s.after = rest[:wordEnd(rest, 0)]
	start := strings.LastIndexByte(text[:at], '\n') + 1
	s.line = strings.TrimSpace(text[start : at+syntax.LineLength(text[at:])])
	prior := strings.TrimRight(text[:start], "\r\n")
	s.prior = strings.TrimSpace(prior[strings.LastIndexByte(prior, '\n')+1:])
	s.first = s.line[:wordEnd(s.line, 0)]
	return s
}

// lastWord returns the last word of a text, or its last character.
func lastWord(text string) string {
	start := wordStartBefore(text, len(text))
	if start == len(text) {
		_, size := utf8.DecodeLastRuneInString(text)
		start -= size
	}
	return text[start:]
}

// syntaxHint returns advice for typical errors of people who know another language better, or who
// write in haste; empty for other errors.
func syntaxHint(text string, at int, message string) string {
	s := errorContextAt(text, at, message)
	for _, look := range []func(errorContext) string{foreignWord, foreignSign, misnamed, unlisted, unfinished} {
		if advice := look(s); advice != "" {
			return advice
		}
	}
	return ""
}

// foreignWords is advice for words of other languages.
var foreignWords = byName([]hint{
	{"and", "write && instead of and"},
	{"or", "write || instead of or"},
	{"not", "write ! instead of not"},
	{"is", "write === instead of is"},
	{"lambda", "write (x) => … instead of lambda x: …"},
	{"then endif fi end begin", "put the statements of an if or a loop between { and }"},
})

func foreignWord(s errorContext) string {
	if s.this == "var" && s.after == "." || s.before == "var" && s.this == "." {
		return "scripts read the variables of mcpd.hcl as vars.NAME"
	}
	for _, word := range []string{s.this, s.before} {
		if instead := foreignWords[word]; instead != "" {
			return instead
		}
	}
	first := s.first
	for _, word := range []string{"elif", "elseif", "elsif", "except", "rescue"} {
		if strings.Contains(s.line, "} "+word) {
			first = word
			break
		}
	}
	switch first {
	case "elif", "elseif", "elsif":
		return "write else if (…) { … } instead of " + first
	case "def", "func", "fn", "sub", "fun":
		return "write function name(…) { … } instead of " + first
	case "except", "rescue":
		return "write catch (error) { … } after try { … }"
	case "foreach", "unless", "until", "repeat", "loop":
		return "write for (const x of list) { … }, or if (…) and while (…), instead of " + first
	case "string", "int", "bool", "boolean", "float", "double", "number", "auto", "dim", "my", "local", "val", "final", "object":
		if s.before == first {
			return "declare variables with const or let: const name = …"
		}
	case "from":
		return `write import { name } from "./file.js"`
	case "#":
		return "a comment starts with //"
	}
	return ""
}

// foreignSign returns advice for operators of other languages, and for similar-looking characters.
func foreignSign(s errorContext) string {
	quote := quotes(s.this)
	switch {
	case strings.HasPrefix(s.line, "<<<<<<<"), strings.HasPrefix(s.line, "======="), strings.HasPrefix(s.line, ">>>>>>>"):
		return "a merge left a conflict here: keep one of its sides, and remove the other and its marks"
	case strings.ContainsAny(s.this, "“”„‟"), strings.ContainsAny(s.this, "‘’‚‛"):
		return `write straight quotes, " or ', instead of ` + s.this
	case s.this == "#" || s.before == "#" && !s.newline:
		return "a comment starts with //"
	case quote && s.adjacent && (s.before == "f" || s.before == "F"):
		return "write `text ${name}` between backticks instead of f\"text {name}\""
	case quote && s.adjacent && s.before == s.this:
		return "write text of several lines between backticks, as a `template`"
	case s.before == ":" && s.this == "=" && s.adjacent, s.this == ":" && s.after == "=" && strings.Contains(s.line, ":="):
		return "write = instead of :="
	case s.before == "=" && s.this == "=":
		return "write === without spaces"
	case s.before == "=" && s.this == "<" && s.adjacent, s.this == ")" && strings.Contains(s.line, "=<"):
		return "write <= instead of =<"
	case s.before == "<" && s.this == ">" && s.adjacent:
		return "write !== instead of <>"
	case s.before == "-" && s.this == ">" && s.adjacent, s.before == ">" && strings.Contains(s.line, "->"):
		return "write => instead of ->"
	case s.before == "$" && s.this == "{":
		return "write ${…} only in text between backticks"
	}
	return ""
}

// misnamed returns advice for names that are missing or invalid.
func misnamed(s errorContext) string {
	switch {
	case s.before == "class" && s.this == "{":
		return "give it a name: class Name { … }"
	case strings.HasPrefix(s.message, "Syntax error") && s.adjacent && s.before != "" && s.before[0] >= '0' && s.before[0] <= '9',
		s.this != "" && s.this[0] >= '0' && s.this[0] <= '9' && strings.Trim(s.this, "0123456789_n") != "":
		return "a name cannot start with a digit, and letters cannot follow a number"
	case s.this == "-" && (strings.Contains(s.line, "const "+s.before) || strings.Contains(s.line, "let "+s.before)):
		return "a name cannot contain -; write _ or a capital letter instead"
	case s.before == "function" && s.this == "{":
		return "write the parameters before it: function name() { … }"
	case s.before == "function" || s.this == "function" && s.after == "(":
		return "give it a name: function name(…) { … }"
	case (syntax.IsReserved(s.this) || strings.Contains(s.message, "reserved word")) && naming(s.before):
		return s.this + " is a word of the language; choose another name"
	case s.first == "for" && syntax.WordStart(s.this+" ") && (strings.Contains(s.line, "(const "+s.before+" ") || strings.Contains(s.line, "(let "+s.before+" ")):
		return "write of between the name and the list: for (const x of list)"
	case (s.first == "if" || s.first == "while" || s.first == "for" || s.first == "switch") && s.before == s.first && s.this != "(":
		return "put what follows " + s.first + " in parentheses: " + s.first + " (…) { … }"
	case strings.Contains(strings.ToLower(s.message), "assign") && strings.Contains(s.line, "?."):
		return "nothing can be assigned after ?.; write if (a) { a.b = … }"
	}
	return ""
}

// naming reports whether a name follows the word.
func naming(word string) bool {
	switch word {
	case "const", "let", "var", "class", "function", "enum":
		return true
	}
	return false
}

// unlisted returns advice for members and elements without a separator.
func unlisted(s errorContext) string {
	switch {
	case s.this == "=" && s.first != "const" && syntax.WordStart(s.before+" ") && (strings.Contains(s.line, ", "+s.before+" =") || strings.Contains(s.line, "{ "+s.before+" =")):
		return "members of an object are written name: value, with a colon"
	case strings.Contains(s.message, "horthand property") || strings.Contains(s.message, "nvalid destructuring assignment target"):
		return "members of an object are written name: value, with a colon"
	case s.this == "else":
		return "else must directly follow the if: look for an extra ; or }, or a missing {, before it"
	case s.this == "catch" || s.this == "finally":
		return s.this + " must directly follow the } of try { … }"
	case s.after == ":" && s.newline && !opensOrJoins(s.before):
		return "write a comma at the end of the line before it"
	case s.after == ":" && !opensOrJoins(s.before) && s.first != "case" && s.first != "default":
		return "write a comma before it"
	case strings.Contains(s.line, "case "+s.before) && !s.newline, s.newline && strings.HasPrefix(s.prior, "case "), s.before == "default":
		return "write a colon after the case"
	case s.this == "return" && s.before == ">":
		return "put statements in braces: (x) => { return … }, or leave out return"
	case s.this == "return" && s.before == ")":
		return "put the statements of a function in braces: { return … }"
	case quotes(s.this) && !opensOrJoins(s.before), quotes(s.before) && syntax.WordStart(s.this+" ") && !s.newline:
		return "join texts with +, and separate arguments and elements with commas"
	}
	return ""
}

func quotes(sign string) bool { return sign == `"` || sign == "'" || sign == "`" }

func opensOrJoins(sign string) bool {
	return sign == "" || strings.Contains("([{,;:?=+-*/%&|^!<>~.", sign)
}

// unfinished returns advice for operators without an operand.
func unfinished(s errorContext) string {
	ends := s.this == ";" || s.this == ")" || s.this == "]" || s.this == "}" || s.this == ","
	switch {
	case ends && s.before != "" && strings.Contains("=+-*/%&|^<>?:!", s.before):
		return "a value is missing between " + s.before + " and " + s.this
	case s.this == ":" && (strings.Contains(s.line, "=> {") || strings.HasSuffix(s.prior, "=> {")):
		return "an arrow function that returns an object has it in parentheses: (…) => ({ … })"
	case s.before == "." && !syntax.WordStart(s.this+" "):
		return "the name of a member is missing after the dot"
	case s.this == ";" && strings.Contains(s.line, "?"):
		return "a ? b : c needs its : and what follows it"
	case s.this == ";":
		return "a ; ends a statement; members, arguments and elements are separated by commas"
	case s.newline && s.before != "" && strings.Contains("=+-*/%&|^<?", s.before):
		return "a value is missing after the " + s.before + " at the end of the line before it"
	}
	return ""
}

// pythonSyntaxHint returns advice for Python syntax that [syntaxHint] does not cover; empty for
// other errors.
func pythonSyntaxHint(s errorContext) string {
	switch {
	case strings.Contains(s.line, "__name__"):
		return pythonHints["__name__"]
	case s.first == "raise" && s.before == "raise":
		return pythonHints["raise"]
	case s.first == "from":
		return "nothing can be imported: all tools are available"
	case s.before == "print" && (quotes(s.this) || syntax.WordStart(s.this+" ")):
		return "write print(…) with parentheses"
	case s.this == "if" && !s.newline && strings.Contains(s.line, " else "):
		return "write condition ? a : b instead of a if condition else b"
	case s.this == "for" && !s.newline:
		return "write list.map((x) => …) or list.filter((x) => …) instead of a comprehension"
	case s.before == "*" && strings.Contains(s.line, "**"):
		return "write ...object instead of **object"
	case s.this == ":" && (s.first == "try" || s.first == "finally" || s.first == "else"):
		return "put the statements of " + s.first + " between { and }"
	case s.first == "with":
		return "with does not exist: write its statements alone"
	case s.first == "for" && s.after == "in":
		return "write for (const x of list) { … }"
	}
	return ""
}

// plain converts a message of the engine to the style of diagnostics: lower case, without the name
// of the error.
func plain(message string) string {
	message = strings.TrimPrefix(message, "SyntaxError: ")
	message = strings.TrimRight(message, ".: ")
	if len(message) > 1 && message[0] >= 'A' && message[0] <= 'Z' && (message[1] < 'A' || message[1] > 'Z') {
		return strings.ToLower(message[:1]) + message[1:]
	}
	return message
}

// missingToken is the advice for two adjacent expressions.
const missingToken = "add the missing operator, comma or bracket before it"

// correctIt is the advice if only the message is known.
const correctIt = "correct it, or the text just before it"

// hint is advice for messages or names that contain a text.
type hint struct{ part, advice string }

// generic is advice for messages without specific advice.
var generic = []hint{
	{"reserved word", "such a word cannot be a name"},
	{"Unexpected identifier", missingToken},
	{"Unexpected string", missingToken},
	{"Unexpected number", missingToken},
	{"Unexpected end of", "something before it is incomplete"},
}

// advice is advice for messages of both compilers. The first match counts.
var advice = []hint{
	{"matching export", "export it there, or correct the name"},
	{"there is no file", "correct the path, which is relative to the folder of the file that imports it, or make the file"},
	{"packages cannot be imported", "name a file of the tools folder, as in \"./file.js\""},
	{"only import declarations", "write import { name } from \"./file.js\""},
	{"can be imported, with their full name", "write the whole name, as in \"./file.js\""},
	{"outside of the tools folder", "put the file into the tools folder, and name it there"},
	{"have more than", "import less"},
	{"already been declared", "give one of the two another name, or assign to the first"},
	{"already exists", "give one of the two another name"},
	{"Duplicate", "keep one of the two"},
	{"with statement", "write the object before each of its members"},
	{"Private field", "declare it in the class, as in class A { #x; }"},
	{"Private name", "declare it in the class, as in class A { #x; }"},
	{"Undefined label", "write the label before a loop around it, or remove it"},
	{"Illegal break", "break leaves a loop or a switch around it; to end the script write return"},
	{"Illegal continue", "write continue only in a loop; to end the script write return"},
	{"Missing initializer", "give it a value, or declare it with let"},
	{"Missing catch or finally", "add catch (error) { … } after it"},
	{"newline after throw", "write what is thrown on the line of throw"},
	{"coalesce expressions", "put one of the two in parentheses"},
	{"before exponentiation", "put one of the two in parentheses"},
	{"Lexical declaration", "put it in braces"},
	{"left-hand side", "assign to a variable or a member; to compare, write ==="},
	{"left-value", "assign to a variable or a member; to compare, write ==="},
	{"Invalid assignment target", "assign to a variable or a member; to compare, write ==="},
	{"must be last", "move it after the others"},
	{"nvalid regular expression", "write a backslash before a character to match it literally"},
	{"Unterminated", "close it, or write a backslash before the character to match it literally"},
	{"Unmatched", "remove it, or write a backslash before it to match it literally"},
	{`only be used inside an "async" function`, "write async before the function around it"},
}

// lookUp returns the advice for a message; empty if there is none.
func lookUp(meanings []hint, message string) string {
	for _, m := range meanings {
		if strings.Contains(message, m.part) {
			return m.advice
		}
	}
	return ""
}

// isParseError reports whether a message is about text that could not be parsed: then the text
// around the position matters more than the message.
func isParseError(message string) bool {
	for _, part := range []string{"nexpected", "xpected", "ssignment", "left-hand", "horthand", "reserved", "yntax error"} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}
