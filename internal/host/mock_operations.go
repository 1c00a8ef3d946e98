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

// variable returns a variable of the environment of a test: what a mock says,
// and nothing without one.
func (m *Mocks) variable(name string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, ok := m.lookup("env", name)
	return string(mock.Body), ok
}

// secret answers what a body reads in a test: what a mock says, and never what
// the secret holds.
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

// file answers an operation on files. What the broker would refuse without
// looking at the disk is refused here, too.
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
		m.missing = append(m.missing, fmt.Sprintf("mock %q %q %s\nin the place of the one that expects something else to be written", object, line, example(method, content)))
		return nil, &scripting.HostError{Code: scripting.Unavailable, Message: "no mock for what is written to " + request.Path}
	}
	return folder.MockAnswer(request, mock.Body)
}

// example is the rest of a mock block that would answer.
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

// execute answers for a program. What the broker would refuse is refused here, too.
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

// commandLine writes arguments in one line, of which no two are alike: those that
// are empty, or hold blanks or what could not be told from quotes, are quoted.
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

// kept are the values of one test, in a store of its own. Mocks say what it
// holds at the beginning.
type mockKV struct {
	broker *kv.Broker
	// begun are the spaces that hold what the mocks say.
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

// begin keeps what the mocks say in a space; mu is held.
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

// useKeys notes which mocks an operation is of: those under its key, or those
// that it lists; mu is held.
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

// database answers an operation on a database. What the broker would refuse
// without a database is refused here, too.
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
		// A file that nobody says anything else of is there.
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
