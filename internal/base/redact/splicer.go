package redact

import (
	"bytes"
	"encoding/json"
	"strings"
)

// What may stand between the tokens of JSON: blanks, and also what
// ends a key or a value.
const (
	blank   = " \t\r\n"
	between = blank + ":,"
)

// splicer walks over a JSON value once and remembers what is to be replaced,
// so that everything else keeps its bytes: numbers, order and escapes.
type splicer struct {
	raw    []byte
	tokens *json.Decoder
	hidden []span
}

// span is from a byte up to another.
type span struct{ from, to int }

// newSplicer begins at the start of raw, which is valid JSON.
func newSplicer(raw []byte) *splicer {
	s := &splicer{raw: raw, tokens: json.NewDecoder(bytes.NewReader(raw))}
	s.tokens.UseNumber()
	return s
}

// value reads the next value; paths are what is left of the pointers that lead
// here. It goes no deeper than they do.
func (s *splicer) value(paths [][]string) error {
	for _, path := range paths {
		if len(path) == 0 {
			return s.hide()
		}
	}
	start := s.raw[s.start()]
	if len(paths) == 0 || start != '{' && start != '[' {
		return s.skip()
	}
	return s.inside(func(name string) error {
		var deeper [][]string
		for _, path := range paths {
			if start == '[' || path[0] == "*" || path[0] == name {
				deeper = append(deeper, path[1:])
			}
		}
		return s.value(deeper)
	})
}

// inside reads the next value, an object or an array, and calls each before
// every value in it, which each must read. Items have no name.
func (s *splicer) inside(each func(name string) error) error {
	open, err := s.tokens.Token()
	if err != nil {
		return err
	}
	for s.tokens.More() {
		name := ""
		if open == json.Delim('{') {
			key, err := s.tokens.Token()
			if err != nil {
				return err
			}
			name, _ = key.(string)
		}
		if err := each(name); err != nil {
			return err
		}
	}
	_, err = s.tokens.Token()
	return err
}

// start returns where the next value begins.
func (s *splicer) start() int {
	at := int(s.tokens.InputOffset())
	for strings.IndexByte(between, s.raw[at]) >= 0 {
		at++
	}
	return at
}

// hide reads the next value and replaces it.
func (s *splicer) hide() error {
	from := s.start()
	err := s.skip()
	s.hidden = append(s.hidden, span{from, int(s.tokens.InputOffset())})
	return err
}

// skip reads the next value.
func (s *splicer) skip() error {
	var value json.RawMessage
	return s.tokens.Decode(&value)
}

// spliced returns the value with the marks in it.
func (s *splicer) spliced() []byte {
	if len(s.hidden) == 0 {
		return s.raw
	}
	var out []byte
	last := 0
	for _, hidden := range s.hidden {
		out = append(out, s.raw[last:hidden.from]...)
		out = append(out, `"`+Mark+`"`...)
		last = hidden.to
	}
	return append(out, s.raw[last:]...)
}
