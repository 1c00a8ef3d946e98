package toml

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func shown(v any, err error) string {
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `{}`},
		{"a = 1\nb.c = [1, 'x', {d = true}]\n[t.u]\nf = 1_000.5\n[[l]]\nn = 0x1F\n[[l]]", `{"a":1,"b":{"c":[1,"x",{"d":true}]},"l":[{"n":31},{}],"t":{"u":{"f":1000.5}}}`},
		{"a = 2026-03-29\nb = 2026-03-29T10:00:00.5\nc = 10:00:00\nd = 2026-03-29 10:00:00+02:00", `{"a":"2026-03-29","b":"2026-03-29T10:00:00.5","c":"10:00:00","d":"2026-03-29T10:00:00+02:00"}`},
		{"a = \"\"\"x\n[[[\"\"\"\nb = '''y'''", `{"a":"x\n[[[","b":"y"}`},
		{"a = inf", "a number that JSON cannot hold: inf or nan"},
		{"a = 1\nb = secret", "line 2: the text is not TOML"},
		{"a = 1\na = 2", "line 2: the text is not TOML"},
		{"\n\na = " + strings.Repeat("[", 101), "line 3: nested deeper than 100"},
		{"a" + strings.Repeat(".a", 16) + " = 1", "line 1: a key of more than 16 parts"},
		{"a = '" + strings.Repeat(".", 200) + "' # " + strings.Repeat("[", 200), `{"a":"` + strings.Repeat(".", 200) + `"}`},
		{strings.Repeat("#", MaxText+1), "the text is longer than 1 MiB"},
	} {
		if got := shown(Parse(c.text)); got != c.want {
			t.Errorf("%.60q: got %s, want %s", c.text, got, c.want)
		}
	}
}

func TestPrint(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{`{"b":1,"a":{"x y":[1,{"k":[]},"q\"\u0000"],"in":{}},"l":[{"n":1.5},{"n":{"d":true}}],"big":100000000000000000000}`,
			"b = 1\nbig = 100000000000000000000.0\n\n[a]\n\"x y\" = [1, {k = []}, \"q\\\"\\U00000000\"]\n\n[a.in]\n\n[[l]]\nn = 1.5\n\n[[l]]\n\n[l.n]\nd = true\n"},
		{`{}`, ""},
	} {
		if got, err := Print([]byte(c.json)); err != nil || got != c.want {
			t.Errorf("%s: got\n%s%v\nwant\n%s", c.json, got, err, c.want)
		}
	}
	for text, want := range map[string]error{`{"a":null}`: errNull, `{"a":[null]}`: errNull, `[1]`: errTable, `null`: errTable} {
		if _, err := Print([]byte(text)); err != want {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

// FuzzParse checks that a parsed text can be printed and parsed again with the same
// result.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"a.b = [{c = 1}, 2]\n[[d]]\n[d.e]\n'' = \"\\u00e4\\u007f\"", "a = 1e400", "[a]\n[[b.c]]\nx = 1979-05-27", "a = '''\n'''''", "\"a\\\"", "a = {b.c = 1}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, err := Parse(text)
		if err != nil {
			return
		}
		encoded, err := json.Marshal(table)
		if err != nil {
			t.Fatal(err)
		}
		printed, err := Print(encoded)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(printed)
		if err != nil {
			if strings.Contains(err.Error(), "deeper") || strings.Contains(err.Error(), "parts") || strings.Contains(err.Error(), "longer") {
				return
			}
			t.Fatalf("%q printed\n%s: %v", text, printed, err)
		}
		if !reflect.DeepEqual(again, table) {
			t.Errorf("%q gives %v, printed\n%s gives %v", text, table, printed, again)
		}
	})
}

// The output would have 100 GB.
func TestParse_longHeaders(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"` + strings.Repeat("x", 1<<20) + `":{"a":{}`)
	for i := range 100_000 {
		fmt.Fprintf(&b, `,"a%d":{}`, i)
	}
	b.WriteString("}}")
	if printed, err := Print([]byte(b.String())); !errors.Is(err, ErrLong) {
		t.Errorf("%d bytes, %v", len(printed), err)
	}
}
