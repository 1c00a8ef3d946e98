package host

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/host/execs"
	"github.com/mcpd/mcpd/internal/host/kv"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/scripting"
)

// Recorded is the mock that would answer a recorded host call as the host did. Its fields are as in
// [Mock]; JSON and Text are the possible bodies, and both are nil without one.
type Recorded struct {
	Object, Request string
	Status          int
	Headers         map[string]string
	JSON            json.RawMessage
	Text            *string
	Error           string
}

// CallRecorder is an emitter of a call of a tool whose host calls are recorded. HostRecorder gets the
// arguments of the call, with defaults, before its script runs. The tools that the script calls are
// not recorded.
type CallRecorder interface {
	HostRecorder(input json.RawMessage) *Recorder
}

// maxRecorded bounds what a recorder keeps, in bytes: no test file is longer. recordedSize is the size
// of an entry without its texts.
const (
	maxRecorded  = 1 << 20
	recordedSize = 64
)

// Recorder records the host calls of a script as mocks. The mocks of secrets and environment
// variables have placeholders. Other mocks may contain their values, which the caller must hide. It
// is safe for concurrent use.
type Recorder struct {
	mu sync.Mutex
	// size is the size of everything below. If it is over maxRecorded, nothing is kept.
	size  int
	mocks []Recorded
	// answers are the responses of the client to input requests.
	answers []Recorded
	// keys are the keys of kv grants whose value at the start of the call is known, or was replaced
	// unread.
	keys  map[string]bool
	notes []string
	// calls are the calls in the form of [Mocks.Calls]; "" for a call that a test does not count.
	calls []string
	// called are all answers of called tools, and variables the values of granted variables.
	called    []Recorded
	variables []string
}

// Called returns all answers of called tools, also those that have no mock.
func (r *Recorder) Called() []Recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.called)
}

// Variables returns the values of granted environment variables, so that the caller can hide
// them.
func (r *Recorder) Variables() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.variables)
}

// IsFull reports whether the calls were too large to record.
func (r *Recorder) IsFull() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size > maxRecorded
}

// keeps reports whether an entry with n bytes of text fits. If not, the recorder drops everything.
func (r *Recorder) keeps(n int) bool {
	if r.size > maxRecorded {
		return false
	}
	if r.size += n + recordedSize; r.size <= maxRecorded {
		return true
	}
	r.mocks, r.answers, r.keys, r.notes, r.calls, r.called, r.variables = nil, nil, nil, nil, nil, nil, nil
	return false
}

// bytes returns the size of the texts of a mock.
func (m *Recorded) bytes() int {
	n := len(m.Object) + len(m.Request) + len(m.JSON) + len(m.Error)
	for name, value := range m.Headers {
		n += len(name) + len(value)
	}
	if m.Text != nil {
		n += len(*m.Text)
	}
	return n
}

// Mocks returns the mocks of the recorded calls, in the order of the first calls, and then the mocks of
// the responses of the client.
func (r *Recorder) Mocks() []Recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.mocks, r.answers)
}

// Notes returns what a mock cannot repeat, for the author of the test.
func (r *Recorder) Notes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notes)
}

// Calls returns the host calls so far, in the order of their starts, as [Mocks.Calls] would in a
// test.
func (r *Recorder) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.calls), func(c string) bool { return c == "" })
}

// AddAnswer adds the response of the client to an input request. It replaces an earlier response: the
// client is asked again after an incomplete one.
func (r *Recorder) AddAnswer(answer Recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.keeps(2 * answer.bytes()) {
		return
	}
	at := slices.IndexFunc(r.answers, func(a Recorded) bool { return a.Object == answer.Object && a.Request == answer.Request })
	if at >= 0 {
		r.answers[at] = answer
		return
	}
	r.calls, r.answers = append(r.calls, answer.Object+" "+answer.Request), append(r.answers, answer)
}

