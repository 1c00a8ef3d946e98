package scripting

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
)

// A script with coverage has the result that it has without, and says which of its statements ran.
func TestProgram_withCoverage(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		notRun     []int // lines
	}{
		"straight":    {"const a = 1;\nreturn a;", "1", nil},
		"branches":    {"if (input.n > 1) {\n  return 1;\n} else\n  return 2;\nreturn 3;", "2", []int{2, 5}},
		"loops":       {"let n = 0;\nfor (let i = 0; i < 3; i++) n += i;\nwhile (n < 0)\n  n++;\nouter:\nfor (const x of [1, 2])\n  for (const y of [1, 2]) {\n    if (y > 1) continue outer;\n    n += y;\n  }\ndo n++; while (false);\nreturn n;", "6", []int{4}},
		"switch":      {"switch (input.n) {\n  case 1:\n    return 'one';\n  case 2: {\n    return 'two';\n  }\n  default:\n    throw 1;\n}", `"one"`, []int{5, 8}},
		"functions":   {"function never() {\n  return 1;\n}\nconst f = (x) => {\n  return x;\n};\nclass A {\n  m() {\n    return 2;\n  }\n}\nreturn f(3);", "3", []int{2, 9}},
		"failure":     {"try {\n  null.x;\n  return 1;\n} catch {\n  return 2;\n} finally {\n  input.n++;\n}", "2", []int{3}},
		"async":       {"const f = async () => {\n  await null;\n  return 4;\n};\nreturn await f();", "4", nil},
		"declaration": {"{\n  let x = 1;\n  x;\n}\nlet x = 5;;\nreturn x;", "5", nil},
	} {
		t.Run(name, func(t *testing.T) {
			plain, problems := Compile(Source{Name: "t", Kind: Tool, Text: diag.WholeFile("t.js", c.text)})
			if problems.HasErrors() {
				t.Fatal(problems)
			}
			program, err := plain.WithCoverage()
			if err != nil {
				t.Fatal(err)
			}
			if plain.Hash() == program.Hash() {
				t.Error("the hash is that of the program without coverage")
			}
			out, err := Inline().Run(t.Context(), Call{Program: program, Input: []byte(`{"n":1}`)}, nil)
			if err != nil || out.Result == nil || string(out.Result.JSON) != c.want {
				t.Fatalf("outcome %+v, %v, want %s", out, err, c.want)
			}
			var notRun []int
			for n, at := range program.Statements() {
				if !out.HasRun(n) {
					notRun = append(notRun, at.Start.Line)
				}
			}
			slices.Sort(notRun)
			if diff := cmp.Diff(c.notRun, notRun); diff != "" {
				t.Errorf("lines that did not run (-want +got)\n%s", diff)
			}
			encoded, err := out.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			var decoded Outcome
			if err := decoded.UnmarshalBinary(encoded); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(out, decoded); diff != "" {
				t.Errorf("decoded (-want +got)\n%s", diff)
			}
			for cut := range encoded {
				var partial Outcome
				_ = partial.UnmarshalBinary(encoded[:cut]) // must not panic
			}
		})
	}
	if err := new(Outcome).UnmarshalBinary([]byte{outcomeRan, 200, 1, 0}); err == nil {
		t.Error("a bitmap that is too short was decoded")
	}
}
