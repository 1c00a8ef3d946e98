package tooltest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A long value is written on several lines. Members keep their order, and strings cannot become
// expressions.
func TestValueHCL(t *testing.T) {
	for raw, want := range map[string]string{
		`null`:                         `null`,
		`true`:                         `true`,
		`-1.50e+3`:                     `-1.50e+3`,
		`12345678901234567890`:         `12345678901234567890`,
		`"${a} %{b} $${c} 100% $"`:     `"$${a} %%{b} $$${c} 100% $"`,
		`"a\"b\\c\n\r\t\u0007\u202e😀"`: `"a\"b\\c\n\r\t\u0007\u202e😀"`,
		`[]`:                           `[]`,
		`{}`:                           `{}`,
		`{"b":1,"a":[1,2],"odd key":{"for":null,"x-y":1}}`:                                                      `{ b = 1, a = [1, 2], "odd key" = { "for" = null, "x-y" = 1 } }`,
		`{"long":"0123456789012345678901234567890123456789012345678901234567890","list":[1],"no":[],"none":{}}`: "{\nlong = \"0123456789012345678901234567890123456789012345678901234567890\"\nlist = [\n1,\n]\nno = []\nnone = {}\n}",
		`{`: `null`,
	} {
		if diff := cmp.Diff(want, valueHCL(json.RawMessage(raw), nil)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", raw, diff)
		}
	}
}