// begin records that an operation starts, and returns its number.
func (r *Recorder) begin(h *RunHost, op string, payload []byte) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var p grantPayload
	one := ""
	group, method, _ := strings.Cut(op, ".")
	if h.Grants != nil && !scripting.IsNotification(op) && group != scripting.OpSecret && json.Unmarshal(payload, &p) == nil {
		if mock, ok := r.label(h, p, group, method, payload); ok {
			one = strings.TrimSuffix(mock.Object+" "+mock.Request, " ")
		}
	}
	if r.keeps(len(one)) {
		r.calls = append(r.calls, one)
	}
	return len(r.calls) - 1
}

// end records the answer or the error of an operation with a number.
func (r *Recorder) end(n int, h *RunHost, op string, payload, answer []byte, err error) {
	if h.Grants == nil || scripting.IsNotification(op) || errors.Is(err, scripting.ErrSuspended) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var p grantPayload
	if r.size > maxRecorded || len(answer) > maxRecorded && !r.keeps(len(answer)) || json.Unmarshal(payload, &p) != nil {
		return
	}
	group, method, _ := strings.Cut(op, ".")
	switch group {
	case scripting.OpEnv:
		r.environment(answer)
		return
	case "kv":
		r.pair(p.Grant, op, payload, answer, err)
		return
	}
	mock, ok := r.label(h, p, group, method, payload)
	if !ok {
		return
	}
	if err != nil {
		var refused *scripting.HostError
		if mock.Error = scripting.Unavailable; errors.As(err, &refused) {
			mock.Error = refused.Code
		}
		switch mock.Error { // a test refuses these itself, or the script never sees them
		case scripting.NotGranted, scripting.OutsideRoot, scripting.Invalid, scripting.Consent:
			r.calls[n] = ""
			return
		}
	} else if !r.body(&mock, group, method, answer) {
		return
	}
	if group == scripting.OpCall && err == nil && r.keeps(mock.bytes()) {
		r.called = append(r.called, mock)
	}
	r.add(mock)
}

// add adds a mock. A mock answers all calls with its label, so that a second answer is lost.
func (r *Recorder) add(mock Recorded) {
	for _, known := range r.mocks {
		if known.Object != mock.Object || known.Request != mock.Request {
			continue
		}
		first, _ := json.Marshal(known) // plain data always encodes
		second, _ := json.Marshal(mock)
		if string(first) != string(second) {
			r.note("%s %s was answered differently each time, and a mock has one answer: the first", mock.Object, mock.Request)
		}
		return
	}
	if r.keeps(mock.bytes()) {
		r.mocks = append(r.mocks, mock)
	}
}

func (r *Recorder) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.notes, text) && r.keeps(len(text)) {
		r.notes = append(r.notes, text)
	}
}

// label returns a mock with the labels for an operation. ok is false if the operation has no mock.
func (r *Recorder) label(h *RunHost, p grantPayload, group, method string, payload []byte) (mock Recorded, ok bool) {
	switch group {
	case "http":
		var request struct{ Method, URL string }
		_ = json.Unmarshal(payload, &request) // it was sent
		target := request.URL
		if parsed, err := url.Parse(request.URL); err == nil {
			target = parsed.RequestURI()
		}
		return Recorded{Object: "http." + p.Grant, Request: request.Method + " " + target}, true
	case "fs":
		for _, folder := range h.folders {
			if folder.Grant.Name == p.Grant {
				request, err := folder.Parse(method, payload)
				if err != nil {
					return mock, false
				}
				mock = Recorded{Object: "fs." + p.Grant, Request: method + " " + request.Path}
				if content, writes := request.Content(); writes && utf8.Valid(content) {
					text := string(content)
					mock.Text = &text // the content that the test expects
				}
				return mock, true
			}
		}
	case "exec":
		if i := slices.IndexFunc(h.Exec, func(e execs.Program) bool { return e.Name == p.Grant }); i >= 0 {
			arguments, err := h.Exec[i].Parse(payload)
			return Recorded{Object: "exec." + p.Grant, Request: commandLine(arguments)}, err == nil
		}
	case "sql":
		if i := slices.IndexFunc(h.Databases, func(d sqldb.Database) bool { return d.Name == p.Grant }); i >= 0 {
			request, err := h.Databases[i].Parse(method, payload)
			if err != nil {
				return mock, false
			}
			return Recorded{Object: "sql." + p.Grant, Request: request.String()}, true
		}
	case scripting.OpCall:
		return Recorded{Object: "tools", Request: p.Tool}, true
	case scripting.OpModule:
		return Recorded{Object: "modules." + p.Module, Request: p.Function}, true
	case scripting.OpSecret:
		var asked secretPayload
		err := json.Unmarshal(payload, &asked)
		return Recorded{Object: "secrets", Request: asked.Name}, err == nil
	}
	return mock, false
}

