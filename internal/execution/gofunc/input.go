package gofunc

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// InputError says that valid arguments are not what a Go type can hold. It
// repeats no value.
type InputError struct {
	// Path is the JSON pointer of the argument; empty when it is not known.
	Path string
}

// Error returns which argument it is.
func (e *InputError) Error() string { return strings.TrimPrefix(e.Path+" "+e.Reason(), " ") }

// Reason returns what is wrong with the argument, for the caller.
func (e *InputError) Reason() string { return "is not of the form that the tool can read" }

// pointing escapes a name as a part of a JSON pointer (RFC 6901).
var pointing = strings.NewReplacer("~", "~0", "/", "~1")

// unread returns the JSON pointer of the argument that cannot be decoded.
func unread[In any](args map[string]any) string {
	if decodesItself(reflect.TypeFor[In]()) {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !decode(map[string]any{name: args[name]}, new(In)) {
			return "/" + pointing.Replace(name)
		}
	}
	return ""
}
