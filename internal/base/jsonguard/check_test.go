package jsonguard

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
	"testing"
)

func kindOf(err error) Kind {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Kind
	}
	return 0
}

func TestCheck_valid(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, `false`, `""`, `{}`, `[]`, " \t\r\n{ } ", `[ ]`,
		`0`, `-0`, `-1`, `10`, `1.5`, `-0.25e-3`, `1E+5`, `1e05`, `0e9999`, `1e-9999`,
		`{"a":1,"b":[1,2,{"a":1}],"c":{"a":null}}`, `[[],{},[[]],""]`, `{"":1," ":2}`,
		`"\"\\\/\b\f\n\r\t\u0041\u00e9\uD83D\uDE00"`, `"é€😀"`, `"\u0000"`, "\"\x7f\"",
		`"1234567\"12345678\\1234567"`, `[1e308,-1.7976931348623157e308]`,
		`{"a":1,"A":2,"\u0061b":3}`,
	} {
		if err := Check([]byte(text), Client()); err != nil {
			t.Errorf("Check(%s) = %v", text, err)
		}
	}
}

func TestCheck_errors(t *testing.T) {
	for _, row := range []struct {
		text   string
		kind   Kind
		offset int
	}{
		{``, Syntax, 0},
		{` `, Syntax, 1},
		{"\x00", Syntax, 0},
		{"null\x00", Trailing, 4},
		{"\ufeff{}", Syntax, 0},
		{`nul`, Syntax, 3},
		{`nulL`, Syntax, 3},
		{`True`, Syntax, 0},
		{`NaN`, Syntax, 0},
		{`'a'`, Syntax, 0},
		{`/**/1`, Syntax, 0},
		{`]`, Syntax, 0},
		{`[`, Syntax, 1},
		{`[1`, Syntax, 2},
		{`[1,`, Syntax, 3},
		{`[1,]`, Syntax, 3},
		{`[,1]`, Syntax, 1},
		{`[1 2]`, Syntax, 3},
		{`[1}`, Syntax, 2},
		{`[1:2]`, Syntax, 2},
		{`{`, Syntax, 1},
		{`{"a"`, Syntax, 4},
		{`{"a"}`, Syntax, 4},
		{`{"a":}`, Syntax, 5},
		{`{"a":1`, Syntax, 6},
		{`{"a":1]`, Syntax, 6},
		{`{"a":1,}`, Syntax, 7},
		{`{"a",1}`, Syntax, 4},
		{`{a:1}`, Syntax, 1},
		{`{1:1}`, Syntax, 1},
		{`{,}`, Syntax, 1},
		{`"`, Syntax, 1},
		{`"abc`, Syntax, 4},
		{`"12345678`, Syntax, 9},
		{`"\`, Syntax, 2},
		{`"\"`, Syntax, 3},
		{`"\x"`, Syntax, 1},
		{`"\u12"`, Syntax, 1},
		{`"\u12g4"`, Syntax, 1},
		{`"\u`, Syntax, 1},
		{"\"a\nb\"", Syntax, 2},
		{"\"12345678\x1f\"", Syntax, 9},
		{`-`, Syntax, 0},
		{`+1`, Syntax, 0},
		{`.5`, Syntax, 0},
		{`01`, Syntax, 0},
		{`-01`, Syntax, 0},
		{`1.`, Syntax, 2},
		{`1.e5`, Syntax, 2},
		{`1e`, Syntax, 2},
		{`1e+`, Syntax, 3},
		{`0x10`, Trailing, 1},
		{`1 2`, Trailing, 2},
		{`{}{}`, Trailing, 2},
		{`null,`, Trailing, 4},
		{`[]]`, Trailing, 2},
		{`1e309`, BadNumber, 0},
		{`[-1e309]`, BadNumber, 1},
		{`1e99999999999999999999`, BadNumber, 0},
		{`1e-10000`, BadNumber, 0},
		{"\"\xff\"", BadUTF8, 1},
		{"\"\xc0\xaf\"", BadUTF8, 1},
		{"\"a\xed\xa0\x80\"", BadUTF8, 2},
		{"\"\xe2\x82\"", BadUTF8, 1},
		{"{}\xff", BadUTF8, 2},
		{`"\ud800"`, BadUTF8, 1},
		{`"\udc00"`, BadUTF8, 1},
		{`"\ud800\u0041"`, BadUTF8, 1},
		{`"\ud800\n"`, BadUTF8, 1},
		{`"\udc00\ud800"`, BadUTF8, 1},
		{`"\ud800\ud800\udc00"`, BadUTF8, 1},
		{`{"a":1,"a":2}`, DuplicateKey, 7},
		{`{"a":1,"\u0061":2}`, DuplicateKey, 7},
		{`{"\ud83d\ude00":1,"😀":2}`, DuplicateKey, 18},
		{`{"\/":1,"/":2}`, DuplicateKey, 8},
		{`{"":1,"":2}`, DuplicateKey, 6},
		{`[{"x":{"a":1,"b":{"a":1},"a":2}}]`, DuplicateKey, 25},
	} {
		err := Check([]byte(row.text), Client())
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Kind != row.kind || e.Offset != row.offset {
			t.Errorf("Check(%q) = %v, want kind %d at %d", row.text, err, row.kind, row.offset)
		}
	}
}

func TestCheck_duplicateName(t *testing.T) {
	for n := 1; n <= 60; n++ {
		for again := range n {
			text := []byte(repeatedName(n, again))
			if kind := kindOf(Check(text, Client())); kind != DuplicateKey {
				t.Fatalf("%d names and name %d again: kind %d, want a duplicate", n, again, kind)
			}
		}
	}
}

// repeatedName returns an object of n distinct names, each with an object of many names
// as its value, followed by the name again.
func repeatedName(n, again int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		b.WriteString(quotedName(i) + `:` + objectOf(i%20) + `,`)
	}
	b.WriteString(quotedName(again) + `:0}`)
	return b.String()
}

