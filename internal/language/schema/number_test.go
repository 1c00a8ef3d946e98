package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
)

func decodeFor(t *testing.T, reader Reader, schema, text string) (Arguments, []Violation) {
	t.Helper()
	s, problems := CompileFor(reader, json.RawMessage(schema), diag.Range{}, nil)
	if s == nil {
		t.Fatalf("%s: %v", schema, problems)
	}
	return s.Decode([]byte(text), nil)
}

// anyPlace has an integer, a number, an untyped value and a bigint, and lists of them.
const anyPlace = `{"properties":{"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"integer"},
	"li":{"items":{"type":"integer"}},"mn":{"additionalProperties":{"type":"number"}},"lb":{"items":{"type":"integer"}}}}`

func TestDecode_numbers(t *testing.T) {
	scripts := Reader{Numbers: ForScripts, BigInts: []string{"/b", "/lb/*"}}
	for _, row := range []struct {
		name   string
		reader Reader
		text   string
		// want is the value and the text, or the violations.
		want string
	}{
		{"safe integer", scripts, `{"i":9007199254740991}`, `map[i:9007199254740991] {"i":9007199254740991}`},
		{"integer beyond 2^53", scripts, `{"i":9007199254740992}`, "[{/i " + unsafeInteger + "}]"},
		{"negative integer beyond 2^53", scripts, `{"li":[1,-9007199254740993]}`, "[{/li/1 " + unsafeInteger + "}]"},
		{"exponent beyond 2^53", scripts, `{"i":1e16}`, "[{/i " + unsafeInteger + "}]"},
		{"integer with a point", scripts, `{"i": 1.0 ,"li":[1e3,-0]}`, `map[i:1 li:[1000 0]] {"i": 1 ,"li":[1000,0]}`},
		{"int64 for Go", Reader{}, `{"i":9223372036854775807}`, `map[i:9223372036854775807] {"i":9223372036854775807}`},
		{"beyond int64 for Go", Reader{}, `{"i":9223372036854775808}`, "[{/i " + int64Overflow + "}]"},
		{"bigint", scripts, `{"b":5,"lb":[123456789012345678901234567890]}`, `map[b:5 lb:[123456789012345678901234567890]] {"b":5,"lb":[123456789012345678901234567890]}`},
		{"bigint with a point", scripts, `{"b":2.0}`, `map[b:2] {"b":2}`},
		{"bigint with an exponent", scripts, `{"b":1e30}`, "[{/b " + notBigInt + "}]"},
		{"bigint with a fraction", scripts, `{"b":1.5}`, "[{/b must be an integer, not a fraction}]"},
		{"longest bigint", scripts, `{"b":` + strings.Repeat("1", 309) + `}`, "[{/b " + notBigInt + "}]"},
		{"digits that a number keeps", scripts, `{"n":9007199254740994,"x":1e300}`, `map[n:9.007199254740994e+15 x:1e+300] {"n":9007199254740994,"x":1e300}`},
		{"digits that a number loses", scripts, `{"n":9007199254740993,"x":[1152921504606846976]}`, "[{/n " + imprecise + "} {/x/0 " + imprecise + "}]"},
		{"fraction is rounded", scripts, `{"n":0.1000000000000000055,"mn":{"x":1.10}}`, `map[mn:map[x:1.1] n:0.1] {"n":0.1,"mn":{"x":1.10}}`},
		{"no negative zero", scripts, `{"n":-0.0,"x":-1e-400}`, `map[n:0 x:0] {"n":0,"x":0}`},
		{"anything for text", Reader{Numbers: ForText}, `{"x":[9007199254740993,18446744073709551616,5]}`,
			`map[x:[9007199254740993 18446744073709551616 5]] {"x":[9007199254740993,18446744073709551616,5]}`},
		{"number for text", Reader{Numbers: ForText}, `{"n":9007199254740993}`, "[{/n " + imprecise + "}]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, found := decodeFor(t, row.reader, anyPlace, row.text)
			shown := fmt.Sprint(got.Value, " ", string(got.Text))
			if found != nil {
				shown = fmt.Sprint(found)
			}
			if shown != row.want {
				t.Errorf("got %s, want %s", shown, row.want)
			}
		})
	}
}

func TestDecode_sentHasNoDefaults(t *testing.T) {
	s, _ := CompileFor(Reader{Numbers: ForScripts}, json.RawMessage(`{"properties":{"n":{"type":"integer"},"d":{"default":1}}}`), diag.Range{}, nil)
	a, found := s.Decode([]byte(`{"n":1e2}`), nil)
	if string(a.Sent) != `{"n":100}` || string(a.Text) != `{"n":100,"d":1}` || found != nil {
		t.Errorf("sent %s, text %s, %v", a.Sent, a.Text, found)
	}
}

