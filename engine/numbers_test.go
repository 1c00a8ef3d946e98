package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// numberPlaces are the positions of a number in a call, as the caller, CEL and the script name
// them.
var numberPlaces = []struct{ pointer, cel, js string }{
	{"/i", "args.i", "input.i"}, {"/n", "args.n", "input.n"}, {"/b", "args.b", "input.b"}, {"/x", "args.x", "input.x"},
	{"/d", "args.d", "input.d"},
	{"/li/0", "args.li[0]", "input.li[0]"}, {"/li/1", "args.li[1]", "input.li[1]"}, {"/ln/0", "args.ln[0]", "input.ln[0]"},
	{"/lb/0", "args.lb[0]", "input.lb[0]"}, {"/mi/k", "args.mi['k']", "input.mi.k"}, {"/mn/k", "args.mn['k']", "input.mn.k"},
	{"/mb/k", "args.mb['k']", "input.mb.k"},
	{"/o/i", "args.o.i", "input.o.i"}, {"/o/n", "args.o.n", "input.o.n"}, {"/o/b", "args.o.b", "input.o.b"},
	{"/f/deep/i", "args.f.deep.i", "input.f.deep.i"}, {"/any/a/0", "args.any.a[0]", "input.any.a[0]"},
}

// numbersTool has every position, and asks for approval with the values that CEL sees.
func numbersTool() string {
	var cel, js []string
	for _, place := range numberPlaces {
		cel, js = append(cel, "string("+place.cel+")"), append(js, "String("+place.js+")")
	}
	return `
tool "numbers" {
  input "i" { type = integer }
  input "n" { type = number }
  input "b" { type = bigint }
  input "x" { type = any }
  input "d" {
    type = integer
    min  = -1e30
    max  = 1e30
  }
  input "li" { type = list(integer) }
  input "ln" { type = list(number) }
  input "lb" { type = list(bigint) }
  input "mi" { type = map(integer) }
  input "mn" { type = map(number) }
  input "mb" { type = map(bigint) }
  input "o" { type = object({ i = integer, n = number, b = optional(bigint, 7) }) }
  input "f" {
    field "deep" {
      field "i" { type = integer }
    }
  }
  input "any" { type = any }
  run = "return [` + strings.Join(js, ", ") + `].join(' ')"
}
policy "seen" {
  tools             = ["numbers"]
  requires_approval = "true"
  reason            = <<CEL
    ` + strings.Join(cel, " + ' ' + ") + `
  CEL
}`
}

// numbersText returns arguments with a number in each position.
func numbersText(numbers []string) string {
	text := `{"i":%s,"n":%s,"b":%s,"x":%s,"d":%s,"li":[%s,%s],"ln":[%s],"lb":[%s],"mi":{"k":%s},"mn":{"k":%s},"mb":{"k":%s},` +
		`"o":{"i":%s,"n":%s,"b":%s},"f":{"deep":{"i":%s}},"any":{"a":[%s]}}`
	values := make([]any, len(numbers))
	for i, n := range numbers {
		values[i] = n
	}
	return fmt.Sprintf(text, values...)
}

// randomNumber returns a random JSON number, often near the bounds of a type.
func randomNumber(r *rand.Rand) string {
	edges := []string{
		"9007199254740991", "9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808",
		"18446744073709551615", "18446744073709551616", "0", "1", "0.1", "1e21", "1e-7", "5e-324", "1.7976931348623157e308", "0.30000000000000004",
	}
	sign := [...]string{"", "-"}[r.IntN(2)]
	switch r.IntN(8) {
	case 0:
		return sign + edges[r.IntN(len(edges))]
	case 1:
		n, _ := new(big.Int).SetString(edges[r.IntN(8)], 10)
		return new(big.Int).Mul(n.Add(n, big.NewInt(r.Int64N(9)-4)), big.NewInt(1-2*r.Int64N(2))).String()
	case 2:
		return fmt.Sprint(sign, r.IntN(1000), "e", r.IntN(25))
	case 3:
		return fmt.Sprintf("%s%d.%0*d", sign, r.IntN(100), 1+r.IntN(25), r.Int64())
	case 4:
		return fmt.Sprintf("%s%d.%0*dE%+d", sign, r.IntN(10), 1+r.IntN(8), r.IntN(100000), r.IntN(640)-320)
	case 5:
		return fmt.Sprintf("%s%d%d", sign, 1+r.Int64N(1<<62), r.IntN(1000))
	case 6:
		return fmt.Sprint(sign, r.Int64N(1<<54), [...]string{"", ".0", ".5", "e0", "0E-1", ".000"}[r.IntN(6)])
	}
	return fmt.Sprint(sign, r.IntN(100000))
}

