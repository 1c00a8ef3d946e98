package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/bench/peers/servers/workload"
)

// The revisions of MCP that the benchmark uses. The first has no handshake and no
// sessions over HTTP.
const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

// Fixed numbers of digits let a message change in place.
const (
	idDigits  = 8
	argDigits = 4
	maxArg    = 9999
	minArg    = 1000
)

// firstID is the first request ID of the caller with a number. Callers that share a
// stream have different IDs.
func firstID(caller int) int { return 10_000_000 + caller*callerIDs }

// callerIDs is the number of request IDs of each caller.
const callerIDs = 1_000_000

// message is a request that a caller sends again and again. Each time it has another ID
// and, for the tool add, other arguments, without a change of its length.
type message struct {
	method, tool string
	body         []byte

	first, id  int // request IDs
	idAt       int
	a, b       int
	aAt, bAt   int // 0 if the tool has no arguments
	wantTools  int // tools in the response to tools/list
	listLength int // of the first response to tools/list, which was decoded
}

// newMessage returns the first message of a caller: a call of the tool add or of a tool
// without arguments, or with list a tools/list of a number of tools. In revision 2026-07-28 it carries the
// revision and the client.
func newMessage(work string, revision string, caller, tools int) *message {
	meta := ""
	if revision == modern {
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern +
			`","io.modelcontextprotocol/clientInfo":{"name":"peers","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	m := &message{first: firstID(caller), a: minArg + caller, b: maxArg - caller, wantTools: tools}
	m.id = m.first
	m.method, m.tool = "tools/call", work
	var params []string
	switch work {
	case "add":
		params = append(params, `"name":"add"`, fmt.Sprintf(`"arguments":{"a":%d,"b":%d}`, m.a, m.b))
	case "list":
		m.method, m.tool = "tools/list", ""
	default:
		params = append(params, fmt.Sprintf(`"name":%q`, work), `"arguments":{}`)
	}
	if meta != "" {
		params = append(params, meta)
	}
	m.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, m.id, m.method, strings.Join(params, ","))
	m.idAt = bytes.Index(m.body, []byte(`"id":`)) + len(`"id":`)
	if work == "add" {
		m.aAt = bytes.Index(m.body, []byte(`"a":`)) + len(`"a":`)
		m.bAt = bytes.Index(m.body, []byte(`"b":`)) + len(`"b":`)
	}
	return m
}

// next changes the ID and the arguments.
func (m *message) next() {
	if m.id++; m.id >= m.first+callerIDs {
		m.id = m.first
	}
	putDigits(m.body[m.idAt:m.idAt+idDigits], m.id)
	if m.aAt == 0 {
		return
	}
	if m.a++; m.a > maxArg {
		m.a = minArg
	}
	if m.b -= 3; m.b < minArg {
		m.b = maxArg
	}
	putDigits(m.body[m.aAt:m.aAt+argDigits], m.a)
	putDigits(m.body[m.bAt:m.bAt+argDigits], m.b)
}

func putDigits(to []byte, n int) {
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = byte('0' + n%10)
		n /= 10
	}
}

// blobText is the text of the tool blob as JSON. A tool in Go of mcpd returns a JSON
// value, so its text has the quotes of JSON: quotedText.
var (
	blobText   = quote(workload.Blob())
	quotedText = quote(string(blobText))
)

func quote(text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has JSON
	}
	return quoted
}

// check returns an error unless the response answers the request correctly.
func (m *message) check(response []byte) error {
	if id, ok := idOf(response); !ok || id != m.id {
		return fmt.Errorf("response has another ID than %d: %.300s", m.id, response)
	}
	switch {
	case m.tool == "add":
		_, rest, _ := bytes.Cut(response, []byte(`"sum":`))
		digits := bytes.TrimLeft(rest, " ")
		end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 || string(digits[:end]) != strconv.Itoa(m.a+m.b) {
			return fmt.Errorf("%d + %d is wrong: %.300s", m.a, m.b, response)
		}
	case m.tool == "blob":
		if !bytes.Contains(response, blobText) && !bytes.Contains(response, quotedText) {
			return fmt.Errorf("response lacks the text: %.300s", response)
		}
	case m.listLength == 0:
		if err := checkList(response, m.wantTools); err != nil {
			return err
		}
		m.listLength = len(response)
	case m.listLength != len(response):
		return fmt.Errorf("list has %d bytes after %d", len(response), m.listLength)
	}
	return nil
}

// checkList decodes a response to tools/list. The names of the tools must differ.
func checkList(response []byte, want int) error {
	var list struct {
		Result struct {
			Tools []struct {
				Name        string `json:"name"`
				InputSchema struct {
					Type string `json:"type"`
				} `json:"inputSchema"`
			} `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal(response, &list); err != nil {
		return fmt.Errorf("decode list: %w: %.300s", err, response)
	}
	names := map[string]bool{}
	for _, t := range list.Result.Tools {
		if t.InputSchema.Type != "object" {
			return fmt.Errorf("tool %q has no schema", t.Name)
		}
		names[t.Name] = true
	}
	if len(names) != want || !names["add"] {
		return fmt.Errorf("list has %d tools, want %d", len(names), want)
	}
	return nil
}

// idOf returns the ID of a JSON-RPC response of one of the callers. It looks at the
// start and at the end, where the servers write the ID, before it looks at the rest.
func idOf(response []byte) (id int, ok bool) {
	const near = 64
	mark := []byte(`"id":`)
	at := bytes.Index(response[:min(near, len(response))], mark)
	if at < 0 {
		at = bytes.LastIndex(response, mark)
	}
	if at < 0 {
		return 0, false
	}
	digits := bytes.TrimLeft(response[at+len(mark):], " ")
	if len(digits) < idDigits {
		return 0, false
	}
	id, err := strconv.Atoi(string(digits[:idDigits]))
	return id, err == nil
}

// The handshake of revisions before 2026-07-28. The ID has the digits of other
// messages, so that idOf finds it.
const (
	initializeID = 90_000_000
	initialize   = `{"jsonrpc":"2.0","id":90000000,"method":"initialize","params":{"protocolVersion":"` + legacy +
		`","capabilities":{},"clientInfo":{"name":"peers","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// checkInitialize returns an error unless the response agrees to the revision.
func checkInitialize(response []byte) error {
	var answer struct {
		ID     int `json:"id"`
		Result struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"result"`
	}
	if err := json.Unmarshal(response, &answer); err != nil {
		return fmt.Errorf("initialize: %w: %.300s", err, response)
	}
	if answer.ID != initializeID || answer.Result.ProtocolVersion != legacy {
		return fmt.Errorf("initialize: %.300s", response)
	}
	return nil
}
