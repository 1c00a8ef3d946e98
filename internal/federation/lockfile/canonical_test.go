package lockfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func canonical(t testing.TB, raw string) string {
	t.Helper()
	value, err := decode([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return string(appendValue(nil, value))
}

func TestAppendValue_equal(t *testing.T) {
	for _, row := range []struct{ name, raw, want string }{
		{"members are sorted, at every depth", ` {"b" : 1, "a" : {"d":2 , "c":[ {"f":1,"e":2} ]}} `, `{"a":{"c":[{"e":2,"f":1}],"d":2},"b":1}`},
		{"names are sorted by UTF-16 (RFC 8785 section 3.2.3)", `{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`, `{"\r":2,"1":4,"` + "\u0080" + `":6,"ö":7,"€":1,"😀":5,"` + "\ufb33" + `":3}`},
		{"a name before one that goes on", `{"ab":1,"a":2,"":3}`, `{"":3,"a":2,"ab":1}`},
		{"escapes are those that JSON wants (RFC 8785 section 3.2.2.2)", `"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\b\f\t\r\u007f"`, `"€$\u000f\nA'B\"\\\\\"/\b\f\t\r` + "\x7f" + `"`},
		{"literals", `[null,true,false,{},[],""]`, `[null,true,false,{},[],""]`},
		{"numbers keep their digits, and are else as in RFC 8785 section 3.2.2.3", `[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001]`, `[333333333.33333329,1e+30,4.5,0.002,1e-27]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, canonical(t, row.raw)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAppendNumber_equal(t *testing.T) {
	for _, row := range []struct{ want, numbers string }{
		{"0", "0 -0 0.0 -0.00 0e5 0E-9999 0.0e+9999"},
		{"1", "1 1.0 1e0 10e-1 0.1e1 0.01E+2 1000e-003"},
		{"-1", "-1 -1.0 -10e-1"},
		{"0.1", "0.1 0.10 1e-1 10e-2"},
		{"0.1000000000000000055", "0.1000000000000000055"},
		{"100", "100 1e2 1.00e2 1000e-1"},
		{"9007199254740992", "9007199254740992 9007199254740992.0"},
		{"9007199254740993", "9007199254740993 9.007199254740993e15"},
		{"123456789.5", "123456789.5 1.234567895e8"},
		{"100000000000000000000", "100000000000000000000 1e20"},
		{"1e+21", "1000000000000000000000 1e21 10e20"},
		{"1.23456789012345678901234e+23", "123456789012345678901234 123456789012345678901234.0"},
		{"0.000001", "0.000001 1e-6"},
		{"1e-7", "0.0000001 1e-7 1e-007"},
		{"1.5e-10", "1.5e-10 0.00000000015"},
		{"1e-9999", "1e-9999"},
	} {
		for number := range strings.FieldsSeq(row.numbers) {
			if got := canonical(t, number); got != row.want {
				t.Errorf("%s is %s, want %s", number, got, row.want)
			}
		}
	}
}

func TestAppendNumber_different(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]*big.Rat{}
	for range 20_000 {
		number := someNumber(random)
		value, ok := new(big.Rat).SetString(number)
		if !ok {
			t.Fatal(number)
		}
		form := canonical(t, number)
		read, ok := new(big.Rat).SetString(form)
		if !ok || read.Cmp(value) != 0 {
			t.Fatalf("%s is written %s", number, form)
		}
		if again := canonical(t, form); again != form {
			t.Fatalf("%s is written %s", form, again)
		}
		exact := value.RatString()
		if before, ok := seen[form]; ok && before.Cmp(value) != 0 {
			t.Fatalf("%s and %s have the same form %s", before, exact, form)
		}
		seen[form] = value
	}
}

// someNumber returns one spelling of a number. There are few values, so that they repeat.
func someNumber(random *rand.Rand) string {
	number := fmt.Sprint(random.IntN(200) - 100)
	if random.IntN(2) == 0 {
		number += "." + strings.Repeat("0", random.IntN(3)) + fmt.Sprint(random.IntN(20))
	}
	if random.IntN(2) == 0 {
		number += fmt.Sprintf("e%+d", random.IntN(60)-30)
	}
	return number
}

// TestHash_formatting formats one value in many ways: member order, white space, escapes, zeros
// in numbers.
func TestHash_formatting(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		value := map[string]any{"name": "a", "inputSchema": someObject(random, 4)}
		want := ""
		for range 5 {
			entry := spelled(random, value)
			tool, err := ParseTool("u", entry)
			if err != nil {
				t.Fatalf("%s: %v", entry, err)
			}
			if want == "" {
				want = tool.Hash()
			}
			if tool.Hash() != want {
				t.Fatalf("seed %d: %s has another hash", seed, entry)
			}
		}
	}
}

// TestCheck_changes changes each value, name and item of a definition in turn.
func TestCheck_changes(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		value := map[string]any{
			"name": "a", "title": "t", "description": "Reads. Writes.", "annotations": someObject(random, 2),
			"inputSchema": someObject(random, 4), "outputSchema": someObject(random, 3),
		}
		before := definedBy(t, value)
		lock := new(Lock).WithTools("u", before)
		for n := 0; ; n++ {
			left := n
			changed, ok := altered(value, &left)
			if !ok {
				break
			}
			after := definedBy(t, changed)
			change := Change{Kind: Changed, Upstream: "u", Name: "a", Old: before, New: after}
			if after.Name() != "a" {
				continue
			}
			want := CheckResult{Changes: []Change{change}}
			if diff := cmp.Diff(want, lock.Check("u", []Tool{after}, FirstUse)); diff != "" || after.Hash() == before.Hash() {
				t.Fatalf("seed %d, change %d (-want +got):\n%s", seed, n, diff)
			}
			if shown := change.Diff(); !strings.Contains(shown, "\n+") && !strings.Contains(shown, "\n-") {
				t.Fatalf("seed %d, change %d shows nothing:\n%s", seed, n, shown)
			}
		}
	}
}

func definedBy(t *testing.T, value any) Tool {
	t.Helper()
	entry, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	tool, err := ParseTool("u", entry)
	if err != nil {
		t.Fatalf("%s: %v", entry, err)
	}
	return tool
}

// altered returns a value with its n-th part changed, or false if it has fewer parts. It
// decrements n.
func altered(value any, n *int) (any, bool) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range sortedNames(value) {
			if other, ok := altered(value[name], n); ok {
				return with(value, name, other), true
			}
		}
		if *n--; *n == -1 {
			return with(value, "added", "x"), true
		}
	case []any:
		for i, item := range value {
			if other, ok := altered(item, n); ok {
				list := slices.Clone(value)
				list[i] = other
				return list, true
			}
		}
		if *n--; *n == -1 {
			return append(slices.Clone(value), nil), true
		}
	case string:
		if *n--; *n == -1 {
			return value + "\u200b", true
		}
	case json.Number:
		if *n--; *n == -1 {
			return value + "0000000000000000000001", true
		}
	default:
		if *n--; *n == -1 {
			return "x", true
		}
	}
	return nil, false
}

// with returns a copy of an object with one more member. At the top level it only adds members
// of a definition.
func with(object map[string]any, name string, value any) map[string]any {
	if _, top := object["inputSchema"]; top && name == "added" {
		name, value = "annotations", map[string]any{"added": value}
	}
	other := map[string]any{name: value}
	for each, value := range object {
		if each != name {
			other[each] = value
		}
	}
	return other
}

func someObject(random *rand.Rand, depth int) map[string]any {
	object := map[string]any{}
	for range random.IntN(5) {
		object[someText(random)] = someValue(random, depth-1)
	}
	return object
}

func someValue(random *rand.Rand, depth int) any {
	switch n := random.IntN(8); {
	case n < 2 && depth > 0:
		return someObject(random, depth)
	case n < 3 && depth > 0:
		list := []any{}
		for range random.IntN(4) {
			list = append(list, someValue(random, depth-1))
		}
		return list
	case n < 5:
		return json.Number(fmt.Sprintf("%d.%d", random.IntN(100), 1+random.IntN(9)))
	case n < 6:
		return []any{nil, true, false}[random.IntN(3)]
	}
	return someText(random)
}

func someText(random *rand.Rand) string {
	alphabet := []rune("ab. \n\"\\/\u202e\u0301é😀\ue000\x1b[")
	text := make([]rune, random.IntN(12))
	for i := range text {
		text[i] = alphabet[random.IntN(len(alphabet))]
	}
	return string(text)
}

// spelled formats a value in one of many ways.
func spelled(random *rand.Rand, value any) []byte {
	blank := func() string { return strings.Repeat(" ", random.IntN(2)) + strings.Repeat("\n", random.IntN(2)) }
	var parts []string
	open, shut := "[", "]"
	switch value := value.(type) {
	case map[string]any:
		open, shut = "{", "}"
		for _, name := range sortedNames(value) {
			parts = append(parts, string(spelled(random, name))+blank()+":"+blank()+string(spelled(random, value[name])))
		}
		random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	case []any:
		for _, each := range value {
			parts = append(parts, string(spelled(random, each)))
		}
	case string:
		return spelledText(random, value)
	case json.Number:
		return []byte(string(value) + strings.Repeat("0", random.IntN(3)) + []string{"", "e0", "E+00", "e-0"}[random.IntN(4)])
	default:
		return appendValue(nil, value)
	}
	return []byte(blank() + open + blank() + strings.Join(parts, blank()+","+blank()) + blank() + shut + blank())
}

func spelledText(random *rand.Rand, text string) []byte {
	hidden := func(r rune) bool { return r < 0x20 || random.IntN(2) == 0 }
	return bytes.ReplaceAll(appendText(nil, text, hidden), []byte("/"), []byte([]string{"/", `\/`}[random.IntN(2)]))
}
