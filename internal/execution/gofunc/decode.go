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

// Decoder decodes the arguments of a call into an In, like encoding/json. If In is a struct with
// plain fields only, it uses the arguments that validation has already decoded.
type Decoder[In any] struct{ plain []field }

type field struct {
	name  string
	index int
}

// NewDecoder returns a decoder for In.
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

// Decode returns valid arguments as an In. args and text are the same value, decoded and as JSON.
// The error is a [*DecodeError].
func (d Decoder[In]) Decode(args map[string]any, text []byte) (in In, err error) {
	if d.plain != nil && d.fill(reflect.ValueOf(&in).Elem(), args) {
		return in, nil
	}
	in = *new(In)
	if json.Unmarshal(text, &in) == nil {
		return in, nil
	}
	// encoding/json rejects 1.0 for an integer; args have 1.
	in = *new(In)
	if !decode(args, &in) {
		return in, &DecodeError{Path: undecodablePath[In](args)}
	}
	return in, nil
}

// decode reports whether encoding/json can decode the arguments into to.
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

// isName reports whether encoding/json accepts the name in a tag. It ignores others, such as those
// with quotes.
func isName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// isPlain reports whether values of the type have one decoding only.
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

// DecodeError reports that valid arguments do not fit a Go type. It contains no value.
type DecodeError struct {
	// Path is the JSON pointer of the argument; empty if unknown.
	Path string
}

// Error returns the path and the reason.
func (e *DecodeError) Error() string { return strings.TrimPrefix(e.Path+" "+e.Reason(), " ") }

// Reason returns the message without the path.
func (e *DecodeError) Reason() string { return "is not of the form that the tool can read" }

// pointerEscaper escapes a name in a JSON pointer (RFC 6901).
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// undecodablePath returns the JSON pointer of the argument that cannot be decoded.
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
