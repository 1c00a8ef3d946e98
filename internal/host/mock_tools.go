package host

// CallTool answers for a tool. A test is of one tool: what that calls runs in
// tests of its own. The error is a [scripting.HostError].
func (m *Mocks) CallTool(name string) ([]byte, error) {
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
	mock, err := m.reply(object, request, "{\n  json = {}\n}")
	return mock.Body, err
}
