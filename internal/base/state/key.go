package state

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

// Key seals request states. It prints only its id.
type Key struct {
	// ID is in clear text in everything that the key has sealed.
	ID     uint32   `json:"-"`
	Secret [32]byte `json:"-"`
}

// Format never prints the secret.
func (k Key) Format(out fmt.State, _ rune) { fmt.Fprintf(out, "[sealing key %d]", k.ID) }

// A storedKey is a key with its creation time.
type storedKey struct {
	Key
	made time.Time
}

// keyLife is the time that a key seals.
const keyLife = 24 * time.Hour

func (s *store) SealingKey() (Key, error) {
	unlock, err := s.open()
	if err != nil {
		return Key{}, err
	}
	defer unlock()
	var newest storedKey
	if len(s.keys) > 0 {
		newest = s.keys[len(s.keys)-1]
		if age := s.now().Sub(newest.made); age >= 0 && age < keyLife {
			return newest.Key, nil
		}
	}
	return s.makeKey(newest.ID + 1)
}

// makeKey creates the key to seal with from now on; mu is held.
func (s *store) makeKey(id uint32) (Key, error) {
	k := storedKey{Key: Key{ID: id}, made: s.now()}
	rand.Read(k.Secret[:])
	var data encoder
	data.fixed(k.Secret[:])
	data.millis(k.made)
	if err := s.write(Entry{Kind: KeyKind, ID: keyName(id), Expires: math.MaxInt64}, data); err != nil {
		return Key{}, err
	}
	s.keys = append(s.keys, k)
	return k.Key, nil
}

func (s *store) KeyByID(id uint32) (Key, error) {
	unlock, err := s.open()
	if err != nil {
		return Key{}, err
	}
	defer unlock()
	for _, k := range s.keys {
		if k.ID == id {
			return k.Key, nil
		}
	}
	return Key{}, ErrTampered
}

func keyName(id uint32) string { return string(binary.BigEndian.AppendUint32(nil, id)) }

func (s *store) loadKeys() error {
	for id, e := range s.ledgers[KeyKind].entries {
		data, err := s.read(e)
		if err != nil {
			return err
		}
		if len(id) != 4 {
			return fmt.Errorf("read a key: %w", errMalformed)
		}
		k := storedKey{Key: Key{ID: binary.BigEndian.Uint32([]byte(id))}}
		d := decoder{data: data}
		d.fixed(k.Secret[:])
		k.made = d.millis()
		if err := d.end(); err != nil {
			return fmt.Errorf("read a key: %w", err)
		}
		s.keys = append(s.keys, k)
	}
	slices.SortFunc(s.keys, func(a, b storedKey) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}

// dropKeys removes expired keys: those with a successor that has sealed for longer than
// the life of a request state; mu is held.
func (s *store) dropKeys() error {
	old := 0
	for old+1 < len(s.keys) && s.now().Sub(s.keys[old+1].made) > MaxLife {
		old++
	}
	names := make([]string, old)
	for i, k := range s.keys[:old] {
		names[i] = keyName(k.ID)
	}
	if err := s.remove(KeyKind, names); err != nil {
		return err
	}
	s.keys = slices.Clone(s.keys[old:])
	return nil
}
