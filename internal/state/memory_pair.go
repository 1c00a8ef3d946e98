package state

import (
	"bytes"
	"slices"
)

// memoryPairs are pairs that end with the process, by their spaces and keys.
type memoryPairs map[string]map[string]pair

func (m memoryPairs) pair(space, key string) (pair, error) { return m[space][key], nil }

func (m memoryPairs) putPair(space, key string, p pair) error {
	if m[space] == nil {
		m[space] = map[string]pair{}
	}
	p.value = bytes.Clone(p.value)
	m[space][key] = p
	return nil
}

func (m memoryPairs) dropPair(space, key string) error {
	delete(m[space], key)
	if len(m[space]) == 0 {
		delete(m, space)
	}
	return nil
}

func (m memoryPairs) pairKeys(space, from, end string, now int64, most int) ([]string, error) {
	var keys []string
	for key, p := range m[space] {
		if key < from || key >= end || p.expires <= now || len(keys) == most && key > keys[most-1] {
			continue
		}
		i, _ := slices.BinarySearch(keys, key)
		keys = slices.Insert(keys, i, key)
		keys = keys[:min(len(keys), most)]
	}
	return keys, nil
}

func (m memoryPairs) soonest() (int64, error) {
	first := int64(never)
	for _, pairs := range m {
		for _, p := range pairs {
			first = min(first, p.expires)
		}
	}
	return first, nil
}

func (m memoryPairs) dropExpired(space string, now int64, most int) (map[string]usage, error) {
	freed := map[string]usage{}
	for name, pairs := range m {
		if space != "" && space != name {
			continue
		}
		for key, p := range pairs {
			if p.expires > now || most == 0 {
				continue
			}
			most--
			u := freed[name]
			freed[name] = usage{u.count + 1, u.bytes + p.size(key)}
			delete(pairs, key)
		}
		if len(pairs) == 0 {
			delete(m, name)
		}
	}
	return freed, nil
}

func (m memoryPairs) eachSpace(yield func(space string, u usage)) error {
	for name, pairs := range m {
		var all usage
		for key, p := range pairs {
			all = usage{all.count + 1, all.bytes + p.size(key)}
		}
		yield(name, all)
	}
	return nil
}
