package host

import (
	"fmt"

	"github.com/mcpd/mcpd/scripting"
)

// callTool answers for a tool. A test is of one tool: what that calls runs in
// tests of its own.
func (m *Mocks) callTool(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, ok := m.find("tools", name)
	switch {
	case !ok:
		m.missing = append(m.missing, fmt.Sprintf("mock \"tools\" %q {\n  json = {}\n}", name))
		return nil, &scripting.HostError{Code: scripting.Unavailable, Message: "no mock for tools " + name}
	case mock.Error != "":
		return nil, mock.refusal()
	}
	return mock.Body, nil
}