// sameNumber reports whether two texts are the same decimal number.
func sameNumber(a, b string) bool {
	x, ok := new(big.Rat).SetString(a)
	y, more := new(big.Rat).SetString(b)
	return ok && more && x.Cmp(y) == 0
}

// A tool is called with random numbers in every position. CEL, the approving user, the audit log
// and the script must see the same number, or the call is rejected.
func TestNumbers_sameForEveryReader(t *testing.T) {
	count := 20_000
	switch {
	case checksCost():
		count = 100_000
	case testing.Short():
		count = 2_000
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s := server(t, engine.Options{Files: engine.Files{Tools: files("n.hcl", numbersTool()), Config: files("mcpd.hcl", auditBlock(path, "  capture = [\"*\"]\n"))}})
	r := rand.New(rand.NewPCG(33, 2))
	var bodies []string
	refused, kept, unread := 0, 0, 0
	for done := 0; done < count; done += len(numberPlaces) {
		numbers := make([]string, len(numberPlaces))
		for i := range numbers {
			numbers[i] = randomNumber(r)
		}
		request := refundCall("", nil)
		request.Name = "numbers"
		request.Arguments = json.RawMessage(numbersText(numbers))
		result := s.Execute(t.Context(), request)
		if result.Err != nil && result.Err.Code == call.InvalidInput {
			for _, v := range result.Err.Violations {
				for i, place := range numberPlaces {
					if place.pointer == v.Path {
						numbers[i] = "3"
						refused++
					}
				}
			}
			request.Arguments = json.RawMessage(numbersText(numbers))
			result = s.Execute(t.Context(), request)
		}
		if result.Ask == nil {
			t.Fatalf("%s: %s", request.Arguments, outcomeText(result))
		}
		var asked struct{ Message string }
		if err := json.Unmarshal(result.Ask.Requests[0].Params, &asked); err != nil {
			t.Fatal(err)
		}
		request.Resume = respondWith(result.Ask, "accept")
		result = s.Execute(t.Context(), request)
		if result.Err != nil {
			t.Fatalf("%s: %v", request.Arguments, result.Err)
		}
		var body string
		if err := json.Unmarshal(result.Value, &body); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, body)
		cel, shown, _ := strings.Cut(asked.Message, "\n")
		_, shown, _ = strings.Cut(shown, "Arguments: ")
		sent := leaves(t, json.RawMessage(shown))
		far := beyondInt64(strings.Fields(body))
		if len(far) > 0 { // no policy reads these: CEL evaluates the others without them
			if cel != "denied by policy" {
				t.Errorf("%s: CEL reads %s", request.Arguments, cel)
			}
			others := slices.Clone(numbers)
			for i := range far {
				others[i] = "3"
			}
			cel = celSees(t, s, others)
		}
		for i, inBody := range strings.Fields(body) {
			kept++
			if far[i] {
				unread++
			} else if inCEL := strings.Fields(cel)[i]; !sameNumber(inBody, inCEL) {
				t.Errorf("%s = %s: CEL sees %s, the script %s", numberPlaces[i].pointer, numbers[i], inCEL, inBody)
			}
			if !sameNumber(inBody, sent[i]) {
				t.Errorf("%s = %s: the user sees %s, the script %s", numberPlaces[i].pointer, numbers[i], sent[i], inBody)
			}
		}
		if t.Failed() {
			return
		}
	}
	if refused < count/20 || kept < count/2 || unread > kept/5 {
		t.Errorf("%d numbers rejected, %d accepted, %d of them not read by CEL", refused, kept, unread)
	}
	audited := 0
	for _, l := range outcomesOf(t, s, path) {
		if l.Outcome != "ok" {
			continue
		}
		sent := leaves(t, l.Captured)
		for i, inBody := range strings.Fields(bodies[audited]) {
			if !sameNumber(inBody, sent[i]) {
				t.Fatalf("%s: the log has %s, the script %s", numberPlaces[i].pointer, sent[i], inBody)
			}
		}
		audited++
	}
	if audited != len(bodies) {
		t.Errorf("%d calls in the log, %d made", audited, len(bodies))
	}
}

// beyondInt64 returns the positions with a bigint that CEL has no type for.
func beyondInt64(inBody []string) map[int]bool {
	far := map[int]bool{}
	for i, place := range numberPlaces {
		if place.pointer == "/b" || place.pointer == "/lb/0" || place.pointer == "/mb/k" || place.pointer == "/o/b" {
			if n, ok := new(big.Int).SetString(inBody[i], 10); ok && !n.IsInt64() {
				far[i] = true
			}
		}
	}
	return far
}

