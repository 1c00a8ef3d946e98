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

// hint says what to do about the engine's messages that do not say it themselves.
func hint(message string) string {
	switch {
	case strings.Contains(message, "Unexpected end of input"):
		return "something before it is not finished"
	case strings.Contains(message, "reserved word"):
		return "such a word cannot be a name"
	case strings.Contains(message, "Unexpected identifier"), strings.Contains(message, "Unexpected string"), strings.Contains(message, "Unexpected number"):
		return "is an operator, a comma or a bracket missing in front of it?"
	}
	return ""
}
