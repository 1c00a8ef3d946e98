package host

import (
	"fmt"

	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/scripting"
)

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
	case !ok:
		m.missing = append(m.missing, fmt.Sprintf("mock %q %q {\n  json = %s\n}", object, line, exampleRows(method)))
		return nil, &scripting.HostError{Code: scripting.Unavailable, Message: "no mock for " + line}
	case mock.Error != "":
		return nil, mock.refusal()
	}
	return sqldb.Answer(d.SQL, request, mock.Body)
}

func exampleRows(method string) string {
	if method == "exec" {
		return "{ changes = 1 }"
	}
	return "[]"
}
