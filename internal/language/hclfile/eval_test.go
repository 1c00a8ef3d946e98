package hclfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// evaluate evaluates one expression by a local value and the input of a test.
func evaluate(t *testing.T, expr string) (string, diag.List) {
	t.Helper()
	vars := map[string]definition.Variable{
		"stage": {Value: json.RawMessage(`"prod"`)},
		"list":  {Value: json.RawMessage(`[{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]`)},
		"token": {Value: json.RawMessage(`"hunter2"`), Sensitive: true},
	}
	source := "locals {\n  n = 3\n  names = [\"x\", \"y\"]\n}\ntest \"t\" {\n  tool = \"a\"\n  input = { v = " + expr + " }\n  expect { error = \"TIMEOUT\" }\n}\n"
	file, problems := Parse(Source{Path: "x.hcl", RelDir: "crm", Bytes: []byte(source)}, ToolsKind)
	if file == nil {
		return "", problems
	}
	locals, problems := JoinLocals([]*File{file}, vars, false)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	defs, problems := file.Decode(Scope{Vars: vars, Locals: locals, ReadFile: func(name string) ([]byte, error) {
		switch name {
		case "crm/data.txt":
			return []byte("content"), nil
		case "crm/locked.txt":
			return nil, errors.New("permission denied")
		}
		return nil, fmt.Errorf("open: %w", fs.ErrNotExist)
	}})
	return strings.TrimSuffix(strings.TrimPrefix(string(defs.Tests[0].Input), `{"v":`), "}"), problems
}

func TestEval_values(t *testing.T) {
	for expr, want := range map[string]string{
		`"a"`: `"a"`, `1`: `1`, `-2.5`: `-2.5`, `1e3`: `1000`, `0.1 + 0.2`: `0.3`, `12345678901234567890`: `12345678901234567890`,
		`true`: `true`, `null`: `null`, `[]`: `[]`, `{}`: `{}`,
		`{ b = 1, a = [2, { c = 3 }] }`:                    `{"b":1,"a":[2,{"c":3}]}`,
		`{ "a b" = 1, (var.stage) = 2 }`:                   `{"a b":1,"prod":2}`,
		`"${var.stage}-${local.n}"`:                        `"prod-3"`,
		`"$${x} %%{y} \u00e9\t\""`:                         `"${x} %{y} é\t\""`,
		`"%{ if local.n > 2 }big%{ else }small%{ endif }"`: `"big"`,
		`"%{ for v in local.names ~} ${v}, %{ endfor }"`:   `"x, y, "`,
		`local.names[1]`:                                   `"y"`, `local.names["0"]`: `"x"`, `local["n"]`: `3`, `var.list[0].name`: `"a"`,
		`var.list[*].name`: `["a","b"]`, `var.list.*.id`: `[1,2]`, `local.n[*]`: `[3]`, `null[*]`: `[]`,
		`[for v in var.list : upper(v.name) if v.id > 1]`:           `["B"]`,
		`[for i, v in local.names : "${i}${v}"]`:                    `["0x","1y"]`,
		`{ for v in var.list : v.name => v.id }`:                    `{"a":1,"b":2}`,
		`{ for v in concat(local.names, local.names) : v => 1... }`: `{"x":[1,1],"y":[1,1]}`,
		`{ for k, v in { a = 1 } : k => v }`:                        `{"a":1}`,
		`local.n > 2 ? "yes" : [1]`:                                 `"yes"`,
		`local.n == 3 && (false || !false)`:                         `true`,
		`false && local.n.x`:                                        `false`,
		`(1 + 2) * 3 % 4 - -1`:                                      `2`,
		`7 / 2`:                                                     `3.5`,
		`upper("a")`:                                                `"A"`, `join("-", local.names)`: `"x-y"`, `join(",", [1, "a"])`: `"1,a"`, `split(",", "a,b")`: `["a","b"]`,
		`format("%s=%03d", "a", 7)`: `"a=007"`, `formatlist("<%s>", local.names)`: `["<x>","<y>"]`,
		`length("é")`: `1`, `length([1, 2])`: `2`, `length({ a = 1 })`: `1`,
		`merge({ a = 1 }, { b = 2 })`: `{"a":1,"b":2}`, `keys({ b = 1, a = 2 })`: `["a","b"]`, `values({ b = 1, a = 2 })`: `[2,1]`,
		`lookup({ a = 1 }, "b", 9)`: `9`, `contains(["a"], "a")`: `true`, `distinct([1, 1, 2])`: `[1,2]`, `flatten([[1], [[2]]])`: `[1,2]`,
		`zipmap(["a"], [1])`: `{"a":1}`, `coalesce(null, "a")`: `"a"`, `sort(["b", "a"])`: `["a","b"]`, `reverse([1, 2])`: `[2,1]`,
		`slice([1, 2, 3], 1, 2)`: `[2]`, `element(["a"], 0)`: `"a"`, `max(1, 3, 2)`: `3`, `min([4, 2]...)`: `2`, `abs(-1)`: `1`,
		`replace("a.b.c", ".", "-")`: `"a-b-c"`, `substr("hello", 1, 3)`: `"ell"`, `trimspace(" a ")`: `"a"`, `indent(2, "a\nb")`: `"a\n  b"`,
		`startswith("abc", "ab")`: `true`, `endswith("abc", "x")`: `false`, `strcontains("abc", "b")`: `true`,
		`tonumber("42")`: `42`, `tostring(1)`: `"1"`, `tolist(["a"])`: `["a"]`, `parseint("ff", 16)`: `255`,
		`jsonencode({ a = "<é>" })`: `"{\"a\":\"\\u003cé\\u003e\"}"`, `jsondecode("{\"a\":[1]}")`: `{"a":[1]}`,
		`base64encode("a:b")`: `"YTpi"`, `base64decode("YTpi")`: `"a:b"`, `urlencode("a b/")`: `"a+b%2F"`,
		`sha256("")`:       `"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`,
		`file("data.txt")`: `"content"`, `file("../crm/data.txt")`: `"content"`,
		"<<EOT\na $${b}\n  c\nEOT\n":                     `"a ${b}\n  c\n"`,
		"<<-EOT\n    a\n      b\n\n    EOT\n":            `"a\n  b\n\n"`,
		"<<-EOT\n    a ${var.stage}\n      b\n    EOT\n": `"a prod\n  b\n"`,
		"<<SQL\nselect '$${x}', ${y}\nSQL\n":             `"select '$${x}', ${y}\n"`,
	} {
		t.Run(expr, func(t *testing.T) {
			got, problems := evaluate(t, expr)
			if len(problems) > 0 || got != want {
				t.Errorf("got %s, want %s\n%v", got, want, problems)
			}
		})
	}
}