// body sets the body of a mock to an answer. It returns false if the operation needs no mock, or
// none can answer so.
func (r *Recorder) body(mock *Recorded, group, method string, answer []byte) bool {
	switch group {
	case "http":
		return r.response(mock, answer)
	case "fs":
		return r.file(mock, method, answer)
	case "exec":
		return r.program(mock, answer)
	case "sql":
		return r.rows(mock, method, answer)
	case scripting.OpSecret:
		text := "recorded " + mock.Request
		mock.Text = &text
	default:
		mock.JSON = answer
	}
	return true
}

// recordedHeaders are the headers of responses that are recorded. Others may hold credentials.
var recordedHeaders = []string{"content-type", "content-language", "etag", "last-modified", "link", "location", "retry-after"}

func (r *Recorder) response(mock *Recorded, answer []byte) bool {
	var got struct {
		Status  int
		Headers map[string]string
		Body    string
		Body64  *string
	}
	if json.Unmarshal(answer, &got) != nil {
		return false
	}
	if got.Body64 != nil {
		r.note("the response to %s %s is not text, which a mock cannot hold", mock.Object, mock.Request)
		return false
	}
	mock.Status = got.Status
	for _, name := range recordedHeaders {
		if value, ok := got.Headers[name]; ok {
			if mock.Headers == nil {
				mock.Headers = map[string]string{}
			}
			mock.Headers[name] = value
		}
	}
	switch body := []byte(got.Body); {
	case got.Body == "":
	case json.Valid(body) && strings.Contains(got.Headers["content-type"], "json"):
		mock.JSON = body
	default:
		mock.Text = &got.Body
	}
	return true
}

func (r *Recorder) file(mock *Recorded, method string, answer []byte) bool {
	var got struct {
		Text    *string
		Data64  string
		Lines   []string
		Entries json.RawMessage
	}
	if json.Unmarshal(answer, &got) != nil {
		return false
	}
	switch method {
	case "readText":
		mock.Text = got.Text
	case "readBytes":
		data, err := base64.StdEncoding.DecodeString(got.Data64)
		if err != nil || !utf8.Valid(data) {
			r.note("the content for %s %s is not text, which a mock cannot hold", mock.Object, mock.Request)
			return false
		}
		text := string(data)
		mock.Text = &text
	case "lines":
		text := strings.Join(got.Lines, "\n")
		if len(got.Lines) > 0 {
			text += "\n"
		}
		mock.Text = &text
	case "list":
		mock.JSON = got.Entries
	case "stat":
		mock.JSON = answer
	}
	return true
}

func (r *Recorder) program(mock *Recorded, answer []byte) bool {
	var got struct {
		Code     int     `json:"code"`
		Stdout   string  `json:"stdout"`
		Stderr   string  `json:"stderr"`
		Stdout64 *string `json:"stdout64,omitempty"`
		Stderr64 *string `json:"stderr64,omitempty"`
	}
	if json.Unmarshal(answer, &got) != nil {
		return false
	}
	if got.Stdout64 != nil || got.Stderr64 != nil {
		r.note("the output for %s %s is not text, which a mock cannot hold", mock.Object, mock.Request)
		return false
	}
	mock.JSON, _ = json.Marshal(got) // plain data always encodes
	return true
}