func TestDecode_bigIntLimits(t *testing.T) {
	const schema = `{"properties":{"b":{"type":"integer","minimum":100000000000000000001,"maximum":100000000000000000003,"default":100000000000000000002}}}`
	reader := Reader{Numbers: ForScripts, BigInts: []string{"/b"}}
	if a, found := decodeFor(t, reader, schema, `{}`); found != nil || string(a.Text) != `{"b":100000000000000000002}` {
		t.Errorf("text %s, %v", a.Text, found)
	}
	for text, want := range map[string]string{
		`{"b":100000000000000000000}`: "must be at least 100000000000000000001", `{"b":100000000000000000004}`: "must be at most 100000000000000000003",
		`{"b":5}`: "must be at least 100000000000000000001",
	} {
		if _, found := decodeFor(t, reader, schema, text); len(found) != 1 || found[0].Message != want {
			t.Errorf("%s: %v, want %s", text, found, want)
		}
	}
	const choice = `{"properties":{"b":{"enum":[100000000000000000001,100000000000000000003]}}}`
	if _, found := decodeFor(t, reader, strings.Replace(choice, `{"enum"`, `{"type":"integer","enum"`, 1), `{"b":100000000000000000002}`); len(found) != 1 {
		t.Errorf("the enum accepts an unlisted value: %v", found)
	}
}

func TestCompileFor_defaultOutOfRange(t *testing.T) {
	for _, schema := range []string{
		`{"properties":{"n":{"default":9007199254740993}}}`, `{"properties":{"n":{"type":"integer","default":9007199254740993}}}`,
	} {
		if s, problems := CompileFor(Reader{Numbers: ForScripts}, json.RawMessage(schema), diag.Range{}, nil); s != nil || !problems.HasErrors() {
			t.Errorf("%s: no error: %v", schema, problems)
		}
	}
}

func TestDecode_unevaluatedWithLargeIntegers(t *testing.T) {
	const schema = `{"properties":{"i":{"type":"integer","maximum":100000000000000000001}},"unevaluatedProperties":false}`
	if _, found := decodeFor(t, Reader{Numbers: ForText}, schema, `{"i":5}`); found != nil {
		t.Error(found)
	}
	if _, found := decodeFor(t, Reader{Numbers: ForText}, `{"unevaluatedProperties":{"enum":["x"]}}`, `{"i":18446744073709551617}`); found == nil {
		t.Error("an unlisted value is valid")
	}
}

// A number is decoded at every location: value and text must hold the same number, in the range
// of the reader.
func FuzzDecode_numbers(f *testing.F) {
	for _, number := range []string{"0", "-0.0", "9007199254740993", "1e16", "0.30000000000000004", "1E-7", "12345678901234567890.5", "5e-324", "9223372036854775808", "1.0e2"} {
		f.Add(number)
	}
	var schemas []*Schema
	for _, numbers := range []Numbers{ForGo, ForScripts, ForText} {
		s, _ := CompileFor(Reader{Numbers: numbers, BigInts: []string{"/b", "/lb/*"}}, json.RawMessage(anyPlace), diag.Range{}, nil)
		schemas = append(schemas, s)
	}
	f.Fuzz(func(t *testing.T, number string) {
		var parsed json.Number
		if json.Unmarshal([]byte(number), &parsed) != nil || parsed == "" || strings.TrimSpace(number) != number || number[0] == '"' {
			return
		}
		for _, s := range schemas {
			for _, place := range []string{`{"i":%s}`, `{"n":%s}`, `{"b":%s}`, `{"x":%s}`, `{"li":[%s]}`, `{"mn":{"k":%s}}`, `{"lb":[%s]}`} {
				text := fmt.Sprintf(place, number)
				got, found := s.Decode([]byte(text), nil)
				if found != nil {
					continue
				}
				if diff := differs(got); diff != "" {
					t.Fatalf("%s for %d: %s", text, s.numbers, diff)
				}
				if _, again := s.Decode(got.Text, nil); again != nil {
					t.Fatalf("%s becomes %s: %v", text, got.Text, again)
				}
			}
		}
	})
}

// differs compares the numbers of the value with the numbers of the text.
func differs(a Arguments) string {
	encoded, err := json.Marshal(a.Value)
	if err != nil {
		return err.Error()
	}
	one, other := leaf(string(encoded)), leaf(string(a.Text))
	x, ok := new(big.Rat).SetString(one)
	y, more := new(big.Rat).SetString(other)
	if !ok || !more || x.Cmp(y) != 0 {
		return fmt.Sprintf("the value is %s, the text %s", one, other)
	}
	return ""
}

// leaf returns the number in an object or array with one value.
func leaf(text string) string {
	return strings.Trim(text[strings.LastIndexAny(text, ":[")+1:], "]} ")
}

// numbers are int64 and float64 values near the limits of range and precision.
var numbers = []any{
	int64(0), int64(1), int64(-1), int64(1 << 53), int64(1<<53 + 1), int64(-(1<<53 + 1)), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64 - 1),
	0.0, math.Copysign(0, -1), 0.5, -0.5, 1.5, float64(1 << 53), float64(1<<53 + 2), 9.223372036854775807e18, -9.223372036854775808e18, 1e19, -1e19,
	math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 4503599627370495.5,
}

