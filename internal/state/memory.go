package state

import "bytes"

// memoryRows are rows that end with the process.
type memoryRows struct {
	records [kinds]map[string]Record
	memoryPairs
}

func newMemoryRows() *memoryRows {
	m := &memoryRows{memoryPairs: memoryPairs{}}
	for k := range m.records {
		m.records[k] = map[string]Record{}
	}
	return m
}

func (m *memoryRows) Each(yield func(Entry)) error {
	for _, records := range m.records {
		for _, r := range records {
			yield(r.Entry)
		}
	}
	return nil
}

func (m *memoryRows) Get(k Kind, id string) ([]byte, error) { return m.records[k][id].Data, nil }

func (m *memoryRows) Put(records ...Record) error {
	for _, r := range records {
		r.Data = bytes.Clone(r.Data)
		m.records[r.Kind][r.ID] = r
	}
	return nil
}

func (m *memoryRows) Drop(k Kind, ids []string) error {
	for _, id := range ids {
		delete(m.records[k], id)
	}
	return nil
}

func (m *memoryRows) IsFull(error) bool { return false }

func (m *memoryRows) Close() error { return nil }
