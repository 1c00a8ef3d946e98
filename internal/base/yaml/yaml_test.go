package yaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func never() error { return nil }

// shown returns documents as JSON, with members in order.
func shown(documents []any, err error) string {
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, d := range documents {
		lines = append(lines, string(appendJSON(nil, d)))
	}
	return strings.Join(lines, " ")
}

func appendJSON(out []byte, v any) []byte {
	switch v := v.(type) {
	case *Map:
		out = append(out, '{')
		for i, name := range v.Names {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendJSON(out, name), ':')
			out = appendJSON(out, v.Values[i])
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, item := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendJSON(out, item)
		}
		return append(out, ']')
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append(out, text...)
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"# nothing", ""},
		{"a: 1\nb: [x, 'y', \"z\\n\", ~]\nc:\n  - d: true\n    e:", `{"a":1,"b":["x","y","z\n",null],"c":[{"d":true,"e":null}]}`},
		{"[yes, no, on, 1_000, 0x1F, 0o17, 017, -.5, 1e3, 2026-03-29, 12:30:00, .5x, +7, '1']", `["yes","no","on","1_000",31,15,17,-0.5,1000,"2026-03-29","12:30:00",".5x",7,"1"]`},
		{"a: |\n  x\n  y\nb: >-\n  x\n  y", `{"a":"x\ny\n","b":"x y"}`},
		{"1: a\ntrue: b\n~: c", `{"1":"a","true":"b","~":"c"}`},
		{"a: &x {n: 1}\nb: *x\nc: {<<: *x, m: 2}\nd: {n: 3, <<: [*x, {m: 4, n: 5}]}", `{"a":{"n":1},"b":{"n":1},"c":{"m":2,"n":1},"d":{"n":3,"m":4}}`},
		{"a\n---\n- b\n---\n", `"a" ["b"] null`},
		{"[!!str 1, !!int '2', !!float 1, !!bool true, !!null ~, !!timestamp 2026-03-29]", `["1",2,1,true,null,"2026-03-29"]`},
		{"'<<': 1", `{"\u003c\u003c":1}`},
		{"\"a\\u00e4\\U0001F600\": ä", `{"aä😀":"ä"}`},

		{"a: 1\na: 2", "line 2: a second key of the name"},
		{"? [a]\n: 1", "line 1: a key that is not text"},
		{"a: .nan", "line 1: a number that JSON cannot hold; put it in quotes"},
		{"a: 1e999", "line 1: a number that JSON cannot hold; put it in quotes"},
		{"- 1\n- !!binary AAAA", "line 2: a tag that JSON does not have, or that does not fit its value"},
		{"!!set {a}", "line 1: a tag that JSON does not have"},
		{"!mine [a]", "line 1: a tag that JSON does not have"},
		{"!!int x", "line 1: a tag that JSON does not have, or that does not fit its value"},
		{"a: {<<: 1}", "line 1: << that does not merge a mapping"},
		{"a: &a [*a]", "line 1: nested deeper than 500, or within itself"},
		{"a: *secret", "the text is not YAML"},
		{"a: [", "line 1: the text is not YAML"},
		{"\x00", "the text is not YAML"},
		{strings.Repeat("[", 600) + strings.Repeat("]", 600), "line 1: nested deeper than 500, or within itself"},
		{strings.Repeat("a", MaxText+1), "the text is longer than 1 MiB"},
	} {
		if got := shown(Parse(c.text, never)); got != c.want {
			t.Errorf("%.60q: got %s, want %s", c.text, got, c.want)
		}
	}
}

func TestParse_aliasBudget(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), i-1)
	}
	long := "a: &a " + strings.Repeat("x", 1<<19) + "\nb: [" + strings.Repeat("*a, ", 200) + "*a]"
	merges := "a: &a {" + strings.Repeat("x", 1000) + ": 1}\n" + strings.Repeat("? {<<: *a}\n", 10)
	for text, want := range map[string]string{b.String(): "1,000,000 values", long: "64 MiB", merges: "not text"} {
		if _, err := Parse(text, never); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %q", text, err, want)
		}
	}
}

func TestParse_step(t *testing.T) {
	over := errors.New("over")
	left := 10
	_, err := Parse("["+strings.Repeat("1, ", 100)+"]", func() error {
		if left--; left < 0 {
			return over
		}
		return nil
	})
	if !errors.Is(err, over) {
		t.Errorf("got %v", err)
	}
}

func TestPrint(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{`{"b":1,"a":{"c":[1,{"x":"y","z":[[],{}]},[2,[3]]],"d":{}},"e":[]}`, "b: 1\na:\n  c:\n  - 1\n  - x: \"y\"\n    z:\n    - []\n    - {}\n  - - 2\n    - - 3\n  d: {}\ne: []\n"},
		{`["yes","1","","a: b","a #b","- a","a\nb\n","a\nb","\n","a\u0000","é","two words","/usr/bin","2026-03-29","=","a ","null","x:"]`,
			"- \"yes\"\n- \"1\"\n- \"\"\n- \"a: b\"\n- \"a #b\"\n- \"- a\"\n- |\n  a\n  b\n- |-\n  a\n  b\n- \"\\n\"\n- \"a\\u0000\"\n- \"é\"\n- two words\n- /usr/bin\n- \"2026-03-29\"\n- \"=\"\n- \"a \"\n- \"null\"\n- \"x:\"\n"},
		{`"a\nb"`, "\"a\\nb\"\n"},
		{`null`, "null\n"},
		{`{"a b":1.5e+21,"c<d>":true}`, "a b: 1.5e+21\n\"c<d>\": true\n"},
	} {
		if got, err := Print([]byte(c.json), never); err != nil || got != c.want {
			t.Errorf("%s: got\n%s%v\nwant\n%s", c.json, got, err, c.want)
		}
	}
}