// celSees returns the numbers that a policy reads in a call.
func celSees(t *testing.T, s *engine.Server, numbers []string) string {
	t.Helper()
	request := refundCall(numbersText(numbers), nil)
	request.Name = "numbers"
	result := s.Execute(t.Context(), request)
	if result.Ask == nil {
		t.Fatalf("%s: %s", request.Arguments, outcomeText(result))
	}
	var asked struct{ Message string }
	if err := json.Unmarshal(result.Ask.Requests[0].Params, &asked); err != nil {
		t.Fatal(err)
	}
	cel, _, _ := strings.Cut(asked.Message, "\n")
	return cel
}

// leaves returns the numbers in the arguments, in the order of the positions.
func leaves(t *testing.T, text json.RawMessage) []string {
	t.Helper()
	var found []string
	for _, place := range numberPlaces {
		at := text
		for _, name := range strings.Split(place.pointer, "/")[1:] {
			var object map[string]json.RawMessage
			var list []json.RawMessage
			switch {
			case json.Unmarshal(at, &object) == nil:
				at = object[name]
			case json.Unmarshal(at, &list) == nil:
				at = list[name[0]-'0']
			}
		}
		if at == nil {
			t.Fatalf("no %s in %s", place.pointer, text)
		}
		found = append(found, string(at))
	}
	return found
}

// The attack bypasses a deny list and an allow list if CEL and the script read an integer
// differently.
func TestNumbers_guardedByPolicy(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("n.hcl", `
tool "open" {
  input "id" { type = integer }
  run = "return String(input.id)"
}
tool "exact" {
  input "id" { type = bigint }
  input "ids" {
    type    = list(bigint)
    default = [340282366920938463463374607431768211457]
  }
  output "id" { type = bigint }
  output "last" { type = string }
  run = "return { id: input.id + 1n, last: String(input.ids.at(-1)) }"
}
tool "schema" {
  input_schema = {
    type       = "object"
    properties = { id = { type = "integer" }, free = {} }
  }
  run = "return String(input.id ?? input.free)"
}
policy "closed" {
  tools = ["open", "exact"]
  deny  = "args.id == 9007199254740992"
  reason = "Closed"
}`)}})
	for _, row := range []struct{ tool, arguments, want string }{
		{"open", `{"id":9007199254740993}`, "INVALID_INPUT"},
		{"open", `{"id":9007199254740992}`, "INVALID_INPUT"},
		{"open", `{"id":9007199254740991}`, `"9007199254740991"`},
		{"exact", `{"id":9007199254740993}`, `{"id":9007199254740994,"last":"340282366920938463463374607431768211457"}`},
		{"exact", `{"id":9007199254740992}`, "POLICY_DENIED"},
		{"exact", `{"id":1,"ids":[123456789012345678901234567890]}`, `{"id":2,"last":"123456789012345678901234567890"}`},
		{"exact", `{"id":123456789012345678901234567890}`, "POLICY_DENIED"}, // CEL has no such integer
		{"schema", `{"id":9007199254740993}`, "INVALID_INPUT"},
		{"schema", `{"free":9007199254740993}`, "INVALID_INPUT"},
		{"schema", `{"free":1e400}`, "INVALID_INPUT"},
	} {
		request := refundCall(row.arguments, nil)
		request.Name = row.tool
		result := s.Execute(t.Context(), request)
		got := string(result.Value)
		if result.Err != nil {
			got = string(result.Err.Code)
		}
		if got != row.want {
			t.Errorf("%s(%s) = %s, want %s", row.tool, row.arguments, got, row.want)
		}
	}
}

// Limits count calls by the integer that the script sees.
func TestNumbers_countedByLimit(t *testing.T) {
	s := server(t, engine.Options{
		Files: engine.Files{
			Tools: files("n.hcl", `
tool "open" {
  input "id" { type = integer }
  run = "return String(input.id)"
}
tool "exact" {
  input "id" { type = bigint }
  run = "return String(input.id)"
}`),
			Config: files("mcpd.hcl", `
limit "by_id" {
  tools = ["open", "exact"]
  key   = "string(args.id)"
  rate  = "1/h"
}`),
		},
	})
	for _, row := range []struct{ tool, id, want string }{
		{"open", "9007199254740990", `"9007199254740990"`},
		{"open", "9007199254740991", `"9007199254740991"`},
		{"open", "9007199254740991", "over the limit"},
		{"open", "9007199254740992", "INVALID_INPUT"},
		{"open", "9007199254740993", "INVALID_INPUT"},
		{"exact", "9007199254740991", "over the limit"}, // counted for the other tool
		{"exact", "9007199254740992", `"9007199254740992"`},
		{"exact", "9007199254740993", `"9007199254740993"`},
		{"exact", "9007199254740992", "over the limit"},
		{"exact", "9007199254740993", "over the limit"},
		{"exact", "9223372036854775806", `"9223372036854775806"`},
		{"exact", "9223372036854775807", `"9223372036854775807"`},
		{"exact", "9223372036854775807", "over the limit"},
		{"exact", "9223372036854775808", "denied by policy"}, // CEL has no such integer
	} {
		request := refundCall(`{"id":`+row.id+`}`, nil)
		request.Name = row.tool
		result := s.Execute(t.Context(), request)
		got := string(result.Value)
		if result.Err != nil {
			got = result.Err.Error()
		}
		if !strings.Contains(got, row.want) {
			t.Errorf("%s(%s) = %s, want %s", row.tool, row.id, got, row.want)
		}
	}
}