func (r *Recorder) rows(mock *Recorded, method string, answer []byte) bool {
	switch method {
	case "open":
		return false // without a mock the file exists
	case "exec":
		mock.JSON = answer
		return true
	}
	var got struct {
		Columns []string
		Rows    [][]json.RawMessage
	}
	if json.Unmarshal(answer, &got) != nil {
		return false
	}
	var list strings.Builder
	list.WriteString("[")
	for i, row := range got.Rows {
		if i > 0 {
			list.WriteString(",")
		}
		list.WriteString("{")
		for j, value := range row[:min(len(row), len(got.Columns))] {
			if j > 0 {
				list.WriteString(",")
			}
			name, _ := json.Marshal(got.Columns[j]) // strings always encode
			list.Write(name)
			list.WriteString(":")
			list.Write(value)
		}
		list.WriteString("}")
	}
	list.WriteString("]")
	mock.JSON = json.RawMessage(list.String())
	return true
}

// environment records that granted variables are set, without their values.
func (r *Recorder) environment(answer []byte) {
	var values map[string]string
	if json.Unmarshal(answer, &values) != nil {
		return
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text := "recorded " + name
		if r.keeps(len(values[name])) {
			r.variables = append(r.variables, values[name])
		}
		r.add(Recorded{Object: "env", Request: name, Text: &text})
	}
}

// pair records the value that a key had at the start of the call, from the first operation on it.
func (r *Recorder) pair(grant, op string, payload, answer []byte, err error) {
	var asked struct {
		Key      string          `json:"key"`
		Expected json.RawMessage `json:"expected"`
		IfAbsent bool            `json:"if_absent"`
		By       *int64          `json:"by"`
	}
	var got struct {
		Value json.RawMessage
		Done  bool
		Keys  []string
	}
	if err != nil || json.Unmarshal(payload, &asked) != nil || json.Unmarshal(answer, &got) != nil {
		return
	}
	object := kv.Prefix + grant
	first := func(key string) bool {
		known := r.keys[object+" "+key]
		if known || !r.keeps(len(object)+len(key)) {
			return false
		}
		if r.keys == nil {
			r.keys = map[string]bool{}
		}
		r.keys[object+" "+key] = true
		return true
	}
	stored := func(key string, value json.RawMessage) {
		r.add(Recorded{Object: object, Request: key, JSON: value})
	}
	switch method := strings.TrimPrefix(op, kv.Prefix); {
	case method == "list":
		for _, key := range got.Keys {
			if first(key) {
				r.keys[object+" "+key] = false // a later get knows the value
				if !slices.ContainsFunc(r.mocks, func(m Recorded) bool { return m.Object == object && m.Request == key }) {
					stored(key, json.RawMessage("true")) // any value
				}
			}
		}
	case !first(asked.Key):
	case method == "get" && got.Value != nil:
		r.mocks = slices.DeleteFunc(r.mocks, func(m Recorded) bool { return m.Object == object && m.Request == asked.Key })
		stored(asked.Key, got.Value)
	case method == "cas" && got.Done && asked.Expected != nil && string(asked.Expected) != "null":
		stored(asked.Key, asked.Expected)
	case method == "put" && asked.IfAbsent && !got.Done:
		stored(asked.Key, json.RawMessage("true")) // any value
	case method == "incr":
		var after int64
		by := int64(1)
		if asked.By != nil {
			by = *asked.By
		}
		if json.Unmarshal(got.Value, &after) == nil && after != by {
			stored(asked.Key, json.RawMessage(fmt.Sprint(after-by)))
		}
	}
}

// NewSensitive returns a matcher that finds values in the forms that are searched for secrets.
func NewSensitive(values []string) redact.Net { return secrets.NewSensitive(values) }
