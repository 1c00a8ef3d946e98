package scripting

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dop251/goja"
)

func never() bool { return false }

// roundTrip decodes JSON into a runtime and encodes it again.
func roundTrip(t testing.TB, text string) (string, error) {
	t.Helper()
	v, err := (&run{rt: goja.New()}).decode(text)
	if err != nil {
		return "", err
	}
	e := newEncoder(1<<20, maxDecodeDepth, never)
	if wrote, err := e.encode(v); err != nil || !wrote {
		t.Fatalf("encode %q: %v %v", text, wrote, err)
	}
	return string(e.out), nil
}

func TestJSONGoesThroughARuntimeUnchanged(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{` null `, `null`},
		{`true`, `true`},
		{`[ ]`, `[]`},
		{`{ }`, `{}`},
		{`0`, `0`},
		{`-0`, `0`},
		{`-1`, `-1`},
		{`9007199254740993`, `9007199254740992`},
		{`123456789012345`, `123456789012345`},
		{`1e21`, `1e+21`},
		{`1E-7`, `1e-7`},
		{`0.10`, `0.1`},
		{`1.5e300`, `1.5e+300`},
		{`5e-324`, `5e-324`},
		{`"a\"b\\c\/d\b\f\n\r\t\u0041\u00e4\u20ac\ud83d\ude00"`, `"a\"b\\c/d\b\f\n\r\tAä€😀"`},
		{`"\u0000\u001f\u007f"`, `"\u0000\u001f` + "\x7f" + `"`},
		{`"\ud800"`, `"\ud800"`},
		{`"\ude00x\ud83d"`, `"\ude00x\ud83d"`},
		{`"€😀"`, `"€😀"`},
		{`[1,[2,[3]],{"a":{"b":[]}}]`, `[1,[2,[3]],{"a":{"b":[]}}]`},
		{`{"b":1,"a":2,"b":3}`, `{"b":3,"a":2}`},
		{`{"__proto__":{"x":1},"toString":2,"constructor":3}`, `{"__proto__":{"x":1},"toString":2,"constructor":3}`},
		{`{"2":1,"1":2,"a":3}`, `{"1":2,"2":1,"a":3}`},
		{`{"":1,"\u00e4":2}`, `{"":1,"ä":2}`},
		{strings.Repeat("[", 512) + strings.Repeat("]", 512), strings.Repeat("[", 512) + strings.Repeat("]", 512)},
	} {
		got, err := roundTrip(t, c.text)
		if err != nil || got != c.want {
			t.Errorf("%.60q: got %.60q %v, want %.60q", c.text, got, err, c.want)
		}
	}
}

func TestWhatIsNotJSONIsRefused(t *testing.T) {
	for _, text := range []string{
		``, ` `, `nul`, `nullx`, `tru`, `falsE`, `NaN`, `undefined`, `[`, `]`, `{`, `}`, `[1`, `[1,`, `[1,]`, `[,]`, `[1 2]`,
		`{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{'a':1}`, `{"a" 1}`, `{,}`, `1 2`, `[] x`, `01`, `-`, `+1`, `1.`, `.5`, `1e`, `1e+`,
		`0x1`, `1e999`, `"`, `"a`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\u+123"`, "\"\n\"", "\"\x00\"", "\"\xff\"", "\xff", `/**/1`, `'a'`, "\ufeff1",
		strings.Repeat("[", 513), strings.Repeat(`{"a":`, 513), strings.Repeat("[", 1e6),
		"[" + strings.Repeat("1,", maxDecodeValues) + "1]",
	} {
		if got, err := roundTrip(t, text); err == nil {
			t.Errorf("%.40q was read as %.40q", text, got)
		} else if text != "" && len(text) < 8 && strings.Contains(err.Error(), text) && len(text) > 3 {
			t.Errorf("%q: the error repeats the text: %v", text, err)
		}
	}
}

func TestFrozenDataIsFrozenAllTheWayDown(t *testing.T) {
	body := `const tries = [
			() => { vars.stage = 1 }, () => { vars["x" + 1] = 1 }, () => { delete vars.stage },
			() => { vars.nested.list[0] = 2 }, () => { vars.nested.list.push(1) }, () => { agent.agent_id = "root" }, () => { call.via = "x" },
		];
		return tries.map(f => { try { f(); return "changed" } catch (e) { return e.name } })`
	want := `["TypeError","TypeError","TypeError","TypeError","TypeError","TypeError","TypeError"]`
	if got := shown(runBody(t, body, `{}`)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestArgumentsMayBeChanged(t *testing.T) {
	if got := shown(runBody(t, `input.list.push(2); input.x = 1; return input`, `{"list":[1]}`)); got != `{"list":[1,2],"x":1}` {
		t.Errorf("got %s", got)
	}
}

func TestArgumentsThatAreNoJSONFailTheCall(t *testing.T) {
	got := shown(runBody(t, `return input`, `{"a":`))
	if got != `failure Thrown: the arguments cannot be read: unexpected end at byte 5 of the JSON text` {
		t.Errorf("got %s", got)
	}
}

// FuzzArguments holds that what the decoder takes, encoding/json takes, and
// that a second trip through a runtime changes nothing.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"x\u00e4\ud800",null,true]}`, `[]`, `"\ud83d\ude00"`, `-0`, `{"__proto__":1}`, "\"\u2028\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := roundTrip(t, text)
		if valid := json.Valid([]byte(text)); err == nil && !valid {
			t.Fatalf("%q was read and is no JSON", text)
		} else if err != nil {
			return
		}
		if !json.Valid([]byte(first)) {
			t.Fatalf("%q became %q, which is no JSON", text, first)
		}
		second, err := roundTrip(t, first)
		if err != nil || second != first {
			t.Fatalf("%q became %q and then %q %v", text, first, second, err)
		}
	})
}
