package host

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/mcpd/mcpd/internal/host/files"
	"github.com/mcpd/mcpd/scripting"
)

// variable returns a variable of the environment of a test: what a mock says,
// and nothing without one.
func (m *Mocks) variable(name string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, known := range m.known {
		if known.Object == "env" && known.Request == name {
			m.used[i] = true
			return string(known.Body), true
		}
	}
	return "", false
}

// secret answers what a body reads in a test: what a mock says, and never what
// the secret holds.
func (m *Mocks) secret(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.known, func(known Mock) bool { return known.Object == "secrets" && known.Request == name })
	if i < 0 {
		return nil, m.lacking("secrets", name, `{ text = "…" }`)
	}
	m.used[i] = true
	if mock := m.known[i]; mock.Error != "" {
		return nil, mock.refusal()
	}
	return encodeSecret(name, string(m.known[i].Body)), nil
}

// file answers an operation on files. What the broker would refuse without
// looking at the disk is refused here, too.
func (m *Mocks) file(folder *files.Folder, method string, payload []byte) ([]byte, error) {
	request, err := folder.Parse(method, payload)
	if err != nil {
		return nil, err
	}
	object, line := "fs."+folder.Grant.Name, method+" "+request.Path
	m.mu.Lock()
	defer m.mu.Unlock()
	content, writes := request.Written()
	mock, err := m.reply(object, line, example(method, content))
	switch {
	case err != nil:
		return nil, err
	case writes && mock.Body != nil && !bytes.Equal(mock.Body, content):
		m.missing = append(m.missing, fmt.Sprintf("mock %q %q %s\nin the place of the one that expects something else to be written", object, line, example(method, content)))
		return nil, &scripting.HostError{Code: scripting.Unavailable, Message: "no mock for what is written to " + request.Path}
	}
	return folder.Answer(request, mock.Body)
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
