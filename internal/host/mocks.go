package host

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcpd/mcpd/scripting"
)

// Mock is the answer to one host call of a test.
type Mock struct {
	// Object is the granted object, such as "http.crm", and Request the method
	// and the target, such as "GET /customers/C-1042". Of what the client is
	// asked, Object is "elicit", "sample" or "roots", and Request is the key. Of
	// files it is such as "fs.logs" and "readText app.log", and of the
	// environment "env" and the name. Of programs, such as "exec.git", it is
	// their arguments in one line, and Body is JSON: {"code","stdout","stderr"}.
	// Of databases it is such as "sql.shop" and the name of the statement, with the
	// path of the file behind it where calls choose one. Of kept values, such as
	// "kv.notes", Request is the key that holds Body. Of secrets it is "secrets" and
	// the name. Of tools it is "tools" and the name, and Body is what the tool
	// returns; of modules such as "modules.ledger", and the name of the function.
	Object, Request string
	Status          int
	Headers         map[string]string
	// Body is nil when there is none.
	Body []byte
	// Error is the code of a refusal, "" when the mock answers.
	Error string
}

// Mocks answer the host calls of a test and remember them.
type Mocks struct {
	mocks []Mock

	mu      sync.Mutex
	calls   []string
	missing []string
	used    []bool // of mocks, by index
	kv      mockKV
}

func NewMocks(known []Mock) *Mocks { return &Mocks{mocks: known, used: make([]bool, len(known))} }

// Calls returns the host calls that were made, in order, such as
// "http.crm GET /customers/C-1042".
func (m *Mocks) Calls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

// Missing returns the mock blocks that the host calls would have needed.
func (m *Mocks) Missing() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.missing)
}

// Unused returns the mocks that answered nothing.
func (m *Mocks) Unused() []Mock {
	m.mu.Lock()
	defer m.mu.Unlock()
	var unused []Mock
	for i, used := range m.used {
		if !used {
			unused = append(unused, m.mocks[i])
		}
	}
	return unused
}

// find notes a call, and returns the mock that answers it. It needs mu.
func (m *Mocks) find(object, request string) (Mock, bool) {
	call := object
	if request != "" {
		call += " " + request
	}
	m.calls = append(m.calls, call)
	return m.lookup(object, request)
}

// known is find for what is no host call.
func (m *Mocks) lookup(object, request string) (Mock, bool) {
	i := slices.IndexFunc(m.mocks, func(mock Mock) bool { return mock.Object == object && mock.Request == request })
	if i < 0 {
		return Mock{}, false
	}
	m.used[i] = true
	return m.mocks[i], true
}

// reply notes a call and returns the mock that answers it, or the error that it is
// refused with: that of its mock, or that of [Mocks.lacking]. It needs mu.
func (m *Mocks) reply(object, request, example string) (Mock, error) {
	mock, ok := m.find(object, request)
	switch {
	case !ok:
		return mock, m.missingMock(object, request, example)
	case mock.Error != "":
		return mock, mock.mockError()
	}
	return mock, nil
}

// lacking refuses a call that no mock answers. The test tells which block to add,
// of which example is what stands behind the labels. It needs mu.
func (m *Mocks) missingMock(object, request, example string) error {
	block := fmt.Sprintf("mock %q %q %s", object, request, example)
	if !slices.Contains(m.missing, block) { // one answers every call
		m.missing = append(m.missing, block)
	}
	return &scripting.HostError{Code: scripting.Unavailable, Message: strings.TrimSpace("no mock for " + object + " " + request)}
}

// answer answers a request under an http grant. A request without a mock
// fails, and the test tells which mock to add.
func (m *Mocks) httpResponse(name string, payload []byte) ([]byte, error) {
	var request struct {
		Method string `json:"method"`
		URL    string `json:"url"`
	}
	if err := json.Unmarshal(payload, &request); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the request cannot be read"}
	}
	target := request.URL
	if parsed, err := url.Parse(request.URL); err == nil {
		target = parsed.RequestURI()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, err := m.reply("http."+name, request.Method+" "+target, "{\n  json = {}\n}")
	if err != nil {
		return nil, err
	}
	return encodeMockResponse(mock, request.URL)
}

func (m Mock) mockError() error {
	return &scripting.HostError{Code: m.Error, Message: m.Request + ": the mock refuses"}
}

func encodeMockResponse(mock Mock, target string) ([]byte, error) {
	headers := make(map[string]string, len(mock.Headers))
	for name, value := range mock.Headers {
		headers[strings.ToLower(name)] = value
	}
	answer := map[string]any{"status": mock.Status, "headers": headers, "url": target}
	if utf8.Valid(mock.Body) {
		answer["body"] = string(mock.Body)
	} else {
		answer["body64"] = base64.StdEncoding.EncodeToString(mock.Body)
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encode mock: %w", err)
	}
	return encoded, nil
}

// Asked answers one thing that the client of a test is asked, by its key and
// its MCP method. It returns false when no mock does; the test tells then which
// one to add, with the example for its body, or with that of the method where it is "".
func (m *Mocks) AnswerInput(key, method, example string) (answer json.RawMessage, ok bool) {
	object := map[string]string{"elicitation/create": "elicit", "sampling/createMessage": "sample", "roots/list": "roots"}[method]
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, ok := m.find(object, key)
	if !ok {
		example = cmp.Or(example, map[string]string{"elicit": "json = {}", "sample": `text = ""`, "roots": "json = []"}[object])
		_ = m.missingMock(object, key, "{\n  "+example+"\n}") // the test tells it; nobody is refused here
		return nil, false
	}
	return inputResponse(object, mock.Body), true
}

// askAnswer returns the answer that a mock stands for: the whole of it, or what
// matters in it.
func inputResponse(object string, body []byte) json.RawMessage {
	var members map[string]json.RawMessage
	whole := json.Unmarshal(body, &members) == nil
	switch {
	case object == "elicit" && members["action"] == nil:
		return json.RawMessage(fmt.Sprintf(`{"action":"accept","content":%s}`, body))
	case object == "sample" && (!whole || members["content"] == nil):
		text, _ := json.Marshal(string(body)) // a string always encodes
		return json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":{"type":"text","text":%s},"model":"mock","stopReason":"endTurn"}`, text))
	case object == "roots" && !whole:
		return json.RawMessage(fmt.Sprintf(`{"roots":%s}`, body))
	}
	return body
}

// CallTool answers for a tool. A test is of one tool: what that calls runs in
// tests of its own. The error is a [scripting.HostError].
func (m *Mocks) CallTool(name string) ([]byte, error) { return m.value("tools", name) }

// value answers with what a mock holds, whatever the arguments.
func (m *Mocks) value(object, request string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, err := m.reply(object, request, "{\n  json = {}\n}")
	return mock.Body, err
}