// Keys are about as long as the maximum for one line, and much longer.
func TestPrint_longKeys(t *testing.T) {
	places := []string{`{%s:%s,"z":0}`, `{"y":{%s:%s},"z":0}`, `[[{%s:%s,"z":0}],5]`}
	values := []string{`1`, `"a\nb"`, `null`, `[]`, `{}`, `[1,[2],{"c":3}]`, `{"d":{"e":[4]}}`}
	for _, c := range []string{"a", "é", "\u0085", " "} {
		for _, n := range []int{1, 2, 170, 171, 255, 256, 510, 511, 512, 1021, 1022, 1023, 1024, 1025, 1026, 20_000} {
			key, err := json.Marshal(strings.Repeat(c, n))
			if err != nil {
				t.Fatal(err)
			}
			for i := range len(places) * len(values) {
				text := fmt.Sprintf(places[i%len(places)], key, values[i/len(places)])
				printed, err := Print([]byte(text), never)
				if err != nil {
					t.Fatal(err)
				}
				again := shown(Parse(printed, never))
				var before, after any
				if json.Unmarshal([]byte(text), &before) != nil || json.Unmarshal([]byte(again), &after) != nil || !reflect.DeepEqual(before, after) {
					t.Errorf("%d times %q: %.10s…, %s parsed as %.200s", n, c, text, values[i/len(places)], again)
				}
			}
		}
	}
}

func TestPrint_comments(t *testing.T) {
	m := &Map{
		Names:  []string{"a", "b", "c"},
		Values: []any{&Map{Names: []string{"d"}, Values: []any{"x"}, Notes: []string{"of d\u2028b: 2\r"}}, []any{&Map{Names: []string{"e"}, Values: []any{"y"}, Notes: []string{"of e"}}}, true},
		Notes:  []string{"of a,\nin two lines", ""},
	}
	const want = "# of a,\n# in two lines\na:\n  # of d b: 2 \n  d: x\nb:\n- # of e\n  e: \"y\"\nc: true\n"
	if got := string(Append(nil, m)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := shown(Parse(want, never)); got != `{"a":{"d":"x"},"b":[{"e":"y"}],"c":true}` {
		t.Errorf("parsed as %s", got)
	}
}

// The output would have 300 MB.
func TestParse_deepIndent(t *testing.T) {
	text := strings.Repeat(`{"a":`, 150) + "[" + strings.Repeat("1,", 1_000_000) + "1]" + strings.Repeat("}", 150)
	if printed, err := Print([]byte(text), never); !errors.Is(err, ErrLong) {
		t.Errorf("%d bytes, %v", len(printed), err)
	}
	var v any = []any{}
	for range 1_000_000 {
		v = append(v.([]any), json.Number("1"))
	}
	for range 150 {
		v = &Map{Names: []string{"a"}, Values: []any{v}}
	}
	if n := len(Append(nil, v)); n > MaxPrinted+1000 {
		t.Errorf("%d bytes written", n)
	}
}

// FuzzPrint checks that printed values survive a round trip.
func FuzzPrint(f *testing.F) {
	for _, text := range []string{`{"a":["b\n c\n",{"":null}]}`, `["\u0085","\u2028","\ufeff"," a"," \n"]`, `[1e21,-0.5,true,"~","0o7","1_0","<<"]`, `"a\n\n\nb"`, `[{"` + strings.Repeat("k", 1025) + `":[{"a":"b\nc"}]}]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) || len(text) > 10_000 {
			return
		}
		printed, err := Print(text, never)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(printed, never)
		var limit *Error
		if errors.As(err, &limit) && (strings.Contains(limit.Message, "deeper") || strings.Contains(limit.Message, "JSON cannot hold") || strings.Contains(limit.Message, "second key")) {
			return
		}
		if err != nil || len(again) != 1 {
			t.Fatalf("%s printed\n%s: %d documents, %v", text, printed, len(again), err)
		}
		var before, after any
		if json.Unmarshal(text, &before) != nil || json.Unmarshal(appendJSON(nil, again[0]), &after) != nil {
			return
		}
		if a, b := fmt.Sprintf("%#v", before), fmt.Sprintf("%#v", after); a != b {
			t.Errorf("%s printed\n%s gives %s", text, printed, b)
		}
	})
}

// FuzzParse checks that no text makes the parser panic, and that results can be encoded
// as JSON.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"a: &x [1]\nb: *x", "{<<: {a: 1}}", "? a\n: b", "--- |\n a\n...\n", "!!binary x", "\"\\x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		documents, err := Parse(text, never)
		if err == nil {
			shown(documents, nil)
		}
	})
}
