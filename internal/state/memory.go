package state

import "bytes"

// memoryRows are rows that end with the process.
type memoryRows struct {
	records [kinds]map[string]record
	memoryPairs
}

func newMemoryRows() *memoryRows {
	m := &memoryRows{memoryPairs: memoryPairs{}}
	for k := range m.records {
		m.records[k] = map[string]record{}
	}
	return m
}

func (m *memoryRows) each(yield func(entry)) error {
	for _, records := range m.records {
		for _, r := range records {
			yield(r.entry)
		}
	}
	return nil
}

func (m *memoryRows) get(k kind, id string) ([]byte, error) { return m.records[k][id].data, nil }

func (m *memoryRows) put(records ...record) error {
	for _, r := range records {
		r.data = bytes.Clone(r.data)
		m.records[r.kind][r.id] = r
	}
	return nil
}

func (m *memoryRows) drop(k kind, ids []string) error {
	for _, id := range ids {
		delete(m.records[k], id)
	}
	return nil
}

func (m *memoryRows) close() error { return nil }