// Policies must see the numbers that an upstream receives.
func TestNumbers_sentToUpstream(t *testing.T) {
	received := make(chan json.RawMessage, 1)
	upstream := mcp.NewServer(&mcp.Implementation{Name: "up", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"i":{"type":"integer"},"n":{"type":"number"}}}`)
	upstream.AddTool(&mcp.Tool{Name: "take", InputSchema: schema}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		received <- r.Params.Arguments
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	url := web(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return upstream }, nil))
	s := federated(t, upstreamAt(url), "p.hcl", `
policy "closed" {
  tools  = ["lab_take"]
  deny   = "args.?i.orValue(0) == 9007199254740992 || args.?n.orValue(0.0) > 0.1 || args.?free.orValue(0) == 9007199254740992"
  reason = "Closed"
}`)
	if names(s)[0] != "lab_take" {
		t.Fatal(names(s))
	}
	for _, row := range []struct{ arguments, want string }{
		{`{"i":9007199254740993,"free":[9007199254740993,18446744073709551616]}`, `{"i":9007199254740993,"free":[9007199254740993,18446744073709551616]}`},
		{`{"i":1e3, "n":0.1000000000000000055}`, `{"i":1000, "n":0.1}`},
		{`{"free":9007199254740993}`, `{"free":9007199254740993}`},
		{`{"i":9007199254740992}`, "POLICY_DENIED"},
		{`{"free":9007199254740992}`, "POLICY_DENIED"},
		{`{"free":18446744073709551616}`, "POLICY_DENIED"}, // CEL has no such integer
		{`{"n":9007199254740993}`, "INVALID_INPUT"},
		{`{"i":9223372036854775808}`, "INVALID_INPUT"},
	} {
		request := refundCall(row.arguments, nil)
		request.Name = "lab_take"
		got := ""
		if result := s.Execute(t.Context(), request); result.Err != nil {
			got = string(result.Err.Code)
		} else {
			got = string(<-received)
		}
		var compact bytes.Buffer
		if json.Compact(&compact, []byte(row.want)) == nil {
			row.want = compact.String()
		}
		if compact.Reset(); json.Compact(&compact, []byte(got)) == nil {
			got = compact.String()
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.arguments, got, row.want)
		}
	}
}

// Policies must see the values that `from` passes to a script.
func TestNumbers_toldByServer(t *testing.T) {
	var inGo []any
	tool := func(name, inputType, from string) string {
		return fmt.Sprintf("tool %q {\n  input \"v\" {\n    type = %s\n    from = \"%s\"\n  }\n  run = \"return typeof input.v + ' ' + String(input.v)\"\n}\n", name, inputType, from)
	}
	s := server(t, engine.Options{
		Policies: []engine.Policy{func(in engine.PolicyInput) engine.Decision {
			if b, ok := in.Args["b"].(*big.Int); ok {
				b.SetInt64(0) // a copy
			}
			inGo = append(inGo, in.Args["v"])
			return engine.Allow()
		}},
		Files: engine.Files{Tools: files("n.hcl", tool("safe", "integer", "9007199254740991")+tool("unsafe", "integer", "9007199254740993")+tool("free", "any", "9007199254740993")+
			tool("large", "bigint", "9007199254740993")+tool("listed", "list(integer)", "[9007199254740993]")+
			"tool \"go\" {\n  input \"b\" { type = bigint }\n  run = \"return String(input.b)\"\n}\n")},
	})
	for _, row := range []struct{ tool, arguments, want string }{
		{"safe", `{}`, `"number 9007199254740991"`},
		{"unsafe", `{}`, "POLICY_DENIED"},
		{"free", `{}`, "POLICY_DENIED"},
		{"listed", `{}`, "POLICY_DENIED"},
		{"large", `{}`, `"bigint 9007199254740993"`},
		{"go", `{"b":123456789012345678901234567890}`, `"123456789012345678901234567890"`},
	} {
		request := refundCall(row.arguments, nil)
		request.Name = row.tool
		result := s.Execute(t.Context(), request)
		got := string(result.Value)
		if result.Err != nil {
			got = string(result.Err.Code)
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.tool, got, row.want)
		}
	}
	if want := []any{int64(9007199254740991), int64(9007199254740993), nil}; fmt.Sprint(inGo) != fmt.Sprint(want) {
		t.Errorf("Go sees %v, want %v", inGo, want)
	}
}
