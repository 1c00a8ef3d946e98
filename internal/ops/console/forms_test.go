package console

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeForm(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, schema, posted, want string }{
		{"string", `{"properties":{"a":{"type":"string"}}}`, "arg/a=x", `{"a":"x"}`},
		{"lines", `{"properties":{"a":{"type":"string"}}}`, "arg/a=x%0D%0Ay", `{"a":"x\ny"}`},
		{"optional string", `{"properties":{"a":{"type":"string"}}}`, "arg/a=", `{}`},
		{"required string", `{"properties":{"a":{"type":"string"}},"required":["a"]}`, "arg/a=", `{"a":""}`},
		{"number", `{"properties":{"a":{"type":"number"}}}`, "arg/a=+1.50+", `{"a":1.50}`},
		{"large integer", `{"properties":{"a":{"type":"integer"}}}`, "arg/a=12345678901234567890", `{"a":12345678901234567890}`},
		{"wrong number", `{"properties":{"a":{"type":"number"}}}`, "arg/a=x", "invalid"},
		{"boolean", `{"properties":{"a":{"type":"boolean"},"b":{"type":"boolean"}}}`, "arg/a=1&arg/b=", `{"a":false}`},
		{"enumeration", `{"properties":{"a":{"enum":[1,"x",null]}}}`, "arg/a=1", `{"a":"x"}`},
		{"enumeration of titles", `{"properties":{"a":{"oneOf":[{"const":"r","title":"Red"},{"const":"g"}]}}}`, "arg/a=1", `{"a":"g"}`},
		{"value that is no option", `{"properties":{"a":{"enum":[1]}}}`, "arg/a=7", `{}`},
		{"object", `{"properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}`, "arg/a/b=x", `{"a":{"b":"x"}}`},
		{"empty optional object", `{"properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}`, "arg/a/b=", `{}`},
		{"list", `{"properties":{"a":{"type":"array","items":{"type":"string"}}}}`, "len/a=2&arg/a/0=x&arg/a/1=", `{"a":["x",""]}`},
		{"list of objects", `{"properties":{"a":{"type":"array","items":{"properties":{"n":{"type":"integer"}}}}}}`, "len/a=1&arg/a/0/n=3", `{"a":[{"n":3}]}`},
		{"optional list", `{"properties":{"a":{"type":"array","items":{"type":"string"}}}}`, "len/a=0", `{}`},
		{"names with slashes", `{"properties":{"a/b~c":{"type":"string"}}}`, "arg/a~1b~0c=x", `{"a/b~c":"x"}`},
		{"alternative", `{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"object","properties":{"n":{"type":"number"}}}]}}}`, "choice/a=1&arg/a/n=2", `{"a":{"n":2}}`},
		{"alternative at the top", `{"type":"object","properties":{"id":{"type":"string"}},"oneOf":[{"properties":{"x":{"type":"string"}}},{"properties":{"y":{"type":"string"}}}]}`, "choice=1&arg/id=i&arg/y=z", `{"id":"i","y":"z"}`},
		{"reference", `{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"integer"}}}`, "arg/a=4", `{"a":4}`},
		{"any value", `{"properties":{"a":{}}}`, `arg/a=[1,{"x":2}]`, `{"a":[1,{"x":2}]}`},
		{"wrong JSON", `{"properties":{"a":{}}}`, "arg/a=[1", "invalid"},
		{"null or string", `{"properties":{"a":{"type":["string","null"]}}}`, "arg/a=x", `{"a":"x"}`},
		{"nothing posted", `{"properties":{"a":{"type":"string"}}}`, "", `{}`},
		{"many entries", `{"properties":{"a":{"type":"array","items":{"type":"object","properties":{}}}}}`, "len/a=-1", `{}`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			posted, err := url.ParseQuery(row.posted)
			if err != nil {
				t.Fatal(err)
			}
			value, invalid := decodeForm(json.RawMessage(row.schema), posted)
			got := "invalid"
			if !invalid {
				encoded, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				got = string(encoded)
			}
			if got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
			if invalid {
				return
			}
			// The form that shows the value is decoded into the same value.
			again := url.Values{}
			fill(again, formOf("", json.RawMessage(row.schema), value, posted).Fields)
			value, _ = decodeForm(json.RawMessage(row.schema), again)
			encoded, _ := json.Marshal(value)
			if diff := cmp.Diff(row.want, string(encoded)); diff != "" {
				t.Errorf("the form of the value has another one (-want +got):\n%s", diff)
			}
		})
	}
}

// fill posts the values that a form shows.
func fill(posted url.Values, fields []field) {
	for _, f := range fields {
		switch f.Widget {
		case "select", "choice":
			for _, o := range f.Options {
				if o.Selected && f.Widget == "select" {
					posted.Set("arg"+f.Pointer, o.Value)
				} else if o.Selected {
					posted.Set("choice"+f.Pointer, o.Value)
				}
			}
		case "list":
			posted.Set("len"+f.Pointer, jsonNumber(len(f.Fields)))
		case "object":
		default:
			posted.Set("arg"+f.Pointer, f.Value)
		}
		fill(posted, f.Fields)
	}
}

func jsonNumber(n int) string {
	encoded, _ := json.Marshal(n)
	return string(encoded)
}

func TestEdit(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, value, action, want string }{
		{"add", `{"a":["x"]}`, "add/a", `{"a":["x",null]}`},
		{"add to a missing list", `{}`, "add/a/b", `{"a":{"b":[null]}}`},
		{"add inside a list", `{"a":[{"b":[]}]}`, "add/a/0/b", `{"a":[{"b":[null]}]}`},
		{"remove", `{"a":["x","y"]}`, "remove/a/0", `{"a":["y"]}`},
		{"remove what is not there", `{"a":["x"]}`, "remove/a/7", `{"a":["x"]}`},
		{"remove without a number", `{"a":["x"]}`, "remove/a/b", `{"a":["x"]}`},
		{"other", `{"a":1}`, "choice", `{"a":1}`},
	}
	for _, row := range rows {
		got, err := json.Marshal(edit(decodeJSON([]byte(row.value)), row.action))
		if err != nil || string(got) != row.want {
			t.Errorf("%s: got %s (%v), want %s", row.name, got, err, row.want)
		}
	}
}

func TestFormOf_defaults(t *testing.T) {
	t.Parallel()
	f := formOf("", json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","default":5},"b":{"type":"boolean","default":true}}}`), nil, nil)
	posted := url.Values{}
	fill(posted, f.Fields)
	if want := (url.Values{"arg/a": {"5"}, "arg/b": {"0"}}); !cmp.Equal(posted, want) {
		t.Errorf("got %v, want %v", posted, want)
	}
}

// A schema that repeats itself must not need time that grows with its references.
func TestFormOf_recursion(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"itself":     `{"type":"object","properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}`,
		"all of":     `{"type":"object","allOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"},{"$ref":"#"},{"$ref":"#"},{"$ref":"#"},{"$ref":"#"},{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}`,
		"one of":     `{"oneOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}`,
		"each other": `{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			formOf("", json.RawMessage(schema), nil, nil)
			if all, _ := describe(json.RawMessage(schema)); len(all) > maxFields {
				t.Errorf("%d members", len(all))
			}
			if _, invalid := decodeForm(json.RawMessage(schema), url.Values{}); invalid {
				t.Error("an empty form is invalid")
			}
		})
	}
}
