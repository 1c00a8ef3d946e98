package scripting

import "testing"

func TestInput_bigints(t *testing.T) {
	for _, row := range []struct{ name, body, input, want string }{
		{"direct", `return [typeof input.id, String(input.id)]`, `{"id":123456789012345678901234567890}`, `["bigint","123456789012345678901234567890"]`},
		{"small", `return [typeof input.id, String(input.id + 1n)]`, `{"id":-5}`, `["bigint","-4"]`},
		{"others stay numbers", `return [typeof input.n, input.rows.map((row) => typeof row.n).join()]`, `{"n":5,"rows":[{"n":1,"id":2}]}`, `["number","number"]`},
		{"list", `return input.ids.map(String)`, `{"ids":[9007199254740993,1]}`, `["9007199254740993","1"]`},
		{"map", `return String(input.by.any_name)`, `{"by":{"any_name":9007199254740993}}`, `"9007199254740993"`},
		{"objects in a list", `return String(input.rows[1].id)`, `{"rows":[{"id":1},{"id":9007199254740993}]}`, `"9007199254740993"`},
		{"result", `return { id: input.id * 2n }`, `{"id":9007199254740993}`, `{"id":18014398509481986}`},
		{"result of too many digits", `return { id: 10n ** 308n }`, `{}`, `failure Thrown: the result cannot be returned: a BigInt of more than 308 digits cannot be written as JSON`},
		{"hostile result", `return { id: 1n << 5000000n }`, `{}`, `failure Thrown: the result cannot be returned: a BigInt of more than 308 digits cannot be written as JSON`},
		{"no integer", `return String(input.id)`, `{"id":1.5}`, `failure Thrown: the arguments cannot be read: no integer at byte 9 of the JSON text`},
	} {
		t.Run(row.name, func(t *testing.T) {
			src := tool(row.body)
			src.BigInts, src.BigIntResult = []string{"/id", "/ids/*", "/by/*", "/rows/*/id"}, true
			p := compiled(t, src)
			encoded, err := p.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			var again Program
			if err := again.UnmarshalBinary(encoded); err != nil {
				t.Fatal(err)
			}
			for _, p := range []*Program{p, &again} {
				if got := shown(runWith(t, call(p, row.input), &fakeHost{})); got != row.want {
					t.Errorf("got %s", got)
				}
			}
		})
	}
}
