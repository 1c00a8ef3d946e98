package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Violation is one way in which a value breaks its schema.
type Violation struct {
	// Path is a JSON pointer (RFC 6901) to the part of the value that is
	// wrong, or that is missing; "" is the whole.
	Path string `json:"path"`
	// Message says what is expected there, such as "must be at least 1". It
	// names limits, patterns and choices of the schema and unknown members, cut
	// short, but never repeats a value.
	Message string `json:"message"`
}

// Sentence returns what breaks a schema in one line.
func Sentence(violations []Violation) string {
	places := make([]string, len(violations))
	for i, v := range violations {
		places[i] = strings.TrimPrefix(v.Path+" "+v.Message, " ")
	}
	return strings.Join(places, "; ")
}

// Fits returns why plain data does not fit the schema.
func (s *Schema) Fits(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode it as JSON: %w", err)
	}
	if violations := s.Value(text); len(violations) > 0 {
		return errors.New(Sentence(violations))
	}
	d := decoder{data: text, path: make(location, 0, usualDepth), numbers: s.numbers, contextual: s.contextual != nil}
	if _, ok := d.document(s.guide); ok && len(d.refused) > 0 {
		return errors.New(Sentence(violations(d.refused)))
	}
	return nil
}

// mostViolations bounds how many violations are returned.
const mostViolations = 50

// violations returns the faults, each once, in order.
func violations(faults []fault) []Violation {
	slices.SortStableFunc(faults, compareFaults)
	var list []Violation
	for _, f := range faults {
		v := Violation{Path: f.path, Message: f.message}
		if n := len(list); n > 0 && list[n-1] == v {
			continue
		}
		if list = append(list, v); len(list) == mostViolations {
			break
		}
	}
	return list
}