func TestEval_errors(t *testing.T) {
	for expr, want := range map[string]string{
		`var.stgae`: `there is no variable "stgae"; did you mean "stage"?`, `local.name`: `did you mean "names"?`,
		`vars.stage`: `there is no value "vars"; did you mean "var"?`, `prod`: `put it in quotes: "prod"`,
		`var`: `"var" is not a value by itself`, `local[local.n]`: `"local" is not a value by itself`,
		`var.list[2]`: `the list has no item with this index; its length is 2`, `var.list[-1]`: `no item`, `var.list[0.5]`: `no item`,
		`var.list[0].nmae`: `the object has no attribute "nmae"; did you mean "name"?`, `local.n.x`: `a number has no attribute "x"`,
		`null.x`: `null has no attribute`, `"a"[0]`: `a string cannot be indexed`, `local.names["x"]`: `an index of a list must be a number`,
		`secret.crm`: `a secret cannot be used here`, `uper("a")`: `did you mean "upper"?`, `range(9)`: `are not supported`, `timestamp()`: `functions must be pure`,
		`upper()`: `upper() takes 1 argument, not 0`, `upper("a", "b")`: `takes 1 argument, not 2`, `upper([])`: `upper() needs a string here, not a list`,
		`upper(null)`: `must not be null`, `max()`: `max() failed; must pass at least one number`, `base64decode("%")`: `base64decode() failed`,
		`upper("a"...)`: `only a list can be spread`, `"x${[1]}"`: `a list cannot be part of a string; use jsonencode()`, `"x${null}"`: `null cannot be part of a string`,
		`1 + "a"`: `the operator needs a number, not a string`, `1 / 0`: `the result is not a number`, `!1`: `the operator needs a bool, not a number`,
		`1 ? 2 : 3`: `a condition must be true or false, not a number`, `[for x in 1 : x]`: `a for expression needs a list or an object`,
		`{ for x in ["a", "a"] : x => 1 }`: `two items have the key "a"`, `{ for x in [[]] : x => 1 }`: `a key must be a string, not a list`,
		`{ a = 1, a = 2 }`: `the key "a" occurs twice`, `{ a.b = 1 }`: `not a word or a string`,
		`file("gone.txt")`:   `there is no file "crm/gone.txt" in the tools directory; create the file`,
		`file("locked.txt")`: `the file "locked.txt" cannot be read; permission denied`, `file("../../../x")`: `leaves the tools directory`, `file("/etc/passwd")`: `leaves the tools directory`,
		`file("")`: `leaves the tools directory`, `file("a\\b")`: `write "a/b"`, `file(1)`: `file() takes one argument`, `1e999`: `outside the range`, `1e308 * 1e308`: `the result is not a number`,
	} {
		t.Run(expr, func(t *testing.T) {
			_, problems := evaluate(t, expr)
			if !strings.Contains(problems.Error(), want) {
				t.Errorf("got %q, want %q in it", problems.Error(), want)
			}
		})
	}
}

