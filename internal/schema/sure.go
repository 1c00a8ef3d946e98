package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// Sure reports whether the schema was made by [For] of a type of which
// encoding/json makes nothing but what is valid, so that it need not be checked.
func (s *Schema) Sure() bool { return s.sure }

// isSure reports whether the schema of a type says no more than the type does:
// it is made of strings, booleans, numbers and structs, and encodes nothing in
// a way of its own.
func isSure(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	if p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || t == reflect.TypeFor[json.Number]() {
		return false
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Struct:
		return isSureStruct(t)
	}
	return false
}

func isSureStruct(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous && (!f.IsExported() || f.Tag.Get("json") == "-") {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !isPlainName(name) || strings.Contains(options, "string") || !isSure(f.Type) {
			return false
		}
	}
	return true
}

// isPlainName reports whether encoding/json surely takes a name as it is: one
// with other characters, such as quotes, it may replace by that of the field.
func isPlainName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	})
}
