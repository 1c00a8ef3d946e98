package host

import (
	"fmt"
	"slices"

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
		wanted := fmt.Sprintf("mock \"tools\" %q {\n  json = {}\n}", name)
		if !slices.Contains(m.missing, wanted) { // one answers every call
			m.missing = append(m.missing, wanted)
		}
		return nil, &scripting.HostError{Code: scripting.Unavailable, Message: "no mock for tools " + name}
	case mock.Error != "":
		return nil, mock.refusal()
	}
	return mock.Body, nil
}
