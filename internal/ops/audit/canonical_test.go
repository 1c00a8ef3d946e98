package audit

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

func canonicalOf(raw string) string {
	w := jsonWalker{in: jsontext.At([]byte(raw))}
	return string(w.canonical(nil))
}

func TestCanonical_equalArguments(t *testing.T) {
	for _, row := range []struct{ name, raw, want string }{
		{"sorted members", ` {"b" : 1, "a" : {"d":2 , "c":[ {"f":1,"e":2} ]}} `, `{"a":{"c":[{"e":2,"f":1}],"d":2},"b":1}`},
		{"minimal escapes", `"\u0041\/\n\u00e9\ud83d\ude00\"\\"`, `"A/\u000aé😀\"\\"`},
		{"ECMAScript numbers", `[1.50,1e2,-0,-0.0,1E-7,1e21,0.000001,123456789012345678901234]`, `[1.5,100,0,0,1e-7,1e+21,0.000001,123456789012345678901234]`},
		{"empty values", `[{},[],"",null,true,false]`, `[{},[],"",null,true,false]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, canonicalOf(row.raw)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestShape_hasNoValues(t *testing.T) {
	for _, row := range []struct{ name, raw, want string }{
		{"an object", `{"id":"C-1042","n":1,"f":1.5,"ok":true,"no":null}`, `{"id":"string(6)","n":"integer","f":"number","ok":"bool","no":"null"}`},
		{"length in characters", `["é\u00e9\n\"😀"]`, `["string(5)"]`},
		{"long lists", `[1,2,3,4,5,6,7,8,9,10]`, `["integer","integer","integer","integer","integer","integer","integer","integer","+2"]`},
		{"deep nesting", `[[[[[[[[[1]]]]]]]]]`, `[[[[[[[["…"]]]]]]]]`},
		{"bidirectional name", "{\"a\u202eb\":1}", `{"a\u202eb":"integer"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := jsonWalker{in: jsontext.At([]byte(row.raw))}
			if diff := cmp.Diff(row.want, string(w.shape(nil, maxShapeDepth, maxShape))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// FuzzCanonical checks that the canonical form is JSON with the same value, is its own
// canonical form, and consumes the whole input.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"b":[1,{"a":"\u0041"}],"a":-0.0}`, `[1e400]`, `"\ud83d\ude00"`, ` [ ] `, `{"a":{"…":1},"b":"x"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if jsonguard.Check(raw, argumentLimits()) != nil {
			return
		}
		w := jsonWalker{in: jsontext.At(raw)}
		once := w.canonical(nil)
		if rest := bytes.TrimLeft(raw[w.in.Offset():], " \t\r\n"); len(rest) > 0 {
			t.Fatalf("%q remains of %q", rest, raw)
		}
		if twice := canonicalOf(string(once)); twice != string(once) {
			t.Fatalf("%q becomes %q", once, twice)
		}
		var before, after any
		if json.Unmarshal(raw, &before) != nil || json.Unmarshal(once, &after) != nil {
			t.Fatalf("%q is not JSON: %q", raw, once)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatal(diff)
		}
		shaped := jsonWalker{in: jsontext.At(raw)}
		shape := shaped.shape(nil, maxShapeDepth, maxShape)
		if err := jsonguard.Check(shape, argumentLimits()); err != nil {
			t.Fatalf("the shape %q: %v", shape, err)
		}
		if shaped.in.Offset() != w.in.Offset() || len(shape) > 2*maxShape+16*maxShapeDepth*maxName {
			t.Fatalf("the shape of %q has %d bytes and ends at %d, not %d", raw, len(shape), shaped.in.Offset(), w.in.Offset())
		}
	})
}

// FuzzLine checks that any file content can be read, and that only lines with a valid
// code are authentic.
func FuzzLine(f *testing.F) {
	e, c := newEncoder(make([]byte, keySize), nil), newChain(make([]byte, keySize))
	e.outcome(refund(), clock())
	good, _ := c.append(nil, chainEntry{seq: 41}, e.body)
	f.Add(good)
	f.Add([]byte("{\"seq\":1}\n\n\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for in := newLines(bytes.NewReader(text)); ; {
			line, err := in.next()
			if err != nil {
				return
			}
			if parsed, err := parseLine(line.text); err == nil {
				_ = parsed.String()
				if _, err := json.Marshal(exportRequest(parsed)); err != nil {
					t.Fatal(err)
				}
				if n := len(cells(parsed)); n != len(columnNames()) {
					t.Fatalf("%d cells", n)
				}
			}
			if at, _, authentic := c.read(line.text); authentic && !bytes.Equal(append(line.text, '\n'), good) {
				t.Fatalf("%q is authentic, as %d", line.text, at.seq)
			}
		}
	})
}