func TestEval_sensitiveValueInError(t *testing.T) {
	for _, expr := range []string{`parseint(var.token, 10)`, `tonumber(var.token)`, `base64decode(var.token)`, `{ for x in [1, 2] : var.token => x }`} {
		if _, problems := evaluate(t, expr); len(problems) == 0 || strings.Contains(problems.Error(), "hunter2") {
			t.Errorf("%s: %v", expr, problems)
		}
	}
}

// Without limits, each of these would need gigabytes or years.
func TestEval_budget(t *testing.T) {
	big := `format("%01000000d", 1)`
	format := `format("%030000d", 1)`
	loop := "[for a in local.names : 1]"
	for range 40 {
		loop = "[for a in [1,1,1,1,1,1,1,1,1,1] : " + loop + "]"
	}
	for name, expr := range map[string]string{
		"width":          `format("%999999999d", 1)`,
		"precision":      `format("%.999999999f", 1)`,
		"indexed verbs":  `format("` + strings.Repeat("%[1]s", 1000) + `", ` + big + `)`,
		"listed widths":  `formatlist("%99999d", [for x in split("", ` + big + `) : 1])`,
		"join":           `join(` + big + `, split("", ` + big + `))`,
		"replace":        `replace(` + big + `, "0", ` + big + `)`,
		"indent":         `indent(1000000, replace(` + big + `, "0", "\n"))`,
		"loops":          loop,
		"digits":         `tonumber(` + big + `)`,
		"added digits":   big + ` + 1`,
		"indexed digits": `local.names[` + big + `]`,
		"deep JSON":      `jsondecode(replace(` + big + `, "0", "["))`,
		"distinct":       `distinct(split("", ` + big + `))`,
		"unification":    `tolist([for i, x in split("", ` + big + `) : { "k${i}" = i }])`,
		"decoded JSON":   `jsondecode(format("[%s]", join(",", split("", format("%02000d", 1)))))`,
		"many distinct":  `distinct([for i, x in split("", format("%01000d", 1)) : i])`,
		"marks":          `"${format("%s%060000d", "e\u0301", 1)}${format("%s%060000d", "e\u0301", 1)}"`,
		"exponent":       `"${1e999999999}"`,
		"looped text":    `[for x in split("", ` + format + `) : <<EOT` + "\n" + strings.Repeat("x", 100_000) + "\nEOT\n]",
		"looped sizes":   `[for x in split("", ` + format + `) : length(split("", ` + format + `))]`,
		"templates":      `"` + strings.Repeat("${"+big+"}", 20) + `"`,
		"lists":          `[` + strings.Repeat(big+",", 200) + `]`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, problems := evaluate(t, expr); !problems.HasErrors() {
				t.Errorf("the result has %d bytes", len(got))
			}
		})
	}
}

func TestEval_growingLocals(t *testing.T) {
	for name, link := range map[string]string{
		"strings": `a%d = "${local.a%[2]d}${local.a%[2]d}"`,
		"lists":   `a%d = [local.a%[2]d, local.a%[2]d]`,
		"objects": `a%d = { x = local.a%[2]d, y = local.a%[2]d }`,
		"nesting": `a%d = [local.a%[2]d]`,
	} {
		t.Run(name, func(t *testing.T) {
			source := "locals {\n  a0 = \"ha\"\n"
			for i := 1; i <= 400; i++ {
				source += fmt.Sprintf("  "+link+"\n", i, i-1)
			}
			file, problems := Parse(Source{Path: "x.hcl", Bytes: []byte(source + "}\n")}, ToolsKind)
			if file == nil {
				t.Fatal(problems)
			}
			_, problems = JoinLocals([]*File{file}, nil, false)
			if len(problems) != 1 || problems[0].Code != "too-large" {
				t.Errorf("want one error about the size, got %v", problems)
			}
		})
	}
}