func TestCheck_errorsQuoteNothing(t *testing.T) {
	for _, text := range []string{`{"hunter2":1,"hunter2":2}`, `hunter2`, `"hunter2`, `["hunter2"}`, `hunter2e309`, `{} hunter2`, "\"hunter2\xff"} {
		err := Check([]byte(text), Client())
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Check(%q) = %v", text, err)
		}
	}
}

func TestCheck_limitErrors(t *testing.T) {
	l := Limits{Bytes: 40, Depth: 2, Tokens: 6}
	for _, row := range []struct {
		text, want string
		limit      int
	}{
		{strings.Repeat(" ", 41), "the JSON text is longer than the limit of 40 bytes", 40},
		{`[[[]]]`, "arrays and objects are nested deeper than the limit of 2 levels", 2},
		{`[1,2,3,4,5,6,7]`, "the JSON text has more than the limit of 6 structural characters (brackets, braces, colons and commas)", 6},
	} {
		e, ok := errors.AsType[*Error](Check([]byte(row.text), l))
		if !ok || e.Message != row.want || e.Limit != row.limit {
			t.Errorf("Check(%q) = %v, want %q", row.text, e, row.want)
		}
	}
}

func TestCheck_exactLimits(t *testing.T) {
	for _, row := range []struct {
		name, within, beyond string
		limits               Limits
		kind                 Kind
	}{
		{"bytes", `"12"`, `"123"`, Limits{Bytes: 4}, TooLarge},
		{"depth", `[{"a":[]}]`, `[{"a":[[]]}]`, Limits{Depth: 3}, TooDeep},
		{"tokens in an array", `[1,2,3]`, `[1,2,3,4]`, Limits{Tokens: 4}, TooMany},
		{"tokens in an object", `{"a":1}`, `{"a":{}}`, Limits{Tokens: 3}, TooMany},
		{"default limits", nested(32, "[", "]"), nested(33, "[", "]"), Limits{}, TooDeep},
	} {
		t.Run(row.name, func(t *testing.T) {
			if err := Check([]byte(row.within), row.limits); err != nil {
				t.Errorf("within: %v", err)
			}
			if kind := kindOf(Check([]byte(row.beyond), row.limits)); kind != row.kind {
				t.Errorf("beyond: kind %d, want %d", kind, row.kind)
			}
		})
	}
}

func nested(n int, open, shut string) string {
	return strings.Repeat(open, n) + strings.Repeat(shut, n)
}

func TestOverflow_threshold(t *testing.T) {
	one := big.NewInt(1)
	want := new(big.Int).Sub(new(big.Int).Lsh(one, 1024), new(big.Int).Lsh(one, 970))
	if overflow != want.String() {
		t.Errorf("overflow = %s, want %s", overflow, want)
	}
}

func TestCheck_numberRange(t *testing.T) {
	below, _ := new(big.Int).SetString(overflow, 10)
	below.Sub(below, big.NewInt(1))
	zeros := strings.Repeat("0", 1000)
	for _, text := range []string{
		overflow, below.String(), overflow + ".0", below.String() + ".999", overflow + "0", overflow + "e-1", overflow + "0e-1",
		"0." + overflow + "e309", "0." + below.String() + "e309", "0.000" + overflow + "e312", "0.000" + below.String() + "e312",
		"1.7976931348623158e308", "1.7976931348623159e308", "17.9769313486231580e307", "1.8e308", "1e308", "9e307", "9.99e308", "1e309",
		"0e9999", "0.0e9999", "0." + zeros + "1e1000", "0." + zeros + "1e1309", "0." + zeros + "1e1310", "0." + zeros + "2e1309",
		"1" + zeros, "1" + zeros + "e-1000", "1" + zeros + "e-700", "1" + zeros + "e-692", "5e-324", "1e-400",
	} {
		_, err := strconv.ParseFloat(text, 64)
		overflows := errors.Is(err, strconv.ErrRange)
		if got := kindOf(Check([]byte(text), Client())) == BadNumber; got != overflows {
			t.Errorf("%.60s: rejected %t, ParseFloat overflows %t", text, got, overflows)
		}
	}
}
