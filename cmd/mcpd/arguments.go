package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/engine"
)

// argumentsOf returns the arguments of a call: the JSON object, or the pairs converted
// to the types in schema. A nil schema means that the tool is unknown.
func argumentsOf(object string, pairs []string, schema json.RawMessage) (json.RawMessage, error) {
	if object != "" {
		if len(pairs) > 0 {
			return nil, usageError("give the arguments either as NAME=VALUE or with --json")
		}
		if err := engine.CheckArguments([]byte(object)); err != nil {
			return nil, usageError("--json: %v", err)
		}
		return json.RawMessage(object), nil
	}
	types, err := typesOf(schema)
	if err != nil {
		return nil, err
	}
	texts, err := pairsOf(pairs)
	if err != nil {
		return nil, err
	}
	args := make(map[string]json.RawMessage, len(texts))
	for name, value := range texts {
		if args[name], err = argument(value, types[name]); err != nil && schema != nil {
			return nil, usageError("the argument %s is not valid JSON: %v", name, err)
		}
	}
	made, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encode arguments: %w", err)
	}
	if err := engine.CheckArguments(made); err != nil {
		return nil, usageError("the arguments, as a JSON object: %v", err)
	}
	return made, nil
}

// textsOf returns arguments that are all strings, from a JSON object or from pairs.
func textsOf(object string, pairs []string) (json.RawMessage, error) {
	if object != "" {
		return argumentsOf(object, pairs, nil)
	}
	texts, err := pairsOf(pairs)
	if err != nil {
		return nil, err
	}
	return json.Marshal(texts)
}

// pairsOf parses NAME=VALUE pairs.
func pairsOf(pairs []string) (map[string]string, error) {
	values := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, usageError("%q is not NAME=VALUE", pair)
		}
		if _, twice := values[name]; twice {
			return nil, usageError("the argument %s is given twice", name)
		}
		values[name] = value
	}
	return values, nil
}

// typesOf returns the type of each property of an input schema.
func typesOf(schema json.RawMessage) (map[string]any, error) {
	var declared struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	if schema == nil {
		return nil, nil
	}
	if err := json.Unmarshal(schema, &declared); err != nil {
		return nil, fmt.Errorf("read input schema: %w", err)
	}
	types := make(map[string]any, len(declared.Properties))
	for name, property := range declared.Properties {
		types[name] = property.Type
	}
	return types, nil
}

// argument converts one value: to a string if the schema wants one, else to JSON if it
// is valid JSON, else to a string. A value that starts like an array or an object but
// is not valid JSON is an error that names the position.
func argument(value string, wanted any) (json.RawMessage, error) {
	text, err := json.Marshal(value)
	if err != nil || wanted == "string" {
		return text, err
	}
	var parsed json.RawMessage
	err = json.Unmarshal([]byte(value), &parsed)
	switch list, _ := wanted.([]any); {
	case err == nil:
		return parsed, nil
	case slices.Contains(list, any("string")), !strings.HasPrefix(value, "[") && !strings.HasPrefix(value, "{"):
		return text, nil
	}
	return text, locateSyntaxError(value, err)
}

// locateSyntaxError describes the position of a JSON syntax error, in characters counted from 1. It
// quotes nothing of the text.
func locateSyntaxError(value string, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	if syntax.Error() == "unexpected end of JSON input" {
		return errors.New("it ends before it is complete")
	}
	before := max(0, syntax.Offset-1)
	at := utf8.RuneCountInString(value[:before]) + 1
	wrong, _ := utf8.DecodeRuneInString(value[before:])
	switch {
	case strings.HasSuffix(syntax.Error(), "object key string"):
		return fmt.Errorf("character %d must start a name in double quotes", at)
	case wrong == '\'' || unicode.IsLetter(wrong):
		return fmt.Errorf("character %d is unexpected; write text in double quotes", at)
	default:
		return fmt.Errorf("character %d is unexpected", at)
	}
}
