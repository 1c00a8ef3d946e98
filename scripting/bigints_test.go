package scripting

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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

func TestBigInt_logged(t *testing.T) {
	src := tool(`log.info("got", { id: input.id, ids: [input.id + 1n] }); log.info({ id: input.id }, input.id); console.log(input.id, [input.id])`)
	src.BigInts = []string{"/id"}
	host := &fakeHost{}
	if got := shown(runWith(t, call(compiled(t, src), `{"id":9007199254740993}`), host)); got != "nothing" {
		t.Errorf("got %s", got)
	}
	want := []string{
		`log {"level":"info","message":"got","fields":{"id":9007199254740993,"ids":[9007199254740994]}}`,
		`log {"level":"info","message":"{\"id\":9007199254740993}","fields":9007199254740993}`,
		`console {"level":"info","message":"9007199254740993 [9007199254740993]"}`,
	}
	if diff := cmp.Diff(want, host.calls()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
