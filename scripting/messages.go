package scripting

import "strings"

// plain turns an engine's message into the style of diagnostics: lower case,
// without a name of the error in front.
func plain(message string) string {
	message = strings.TrimPrefix(message, "SyntaxError: ")
	message = strings.TrimRight(message, ".: ")
	if len(message) > 1 && message[0] >= 'A' && message[0] <= 'Z' && (message[1] < 'A' || message[1] > 'Z') {
		return strings.ToLower(message[:1]) + message[1:]
	}
	return message
}

// missingToken is asked about where one expression ends and another begins.
const missingToken = "is an operator, a comma or a bracket missing in front of it?"

// correctIt is what to do where a message says all that is known.
const correctIt = "correct it, or what stands just in front of it"

// meaning is what to do about a message that holds a text.
type meaning struct{ part, advice string }

// generic is what to do where nothing more is known of a message.
var generic = []meaning{
	{"reserved word", "such a word cannot be a name"},
	{"Unexpected identifier", missingToken},
	{"Unexpected string", missingToken},
	{"Unexpected number", missingToken},
	{"Unexpected end of", "something before it is not finished"},
}

// advice is what to do about the messages of both compilers that hold a text.
// The first that fits is taken.
var advice = []meaning{
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
	{"with statement", "write the object in front of each of its members"},
	{"Private field", "declare it in the class, as in class A { #x; }"},
	{"Private name", "declare it in the class, as in class A { #x; }"},
	{"Undefined label", "write the label in front of a loop around it, or leave it out"},
	{"Illegal break", "break leaves a loop or a switch around it; to end the body write return"},
	{"Illegal continue", "continue stands in a loop; to end the body write return"},
	{"Missing initializer", "give it a value, or declare it with let"},
	{"Missing catch or finally", "add catch (error) { … } behind it"},
	{"newline after throw", "write what is thrown on the line of throw"},
	{"coalesce expressions", "put one of the two in parentheses"},
	{"before exponentiation", "put one of the two in parentheses"},
	{"Lexical declaration", "put it in braces"},
	{"left-hand side", "what is assigned to is a variable or a member; to compare, write ==="},
	{"left-value", "what is assigned to is a variable or a member; to compare, write ==="},
	{"Invalid assignment target", "what is assigned to is a variable or a member; to compare, write ==="},
	{"must be last", "move it behind the others"},
	{"nvalid regular expression", "write a backslash in front of a sign to match it as it is"},
	{"Unterminated", "close it, or write a backslash in front of the sign to match it as it is"},
	{"Unmatched", "remove it, or write a backslash in front of it to match it as it is"},
	{`only be used inside an "async" function`, "write async in front of the function around it"},
}

// lookUp returns what to do about a message of a compiler, or nothing.
func lookUp(meanings []meaning, message string) string {
	for _, m := range meanings {
		if strings.Contains(message, m.part) {
			return m.advice
		}
	}
	return ""
}

// unread reports whether a message is of text that could not be read, so that
// what stands around the place matters more than the message.
func unread(message string) bool {
	for _, part := range []string{"nexpected", "xpected", "ssignment", "left-hand", "horthand", "reserved", "yntax error"} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}
