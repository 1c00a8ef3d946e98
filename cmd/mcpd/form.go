package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// form is an MCP elicitation: a message and the fields of a flat object.
type form struct {
	message, mode, url string
	fields             []field
}

// field is one property of a form.
type field struct {
	name     string
	required bool
	fieldSchema
}

// fieldSchema is the schema of a field (2026-07-28 client/elicitation).
type fieldSchema struct {
	Type        string
	Title       string
	Description string
	Format      string
	Default     json.RawMessage
	Enum        []string
	EnumNames   []string
	OneOf       []choice
	AnyOf       []choice // for the items of an array
	Items       *fieldSchema
	MinLength   *int
	MaxLength   *int
	MinItems    *int
	MaxItems    *int
	Minimum     *float64
	Maximum     *float64
}

// choice is a permitted value of a field.
type choice struct {
	Const string
	Title string
}

// formOf parses the params of an elicitation. The fields keep the order of the schema.
func formOf(params json.RawMessage) (form, error) {
	var read struct {
		Message, Mode, URL string
		RequestedSchema    struct {
			Properties json.RawMessage
			Required   []string
		}
	}
	if err := json.Unmarshal(params, &read); err != nil {
		return form{}, fmt.Errorf("read input request: %w", err)
	}
	made := form{message: read.Message, mode: read.Mode, url: read.URL}
	if p := read.RequestedSchema.Properties; len(p) > 0 && !jsontext.IsObject(p) {
		return form{}, errors.New("read input request: the properties are not an object")
	}
	names, members := inOrder(read.RequestedSchema.Properties)
	for i, name := range names {
		f := field{name: name, required: slices.Contains(read.RequestedSchema.Required, name)}
		if err := json.Unmarshal(members[i], &f.fieldSchema); err != nil {
			return form{}, fmt.Errorf("read input request: %w", err)
		}
		made.fields = append(made.fields, f)
	}
	return made, nil
}

// inOrder returns the members of a JSON object in their order.
func inOrder(object json.RawMessage) (names []string, members []json.RawMessage) {
	c, ok := jsontext.Members(object)
	for ok {
		var name, member []byte
		if name, member, ok = c.Member(); ok {
			names, members = append(names, string(name)), append(members, member)
		}
	}
	return names, members
}

// choices returns the permitted values of a field, or nil if any value is valid.
func (s *fieldSchema) choices() []choice {
	of := s
	if s.Type == "array" && s.Items != nil {
		of = s.Items
	}
	if list := slices.Concat(of.OneOf, of.AnyOf); len(list) > 0 {
		return list
	}
	list := make([]choice, len(of.Enum))
	for i, value := range of.Enum {
		list[i].Const = value
		if i < len(of.EnumNames) {
			list[i].Title = of.EnumNames[i]
		}
	}
	return list
}

// value parses what the user typed. The error says what to type instead.
func (s *fieldSchema) value(typed string) (any, error) {
	switch s.Type {
	case "boolean":
		yes, err := yesOrNo(typed)
		return yes, err
	case "integer", "number":
		return s.number(typed)
	case "array":
		return s.list(typed)
	}
	return s.text(typed)
}

func yesOrNo(typed string) (yes bool, err error) {
	switch strings.ToLower(typed) {
	case "y", "yes", "true":
		return true, nil
	case "n", "no", "false":
		return false, nil
	}
	return false, errors.New("type y or n")
}

func (s *fieldSchema) number(typed string) (any, error) {
	n, err := strconv.ParseFloat(typed, 64)
	switch {
	case err != nil || math.IsInf(n, 0) || math.IsNaN(n) || !json.Valid([]byte(typed)):
		return nil, errors.New("type a number")
	case s.Type == "integer" && n != math.Trunc(n):
		return nil, errors.New("type a whole number")
	case s.Minimum != nil && n < *s.Minimum:
		return nil, fmt.Errorf("type a number of at least %g", *s.Minimum)
	case s.Maximum != nil && n > *s.Maximum:
		return nil, fmt.Errorf("type a number of at most %g", *s.Maximum)
	}
	return json.Number(typed), nil
}

func (s *fieldSchema) text(typed string) (any, error) {
	length := utf8.RuneCountInString(typed)
	switch {
	case s.MinLength != nil && length < *s.MinLength:
		return nil, fmt.Errorf("type at least %d characters", *s.MinLength)
	case s.MaxLength != nil && length > *s.MaxLength:
		return nil, fmt.Errorf("type at most %d characters", *s.MaxLength)
	}
	return s.chosen(typed)
}

// chosen returns the permitted value that was typed, by value or by number.
func (s *fieldSchema) chosen(typed string) (any, error) {
	choices := s.choices()
	if len(choices) == 0 {
		return typed, nil
	}
	for _, c := range choices {
		if c.Const == typed {
			return c.Const, nil
		}
	}
	if n, err := strconv.Atoi(typed); err == nil && n >= 1 && n <= len(choices) {
		return choices[n-1].Const, nil
	}
	return nil, fmt.Errorf("type one of the values, or its number from 1 to %d", len(choices))
}

func (s *fieldSchema) list(typed string) (any, error) {
	made := []any{}
	for piece := range strings.SplitSeq(typed, ",") {
		if piece = strings.TrimSpace(piece); piece == "" {
			continue
		}
		value, err := s.chosen(piece)
		if err != nil {
			return nil, err
		}
		made = append(made, value)
	}
	switch {
	case s.MinItems != nil && len(made) < *s.MinItems:
		return nil, fmt.Errorf("type at least %d values, separated by commas", *s.MinItems)
	case s.MaxItems != nil && len(made) > *s.MaxItems:
		return nil, fmt.Errorf("type at most %d values", *s.MaxItems)
	}
	return made, nil
}
