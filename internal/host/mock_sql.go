package host

import "github.com/mcpd/mcpd/internal/host/sqldb"

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
		return nil, m.lacking(object, line, "{\n  json = "+exampleRows(method)+"\n}")
	case mock.Error != "":
		return nil, mock.refusal()
	}
	return sqldb.Mocked(d.SQL, request, mock.Body)
}

func exampleRows(method string) string {
	if method == "exec" {
		return "{ changes = 1 }"
	}
	return "[]"
}
