package state

import (
	"bytes"
	"slices"
)

// memoryRows are rows in memory.
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

// memoryPairs are pairs in memory, by space and key.
type memoryPairs map[string]map[string]StoredPair

func (m memoryPairs) Pair(space, key string) (StoredPair, error) { return m[space][key], nil }

func (m memoryPairs) PutPair(space, key string, p StoredPair) error {
	if m[space] == nil {
		m[space] = map[string]StoredPair{}
	}
	p.Value = bytes.Clone(p.Value)
	m[space][key] = p
	return nil
}

func (m memoryPairs) DropPair(space, key string) error {
	delete(m[space], key)
	if len(m[space]) == 0 {
		delete(m, space)
	}
	return nil
}

func (m memoryPairs) PairKeys(space, from, end string, now int64, limit int) ([]string, error) {
	var keys []string
	for key, p := range m[space] {
		if key < from || key >= end || p.Expires <= now || len(keys) == limit && key > keys[limit-1] {
			continue
		}
		i, _ := slices.BinarySearch(keys, key)
		keys = slices.Insert(keys, i, key)
		keys = keys[:min(len(keys), limit)]
	}
	return keys, nil
}

func (m memoryPairs) Soonest() (int64, error) {
	first := int64(never)
	for _, pairs := range m {
		for _, p := range pairs {
			first = min(first, p.Expires)
		}
	}
	return first, nil
}

func (m memoryPairs) DropExpired(space string, now int64, limit int) (map[string]Usage, error) {
	freed := map[string]Usage{}
	for name, pairs := range m {
		if space != "" && space != name {
			continue
		}
		for key, p := range pairs {
			if p.Expires > now || limit == 0 {
				continue
			}
			limit--
			u := freed[name]
			freed[name] = Usage{u.Count + 1, u.Bytes + p.Size(key)}
			delete(pairs, key)
		}
		if len(pairs) == 0 {
			delete(m, name)
		}
	}
	return freed, nil
}

func (m memoryPairs) EachSpace(yield func(space string, u Usage)) error {
	for name, pairs := range m {
		var all Usage
		for key, p := range pairs {
			all = Usage{all.Count + 1, all.Bytes + p.Size(key)}
		}
		yield(name, all)
	}
	return nil
}