func exact(v any) *big.Rat {
	if i, ok := v.(int64); ok {
		return new(big.Rat).SetInt64(i)
	}
	return new(big.Rat).SetFloat64(v.(float64))
}

func TestCompare_exact(t *testing.T) {
	for _, a := range numbers {
		for _, b := range numbers {
			want := exact(a).Cmp(exact(b))
			if got := compare(a, b); got != want {
				t.Errorf("compare(%T %v, %T %v) = %d, want %d", a, a, b, b, got, want)
			}
			var r run
			first := string(r.canonical(a))
			if same := first == string(r.canonical(b)); same != (want == 0) {
				t.Errorf("%T %v and %T %v have equal canonical bytes: %t", a, a, b, b, same)
			}
		}
	}
}

func TestMultiple_decimals(t *testing.T) {
	for _, row := range []struct {
		v, step any
		want    bool
	}{
		{int64(6), int64(3), true}, {int64(7), int64(3), false}, {int64(0), int64(3), true}, {int64(math.MinInt64), int64(1), true},
		{0.3, 0.1, true}, {0.35, 0.1, false}, {19.99, 0.01, true}, {19.999, 0.01, false}, {int64(3), 1.5, true}, {4.5, int64(3), false},
		{1e308, 0.5, true}, {1e-300, 1e-300, true}, {float64(1 << 53), int64(2), true},
	} {
		if got := multiple(row.v, row.step); got != row.want {
			t.Errorf("multiple(%v, %v) = %t", row.v, row.step, got)
		}
	}
}

func TestValidate_integersBeyond2to53(t *testing.T) {
	for _, row := range []struct {
		name, schema, value, want string
	}{
		{"maximum", `{"maximum":9007199254740992}`, `9007199254740993`, "must be at most 9007199254740992"},
		{"maximum of a number", `{"type":"number","maximum":9007199254740992}`, `9007199254740993`, "must be at most 9007199254740992"},
		{"at the maximum", `{"type":"number","maximum":9007199254740993}`, `9007199254740993`, ""},
		{"minimum", `{"minimum":-9007199254740992}`, `-9007199254740993`, "must be at least -9007199254740992"},
		{"exclusive maximum", `{"exclusiveMaximum":9007199254740994}`, `9007199254740993`, ""},
		{"multiple", `{"multipleOf":9007199254740993}`, `9007199254740993`, ""},
		{"no multiple", `{"multipleOf":2}`, `9007199254740993`, "must be a multiple of 2"},
		{"constant", `{"const":9007199254740993}`, `9007199254740993`, ""},
		{"neighbor of a constant", `{"const":9007199254740992}`, `9007199254740993`, "must be 9007199254740992"},
		{"distinct items", `{"uniqueItems":true}`, `[9007199254740992,9007199254740993]`, ""},
		{"float64 with a fraction of zero", `{"const":9007199254740992}`, `9007199254740992.0`, ""},
		{"maximum beyond int64", `{"maximum":100000000000000000000}`, `100000000000000000001`, "must be at most 100000000000000000000"},
		{"maximum of an integer beyond int64", `{"type":"integer","maximum":100000000000000000000}`, `100000000000000000001`, "must be at most 100000000000000000000"},
		{"exponent beyond int64", `{"const":1e22}`, `10000000000000000000000`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, problems := Compile(json.RawMessage(row.schema), diag.Range{}, nil)
			if s == nil {
				t.Fatal(problems)
			}
			if got := FormatViolations(s.Validate([]byte(row.value))); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// A float64 equals its decimal, also if an integer rounds to it.
func TestCompareBig_decimals(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	for range 20_000 {
		f := math.Ldexp(1+r.Float64(), 63+r.IntN(900))
		i, _ := big.NewFloat(f).Int(nil)
		if n := i.BitLen() - 53; n > 0 { // about the distance to the next float64
			i.Add(i, new(big.Int).Rsh(new(big.Int).Lsh(big.NewInt(int64(r.IntN(2001)-1000)), uint(n)), 9))
		}
		if r.IntN(2) == 0 {
			f, i = -f, i.Neg(i)
		}
		want := rational(i).Cmp(rational(f))
		if got := compare(i, f); got != want || compare(f, i) != -want {
			t.Fatalf("compare(%v, %v) = %d, want %d", i, f, got, want)
		}
	}
}

// Expensive comparisons are counted as steps.
func TestValidate_manyLongIntegers(t *testing.T) {
	of := func(item string) []byte {
		return []byte("[" + strings.Repeat(item+",", 1<<16) + item + "]")
	}
	s := mustCompile(t, `{"items":{"minimum":0,"maximum":1e22,"exclusiveMinimum":-1,"exclusiveMaximum":1e23}}`)
	if got := FormatViolations(s.Validate(of("1" + strings.Repeat("0", 22)))); got != tooCostly {
		t.Errorf("got %q, want %q", got, tooCostly)
	}
	if got := s.Validate(of("1" + strings.Repeat("0", 20))); len(got) > 0 {
		t.Errorf("got %q", FormatViolations(got))
	}
}
