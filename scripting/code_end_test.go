package scripting

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnObjectAtTheEndOfCodeThatIsABlockIsTold(t *testing.T) {
	const why = "this is a block of statements, and no object; " + asObject
	for _, c := range []struct {
		code string
		want []string
	}{
		{"{ a: 1 }", []string{"code:1:1: error: " + why}},
		{"const a = 1\n{ a }", []string{"code:2:1: error: " + why}},
		{"const a = 1, b = 2;\n{ a, b };", []string{"code:2:1: error: " + why}},
		{"const a: number = 1\n{ a }", []string{"code:2:1: error: " + why}},
		{"{ a: 1, b: 2 }", []string{"code:1:10: error: unexpected token; " + asObject}},
		{"const a = 1\n{ a, b: await crm.list() }", []string{"code:2:7: error: unexpected token; " + asObject}},
		{"{ crm.list() }", nil},
		{"{ const a = 1; a }", nil},
		{"if (true) { a }\nconst a = 1", nil},
		{"class A { a }", nil},
		{"for (;;) { break }", nil},
	} {
		_, problems := Compile(codeOf(c.code))
		var got []string
		for _, p := range problems {
			got = append(got, p.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.code, diff)
		}
	}
}
