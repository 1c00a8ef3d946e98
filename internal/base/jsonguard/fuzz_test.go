package jsonguard

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"
)

// FuzzCheck compares Check with encoding/json: accepted text is valid and decodes;
// valid text within the limits, without duplicate names and lone surrogates, is
// accepted.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-2.5e3,true,false,null,"x\n\u00e9\ud83d\ude00"],"b":{"c":""}}`, `[[[]]]`, `"\ud800"`, `1e309`, ` 1 `, `{"a":1,"\u0061":2}`,
		`{"a":1}{"a":1}`, "\"\xff\"", `-0`, `01`, `1.7976931348623158e308`, `1.7976931348623159e308`, `{"a":{"a":{"a":1},"a":2}}`, ``,
		objectOf(20), `"12345678\"901234567\\"`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		err := Check(text, Client())
		if !bytes.Equal(before, text) {
			t.Fatal("Check changed the text")
		}
		var value any
		if err == nil {
			if !json.Valid(text) || !utf8.Valid(text) {
				t.Fatal("Check accepts invalid JSON")
			}
			if err := json.Unmarshal(text, &value); err != nil {
				t.Fatalf("Check accepts text that does not decode: %v", err)
			}
			return
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Offset < 0 || e.Offset > len(text) {
			t.Fatalf("Check = %#v", err)
		}
		agrees(t, text, e)
	})
}

// agrees fails if encoding/json disagrees with the error e.
func agrees(t *testing.T, text []byte, e *Error) {
	t.Helper()
	valid := json.Valid(text)
	switch e.Kind {
	case Syntax, Trailing:
		if valid {
			t.Fatalf("Check rejects valid JSON: %v", e)
		}
	case BadNumber:
		// A decoder that keeps numbers as text accepts the number.
		var value any
		if valid && json.Unmarshal(text, &value) == nil && !bytes.ContainsAny(text, "eE") {
			t.Fatalf("Check rejects a number that decodes: %v", e)
		}
	case DuplicateKey:
		if valid && !repeatsName(text) {
			t.Fatalf("Check reports a duplicate name: %v", e)
		}
	case BadUTF8:
		if utf8.Valid(text) && !bytes.Contains(text, []byte(`\u`)) {
			t.Fatalf("Check rejects valid UTF-8: %v", e)
		}
	}
}

// repeatsName reports whether an object in the valid text has duplicate names according
// to encoding/json.
func repeatsName(text []byte) bool {
	type object struct {
		names map[string]bool
		name  bool // a name is next
	}
	var open []*object
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil { // end of the text
			return false
		}
		top := &object{}
		if len(open) > 0 {
			top = open[len(open)-1]
		}
		switch token {
		case json.Delim('{'):
			top.name = top.names != nil
			open = append(open, &object{names: map[string]bool{}, name: true})
			continue
		case json.Delim('['):
			top.name = top.names != nil
			open = append(open, &object{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			continue
		}
		if !top.name {
			top.name = top.names != nil
			continue
		}
		name := token.(string)
		if top.names[name] {
			return true
		}
		top.names[name], top.name = true, false
	}
}
