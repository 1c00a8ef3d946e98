package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/host/execs"
	"github.com/mcpd/mcpd/internal/host/files"
	"github.com/mcpd/mcpd/internal/host/kv"
	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// variable returns the mocked value of an environment variable; without a mock it is not set.
func (m *Mocks) variable(name string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, ok := m.lookup("env", name)
	return string(mock.Body), ok
}

// secret returns the mocked value of a secret, never the real one.
func (m *Mocks) secret(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, ok := m.lookup("secrets", name)
	switch {
	case !ok:
		return nil, m.missingMock("secrets", name, `{ text = "…" }`)
	case mock.Error != "":
		return nil, mock.mockError()
	}
	return encodeSecret(name, string(mock.Body)), nil
}

// file answers a file operation. It makes the checks of the broker that need no disk access.
func (m *Mocks) file(folder *files.GrantedRoot, method string, payload []byte) ([]byte, error) {
	request, err := folder.Parse(method, payload)
	if err != nil {
		return nil, err
	}
	object, line := "fs."+folder.Grant.Name, method+" "+request.Path
	m.mu.Lock()
	defer m.mu.Unlock()
	content, writes := request.Content()
	mock, err := m.reply(object, line, example(method, content))
	switch {
	case err != nil:
		return nil, err
	case writes && mock.Body != nil && !bytes.Equal(mock.Body, content):
		m.missing = append(m.missing, fmt.Sprintf("mock %q %q %s\ninstead of the mock that expects other content", object, line, example(method, content)))
		return nil, &scripting.HostError{Code: scripting.Unavailable, Message: "no mock matches the content written to " + request.Path}
	}
	return folder.MockAnswer(request, mock.Body)
}

// example returns the body of a mock block that would answer.
func example(method string, written []byte) string {
	switch method {
	case "list":
		return "{ json = [\"a.txt\"] }"
	case "stat":
		return "{\n  json = { size = 1 }\n}"
	case "remove":
		return "{}"
	case "writeText", "writeBytes":
		return "{ text = " + strconv.Quote(string(written)) + " }"
	}
	return `{ text = "" }`
}

// execute answers for a program. It makes the checks of the broker.
func (m *Mocks) execute(p execs.Program, payload []byte) ([]byte, error) {
	arguments, err := p.Parse(payload)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, err := m.reply("exec."+p.Name, commandLine(arguments), `{ text = "" }`)
	if err != nil {
		return nil, err
	}
	var end struct {
		Code           int
		Stdout, Stderr string
	}
	if err := json.Unmarshal(mock.Body, &end); err != nil {
		return nil, fmt.Errorf("decode mock: %w", err)
	}
	return execs.EncodeResult(end.Code, []byte(end.Stdout), []byte(end.Stderr)), nil
}

// commandLine formats arguments on one line, uniquely: it quotes arguments that are empty, or
// hold blanks or quotes.
func commandLine(arguments []string) string {
	words := make([]string, len(arguments))
	for i, a := range arguments {
		words[i] = a
		if quoted := strconv.Quote(a); a == "" || quoted != `"`+a+`"` || strings.ContainsAny(a, " '") {
			words[i] = quoted
		}
	}
	return strings.Join(words, " ")
}

// mockKV holds the kv values of one test in its own store, filled from the mocks.
type mockKV struct {
	broker *kv.Broker
	// filled are the spaces that were filled from the mocks.
	filled map[string]bool
}

func (m *Mocks) kvOperation(ctx context.Context, g grant.KV, space, op string, payload []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kv.broker == nil {
		store := state.NewMemory(state.Options{})
		m.kv = mockKV{
			broker: kv.New(func() (state.Store, error) { return store, nil }, slog.New(slog.DiscardHandler)),
			filled: map[string]bool{},
		}
	}
	if !m.kv.filled[space] {
		m.kv.filled[space] = true
		if err := m.fillSpace(ctx, g, space); err != nil {
			return nil, err
		}
	}
	m.markUsed(g, payload)
	return m.kv.broker.Do(ctx, g, space, op, payload)
}

// fillSpace stores the mocked values in a space. The caller holds mu.
func (m *Mocks) fillSpace(ctx context.Context, g grant.KV, space string) error {
	for _, mock := range m.mocks {
		if mock.Object != kv.Prefix+g.Name {
			continue
		}
		payload, err := json.Marshal(map[string]any{"key": mock.Request, "value": json.RawMessage(mock.Body)})
		if err != nil {
			return err
		}
		if _, err := m.kv.broker.Do(ctx, g, space, kv.Prefix+"put", payload); err != nil {
			return err
		}
	}
	return nil
}

// markUsed marks the mocks that an operation uses: by key, or by prefix for list. The caller
// holds mu.
func (m *Mocks) markUsed(g grant.KV, payload []byte) {
	var asked struct {
		Key    *string `json:"key"`
		Prefix string  `json:"prefix"`
	}
	if json.Unmarshal(payload, &asked) != nil {
		return
	}
	for i, mock := range m.mocks {
		listed := asked.Key == nil && strings.HasPrefix(mock.Request, asked.Prefix)
		if mock.Object == kv.Prefix+g.Name && (listed || asked.Key != nil && mock.Request == *asked.Key) {
			m.used[i] = true
		}
	}
}

// database answers a database operation. It makes the checks of the broker that need no
// database.
func (m *Mocks) database(d sqldb.Database, method string, payload []byte) ([]byte, error) {
	request, err := d.Parse(method, payload)
	if err != nil {
		return nil, err
	}
	object, line := "sql."+d.Name, request.String()
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, ok := m.find(object, line)
	switch {
	case !ok && method == "open":
		// A file without a mock exists.
		return []byte("{}"), nil
	case !ok && method == "exec":
		return nil, m.missingMock(object, line, "{\n  json = { changes = 1 }\n}")
	case !ok:
		return nil, m.missingMock(object, line, "{\n  json = []\n}")
	case mock.Error != "":
		return nil, mock.mockError()
	}
	return sqldb.MockAnswer(d.SQL, request, mock.Body)
}
