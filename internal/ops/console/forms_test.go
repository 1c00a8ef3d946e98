package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/mcpd/mcpd/internal/ops/control"
)

func TestDecodeForm(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, schema, posted, want string }{
		{"string", `{"properties":{"a":{"type":"string"}}}`, "arg/a=x", `{"a":"x"}`},
		{"lines", `{"properties":{"a":{"type":"string"}}}`, "arg/a=x%0Ay", `{"a":"x\ny"}`},
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
		{"required object without members", `{"properties":{"o":{"type":"object","properties":{},"additionalProperties":false}},"required":["o"]}`, "", `{"o":{}}`},
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

// A browser may send any pointer. A value as deep as a pointer of 1 MiB would overflow the stack, which
// ends the process.
func TestEdit_deepPointer(t *testing.T) {
	for _, verb := range []string{"add/", "remove/"} {
		action := verb + "a" + strings.Repeat("/", maxForm)
		if got := edit(map[string]any{}, action); len(got.(map[string]any)) > 0 {
			t.Errorf("%s makes a value", verb)
		}
		row := itemWith(`{"type":"object","properties":{"a":{"type":"boolean"},"b":{}}}`)
		if _, f, isCall := readArguments(row, url.Values{"edit": {action}}); isCall || len(f.Fields) != 2 {
			t.Errorf("%s: a call %t, %+v", verb, isCall, f)
		}
	}
	deepest := strings.Repeat("/x", maxDepth)
	if got := edit(map[string]any{}, "add"+deepest); len(got.(map[string]any)) == 0 {
		t.Error("a list in the deepest object cannot get an entry")
	}
}

// An empty field of a prompt is a missing argument, so that the server names it if it is required.
func TestReadArguments_emptyOfPrompt(t *testing.T) {
	row := itemWith(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]}`)
	row.Arguments = []control.Argument{{Name: "a", Required: true}, {Name: "b"}}
	for kind, want := range map[string]string{"prompt": `{"b":"x"}`, "tool": `{"a":"","b":"x"}`} {
		row.Kind = kind
		if got, _, isCall := readArguments(row, url.Values{"arg/a": {""}, "arg/b": {"x"}}); !isCall || string(got) != want {
			t.Errorf("%s: got %s, a call %t", kind, got, isCall)
		}
	}
}

// A name in "escaped" undoes the escapes of its field once, however often it is there.
func TestReadFields_repeatedNames(t *testing.T) {
	posted := url.Values{"x": {`\u{41} \\\\`}, "escaped": slices.Repeat([]string{"x", "y"}, 5000)}
	readFields(posted)
	if got := posted.Get("x"); got != `A \\` || posted.Has("escaped") {
		t.Errorf("got %q", got)
	}
}

// A long value is compared with permitted values without encoding it.
func TestSameJSON_longValue(t *testing.T) {
	long := map[string]any{"k": []any{strings.Repeat("A", 1<<20)}}
	j := json.RawMessage(`{"k":["b"]}`)
	if n := testing.AllocsPerRun(10, func() { sameJSON(long, j) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	for _, text := range []string{`null`, `true`, `1.50`, `""`, `"<"`, `[]`, `{}`, `[1,[2,"x"],{"a":null}]`, `{"a":{"b":[false]},"c":""}`} {
		if !sameJSON(decodeJSON([]byte(text)), json.RawMessage(text)) {
			t.Errorf("%s is not the same", text)
		}
	}
}

// An alternative keeps what it says of its values when the schema around it is added.
func TestMergeAlternative_bounds(t *testing.T) {
	document := json.RawMessage(`{"type":"string","oneOf":[{"minLength":3,"maxLength":9,"pattern":"^a"},{"enum":["x"],"enumNames":["Ex"]}]}`)
	for i, want := range []string{"at least 3 characters at most 9 characters pattern ^a", "Ex"} {
		f := formOf("", json.RawMessage(`{"type":"object","properties":{"a":`+string(document)+`}}`), nil, url.Values{"choice/a": {strconv.Itoa(i)}})
		if text := fmt.Sprintf("%+v", f.Fields); !strings.Contains(text, want) {
			t.Errorf("the field of alternative %d lacks %q: %s", i, want, text)
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
func TestForm_optionalObject(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{
		"sort":{"type":"object","properties":{"field":{"type":"string"},"descending":{"type":"boolean","default":false},"by":{"type":"array","items":{"type":"string"}}},"required":["field","by"]},
		"limit":{"type":"object","default":{"n":1},"properties":{"n":{"type":"integer"}}}},"required":[]}`)
	f := formOf("", schema, nil, nil)
	for _, member := range f.Fields[0].Fields {
		for _, o := range member.Options {
			if o.Selected {
				t.Errorf("%s: %s is selected in an object that may be left out", member.Label, o.Name)
			}
		}
	}
	if n := f.Fields[1].Fields[0].Value; n != "1" {
		t.Errorf("the default of an object: n is %q", n)
	}
	for posted, want := range map[string]string{
		"arg/sort/field=&len/sort/by=0": `{}`, "arg/sort/field=a": `{"sort":{"by":[],"field":"a"}}`, "arg/sort/descending=1": `{"sort":{"by":[],"descending":false,"field":""}}`,
	} {
		values, err := url.ParseQuery(posted)
		if err != nil {
			t.Fatal(err)
		}
		value, invalid := decodeForm(schema, values)
		if got, _ := json.Marshal(value); string(got) != want || invalid {
			t.Errorf("%s: %s, want %s", posted, got, want)
		}
	}
}

