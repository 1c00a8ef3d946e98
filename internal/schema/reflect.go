package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcpd/mcpd/diag"
)

// For returns the schema of a Go type as encoding/json sees it; the jsonschema
// struct tag describes a field.
func For[T any]() (*Schema, error) {
	reflected, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, fmt.Errorf("make schema: %w", err)
	}
	raw, err := json.Marshal(reflected)
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	compiled, problems := Compile(raw, diag.Range{}, nil)
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	compiled.sure = isSure(reflect.TypeFor[T]())
	return compiled, nil
}

// ForFunc returns the schemas of what a function takes, which must be a struct,
// and of what it returns.
func ForFunc[In, Out any]() (input, output *Schema, err error) {
	input, err = For[In]()
	if err == nil && !input.IsObject() {
		err = errors.New("it must be a struct")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("input: %w", err)
	}
	if output, err = For[Out](); err != nil {
		return nil, nil, fmt.Errorf("output: %w", err)
	}
	return input, output, nil
}

// IsObject reports whether the schema is of objects alone.
func (s *Schema) IsObject() bool {
	var keywords map[string]json.RawMessage
	return json.Unmarshal(s.Raw(), &keywords) == nil && string(keywords["type"]) == `"object"`
}
