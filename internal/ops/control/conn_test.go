package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// answers serves a stream that returns each [TryAnswer] of the client as the number of its
// responses, and then the error that ended it.
func answers(t *testing.T) *Conn {
	t.Helper()
	path := newPath(t)
	serving(t, path, func(_ context.Context, r Request) (any, error) {
		return Stream{Result: r.Action, Serve: func(_ context.Context, conn *Conn) {
			for {
				var a TryAnswer
				if err := conn.Receive(&a); err != nil {
					_ = conn.Send(fmt.Sprint(errors.Is(err, ErrLine), " ", err))
					return
				}
				if err := conn.Send(len(a.Responses)); err != nil {
					t.Error(err)
				}
			}
		}}, nil
	})
	var began Action
	conn, err := Open(t.Context(), path, Request{Action: Try}, &began)
	if err != nil || began != Try {
		t.Fatal(began, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestConn_lines(t *testing.T) {
	conn := answers(t)
	for n := range 3 {
		sent := TryAnswer{Responses: map[string]json.RawMessage{}}
		for i := range n {
			sent.Responses[fmt.Sprint(i)] = json.RawMessage(`{"action":"accept"}`)
		}
		if err := conn.Send(sent); err != nil {
			t.Fatal(err)
		}
		var got int
		if err := conn.Receive(&got); err != nil || got != n {
			t.Errorf("got %d, %v, want %d", got, err, n)
		}
	}
}

func TestConn_invalidLine(t *testing.T) {
	for name, row := range map[string]struct{ text, want string }{
		"no JSON":          {"GET /\n", "true the line is invalid: the JSON text has an unexpected"},
		"unknown member":   {`{"answers":{}}` + "\n", `true the line is invalid: unknown field "answers"`},
		"other type":       {`{"responses":[1]}` + "\n", "true the line is invalid: responses has the wrong type"},
		"duplicate member": {`{"responses":{"a":1,"a":2}}` + "\n", "true the line is invalid: an object has two members"},
		"deep":             {`{"responses":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}}\n", "true the line is invalid: arrays and objects are nested deeper"},
		"long":             {strings.Repeat("x", maxParams+1), "true the line is invalid: it is longer than 1048576 bytes"},
		"no end":           {`{"responses":{}}`, "false unexpected EOF"},
		"nothing":          {"", "false EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := answers(t)
			if _, err := io.WriteString(conn, row.text); err != nil {
				t.Fatal(err)
			}
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			var got string
			if err := conn.Receive(&got); err != nil || !strings.HasPrefix(got, row.want) {
				t.Errorf("got %q, %v, want %q", got, err, row.want)
			}
		})
	}
}

// A peer that does not read cannot block the sender for long: after the first error, Send fails
// at once.
func TestConn_failedSend(t *testing.T) {
	here, there := net.Pipe()
	conn := newConn(here, bufio.NewReader(here))
	_ = there.Close()
	first := conn.Send(1)
	if again := conn.Send(2); first == nil || again != first {
		t.Errorf("got %v, then %v", first, again)
	}
}

func TestRequest_decodeParams(t *testing.T) {
	for params, want := range map[string]string{
		"":                                "",
		`{"kind":"tool","address":"add"}`: "",
		`{"kind":"tool","name":"add"}`:    `params of item: unknown field "name"`,
		`{"kind":["tool"]}`:               "params of item: kind has the wrong type",
		`[]`:                              "params of item must be a JSON object",
		`"secret"`:                        "params of item must be a JSON object",
		`null`:                            "params of item must be a JSON object",
	} {
		got := ""
		if err := (Request{Action: Item, Params: json.RawMessage(params)}).DecodeParams(&ItemName{}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", params, got, want)
		}
	}
}

// A request has room for arguments as large as the limits of its line allow, and no more.
func TestParseRequest_params(t *testing.T) {
	request := func(arguments string) string {
		return `{"control":1,"do":"try","params":{"kind":"tool","address":"a","arguments":` + arguments + "}}"
	}
	nested := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	depth := jsonguard.Client().Depth
	for name, row := range map[string]struct {
		text string
		ok   bool
	}{
		"deep":           {request(nested(depth)), true},
		"too deep":       {request(nested(depth + 2)), false},
		"long":           {request(`{"a":"` + strings.Repeat("x", maxParams-200) + `"}`), true},
		"too long":       {request(`{"a":"` + strings.Repeat("x", maxParams) + `"}`), false},
		"many tokens":    {request("{\"a\":[" + strings.Repeat("1,", 49_990) + "1]}"), true},
		"too many":       {request("{\"a\":[" + strings.Repeat("1,", 60_000) + "1]}"), false},
		"without params": {`{"control":1,"do":"status","principal":"` + strings.Repeat("x", maxRequest) + `"}`, false},
	} {
		if _, err := parseRequest([]byte(row.text)); (err == nil) != row.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