func TestFormOf_recursion(t *testing.T) {
	t.Parallel()
	wide := 40_000
	if testing.Short() {
		wide = 2_000
	}
	names, members := strings.Builder{}, strings.Builder{}
	for i := range wide {
		fmt.Fprintf(&names, `"m%d",`, i)
		fmt.Fprintf(&members, `"m%d":{},`, i)
	}
	many := `"properties":{` + members.String() + `"z":{}},"required":[` + names.String() + `"z"]`
	for name, schema := range map[string]string{
		"members":    `{"type":"object","allOf":[` + strings.Repeat(`{"$ref":"#/$defs/A"},`, 20) + `{}],` + many + `,"$defs":{"A":{` + strings.ReplaceAll(many, `"m`, `"n`) + `}}}`,
		"branches":   `{"oneOf":[` + strings.Repeat(`{"title":"x","type":"object"},`, wide) + `{}]}`,
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

// A large schema costs a few allocations for each of its members, however often it is referred to. Its
// form is JSON, and the page says why.
func TestFormOf_largeSchema(t *testing.T) {
	const wide, references = 10_000, 20
	var members, names, referring strings.Builder
	for i := range wide {
		fmt.Fprintf(&members, `,"m%d":{}`, i)
		fmt.Fprintf(&names, `,"m%d"`, i)
	}
	for i := range references {
		fmt.Fprintf(&referring, `,"x%d":{"$ref":"#/$defs/A"}`, i)
	}
	definition := `{"properties":{"a":{}` + members.String() + `},"required":["a"` + names.String() + `]}`
	for name, keywords := range map[string]string{
		"all of":  `"allOf":[{}` + strings.Repeat(`,{"$ref":"#/$defs/A"}`, references) + `]`,
		"members": `"properties":{` + referring.String()[1:] + `}`,
	} {
		schema := json.RawMessage(`{"type":"object",` + keywords + `,"$defs":{"A":` + definition + `}}`)
		cost := testing.AllocsPerRun(1, func() {
			formOf("", schema, nil, nil)
			describe(schema)
			decodeForm(schema, url.Values{})
		})
		t.Logf("%s: %.0f allocations", name, cost)
		if cost > 10*wide {
			t.Errorf("%s: %.0f allocations for %d members", name, cost, wide)
		}
		backend := newFake()
		backend.answers[control.Item] = itemWith(string(schema))
		_, page := browse(t, backend).signIn().get("/item?kind=tool&address=greet")
		mustContain(t, page, "The schema has more fields than a form shows. Type all arguments as JSON.", "The schema is larger; see its JSON.")
	}
}

// postedBy returns what a browser posts for the form of a page whose address starts with a path:
// it ends lines with CR LF, and removes the line ends of an input.
func postedBy(t *testing.T, page, path string) url.Values {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	attribute := func(n *html.Node, key string) (value string, ok bool) {
		for _, a := range n.Attr {
			if a.Key == key {
				return a.Val, true
			}
		}
		return "", false
	}
	posted := url.Values{}
	for form := range doc.Descendants() {
		if to, _ := attribute(form, "action"); form.Data != "form" || !strings.HasPrefix(to, path) {
			continue
		}
		for n := range form.Descendants() {
			name, _ := attribute(n, "name")
			value, _ := attribute(n, "value")
			switch n.Data {
			case "input":
				kind, _ := attribute(n, "type")
				if _, checked := attribute(n, "checked"); kind == "radio" && !checked {
					continue
				}
				posted.Add(name, strings.NewReplacer("\r", "", "\n", "").Replace(value))
			case "textarea":
				text := ""
				if n.FirstChild != nil {
					text = n.FirstChild.Data
				}
				posted.Add(name, strings.ReplaceAll(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n", "\r\n"))
			}
		}
	}
	return posted
}

// hiddenValues have characters that a browser or the filter of pages changes.
var hiddenValues = []string{
	"ada\u202ebob", "ada\u00a0", "\x1b[31m", "a\x00b", "a\rb", "a\r\nb", "\u0085\u009b", "lines\n\u2066", "\n\u200b", `\u{202E}`, `back\slash \\ \u{202E}` + "\u200b", `\` + "\U000e0041" + `\u{`, "می\u200cخواهم",
}

// The values of a form, and the names of its members, come back as they were.
func TestForm_hiddenCharacters(t *testing.T) {
	t.Parallel()
	for _, value := range hiddenValues {
		for _, name := range []string{"a", "m\u202en", "x/y~\n\u200b", "~u202e;"} {
			arguments, _ := json.Marshal(map[string]any{name: value, "line": value, "list": []string{value}, "any": map[string]string{value: value}})
			member, _ := json.Marshal(name)
			backend := newFake()
			backend.answers[control.Item] = itemWith(`{"type":"object","properties":{` + string(member) + `:{"type":"string"},"line":{"type":"string","maxLength":100},"list":{"type":"array","items":{"type":"string"}},"any":{}}}`)
			b := browse(t, backend).signIn()
			const try = "/item/try?kind=tool&address=greet"
			_, page, _ := b.post(try, url.Values{"mode": {"json"}, "json": {string(arguments)}, "edit": {"form"}})
			for _, edit := range []string{"add/list", "remove/list/1", ""} {
				form := postedBy(t, page, "/item/try")
				form.Set("edit", edit)
				_, page, _ = b.post(try, form)
			}
			made := backend.requests(control.Try)
			var call control.TryCall
			if len(made) != 1 || made[0].DecodeParams(&call) != nil {
				t.Fatalf("%q in %q: %d calls", value, name, len(made))
			}
			if diff := cmp.Diff(decodeJSON(arguments), decodeJSON(call.Arguments)); diff != "" {
				t.Errorf("%q in %q (-want +got):\n%s", value, name, diff)
			}
		}
	}
}

// A call is explained for the principal that the page names, not for one that looks like it.
func TestForm_hiddenPrincipal(t *testing.T) {
	t.Parallel()
	for _, value := range hiddenValues {
		backend := newFake()
		b := browse(t, backend).signIn()
		_, page := b.get("/policies?" + url.Values{"kind": {"tool"}, "address": {"greet"}, "as": {"other"}, "as_id": {"x" + value + "x"}, "as_kind": {"key"}}.Encode())
		form := postedBy(t, page, "/policies/explain")
		form.Set("kind", "tool")
		form.Set("as_kind", "key")
		if status, _, _ := b.post("/policies/explain", form); status != http.StatusOK {
			t.Errorf("%q: status %d", value, status)
		}
		var call control.ExplainCall
		if made := backend.requests(control.Explain); len(made) != 1 || made[0].DecodeParams(&call) != nil || call.Principal == nil || call.Principal.ID != "x"+value+"x" {
			t.Errorf("%q: explained for %+v", value, call.Principal)
		}
		_, page = b.get("/items?" + url.Values{"q": {value}}.Encode())
		_, page = b.get("/items?" + postedBy(t, page, "/items").Encode())
		if again := postedBy(t, page, "/items"); again.Has("escaped") != hides(value, oneLine) || !again.Has("escaped") && again.Get("q") != value || again.Has("escaped") && fieldValue(again.Get("q")) != value {
			t.Errorf("%q: the search is %q", value, again)
		}
	}
}

// Names of required members are merged within the budget of a page, however often they are repeated.
func TestFormOf_requiredNames(t *testing.T) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("m%d", i)
	}
	required, _ := json.Marshal(names) // strings always encode
	again := strings.Repeat(`,{"$ref":"#/$defs/A"}`, 250)
	for name, document := range map[string]string{
		"wide":      `{"type":"object","allOf":[{}` + again + `],"$defs":{"A":{"required":` + string(required) + `}}}`,
		"recursive": `{"type":"object","allOf":[{}` + again + `],"$defs":{"A":{"required":["a"],"allOf":[{}` + again + `]}}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := newSchemas(json.RawMessage(document))
		parsed := s.parse(json.RawMessage(document))
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; made > 256<<20 || len(parsed.Required) > maxRequired {
			t.Errorf("%s: %d bytes allocated, %d names", name, made, len(parsed.Required))
		}
		t.Logf("%s: %d MiB", name, (after.TotalAlloc-before.TotalAlloc)>>20)
	}
}
