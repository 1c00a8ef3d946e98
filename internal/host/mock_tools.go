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
	return m.value("tools", name)
}

// module answers for a function of a module.
func (m *Mocks) module(name, function string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.value("modules."+name, function)
}

// value answers with what a mock holds, whatever the arguments; mu is held.
func (m *Mocks) value(object, request string) ([]byte, error) {
	mock, ok := m.find(object, request)
	switch {
	case !ok:
		wanted := fmt.Sprintf("mock %q %q {\n  json = {}\n}", object, request)
		if !slices.Contains(m.missing, wanted) { // one answers every call
			m.missing = append(m.missing, wanted)
		}
		return nil, &scripting.HostError{Code: scripting.Unavailable, Message: "no mock for " + object + " " + request}
	case mock.Error != "":
		return nil, mock.refusal()
	}
	return mock.Body, nil
}
