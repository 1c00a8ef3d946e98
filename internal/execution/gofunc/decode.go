package gofunc

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Decoder makes an In of the arguments of a call, the way encoding/json does.
// Arguments that are valid have been decoded by then: where In is a struct of
// plain fields alone, they need not be once more.
type Decoder[In any] struct{ plain []field }

type field struct {
	name  string
	index int
}

func NewDecoder[In any]() Decoder[In] {
	t := reflect.TypeFor[In]()
	if t.Kind() != reflect.Struct || decodesItself(t) {
		return Decoder[In]{}
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.Anonymous && (!f.IsExported() || f.Tag.Get("json") == "-"):
			continue
		case name == "":
			name = f.Name
		}
		if f.Anonymous || !isPlain(f.Type) || strings.Contains(options, "string") || !isName(name) {
			return Decoder[In]{}
		}
		fields = append(fields, field{name, i})
	}
	return Decoder[In]{plain: fields}
}

// Decode returns the arguments, which are valid. args and text are the same, decoded and
// as JSON. The error is an [*InputError].
func (d Decoder[In]) Decode(args map[string]any, text []byte) (in In, err error) {
	if d.plain != nil && d.fill(reflect.ValueOf(&in).Elem(), args) {
		return in, nil
	}
	in = *new(In)
	if json.Unmarshal(text, &in) == nil {
		return in, nil
	}
	// encoding/json takes no 1.0 for an integer; args have it as 1.
	in = *new(In)
	if !decode(args, &in) {
		return in, &DecodeError{Path: undecodablePath[In](args)}
	}
	return in, nil
}

// decode reports whether encoding/json makes what to points at of the arguments.
func decode(args map[string]any, to any) bool {
	text, err := json.Marshal(args)
	return err == nil && json.Unmarshal(text, to) == nil
}

func (d Decoder[In]) fill(in reflect.Value, args map[string]any) bool {
	for _, f := range d.plain {
		if value, given := args[f.name]; given && !set(in.Field(f.index), value) {
			return false
		}
	}
	return true
}

func set(field reflect.Value, value any) bool {
	switch value := value.(type) {
	case string:
		if field.Kind() != reflect.String {
			return false
		}
		field.SetString(value)
	case bool:
		if field.Kind() != reflect.Bool {
			return false
		}
		field.SetBool(value)
	case int64:
		if !field.CanInt() || field.OverflowInt(value) {
			return false
		}
		field.SetInt(value)
	case float64:
		if !field.CanFloat() || field.OverflowFloat(value) {
			return false
		}
		field.SetFloat(value)
	default:
		return false
	}
	return true
}

// isName reports whether encoding/json surely takes a name that a tag gives:
// others, such as those with quotes, it ignores.
func isName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// isPlain reports whether encoding/json has no choice of what a value of the
// type is.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Float64:
		return t != reflect.TypeFor[json.Number]() && !decodesItself(t)
	}
	return false
}

func decodesItself(t reflect.Type) bool {
	t = reflect.PointerTo(t)
	return t.Implements(reflect.TypeFor[json.Unmarshaler]()) || t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// InputError says that valid arguments are not what a Go type can hold. It
// repeats no value.
type DecodeError struct {
	// Path is the JSON pointer of the argument; empty when it is not known.
	Path string
}

func (e *DecodeError) Error() string { return strings.TrimPrefix(e.Path+" "+e.Reason(), " ") }

func (e *DecodeError) Reason() string { return "is not of the form that the tool can read" }

// pointing escapes a name as a part of a JSON pointer (RFC 6901).
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// unread returns the JSON pointer of the argument that cannot be decoded.
func undecodablePath[In any](args map[string]any) string {
	if decodesItself(reflect.TypeFor[In]()) {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !decode(map[string]any{name: args[name]}, new(In)) {
			return "/" + pointerEscaper.Replace(name)
		}
	}
	return ""
}
