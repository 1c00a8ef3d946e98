package apikey

import (
	"errors"
	"slices"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// Why a key proves nothing. They are for the operator: whoever sent it learns
// of no difference.
var (
	ErrUnknown = errors.New("there is no such key")
	ErrRevoked = errors.New("the key was revoked")
	ErrExpired = errors.New("the key has expired")
)

// Ring are the records of a file. It is immutable, and the zero Ring has none.
type Ring struct {
	records []Record
	keys    map[string]*held
}

// held is a record with what is made of it once.
type held struct {
	Record
	principal identity.Principal
}

// nobody is what a key of unknown id is compared with, so that the answer takes
// the same time.
var nobody = Record{Salt: make([]byte, saltBytes), Hash: make([]byte, 32)}

func newRing(records []Record) *Ring {
	r := &Ring{records: records, keys: make(map[string]*held, len(records))}
	for _, record := range records {
		r.keys[record.ID] = &held{record, record.who()}
	}
	return r
}

// Check returns whose a key is: [ErrUnknown], [ErrRevoked] or [ErrExpired]
// otherwise. What it returns is shared, and not to be changed.
func (r *Ring) Check(k Key, now time.Time) (identity.Principal, error) {
	h, known := r.keys[k.ID]
	if !known {
		nobody.opens(k.secret)
		return identity.Principal{}, ErrUnknown
	}
	if !h.opens(k.secret) {
		return identity.Principal{}, ErrUnknown
	}
	if err := h.ended(now); err != nil {
		return identity.Principal{}, err
	}
	return h.principal, nil
}

// Records returns a copy of the records, in the order of the file.
func (r *Ring) Records() []Record { return slices.Clone(r.records) }

// Since returns the records of keys that prove something now and did not in a ring of
// before, and of those that did and were revoked or taken out, in the order of the files.
// When a key expires is known from its record.
func (r *Ring) Since(before *Ring) (added, revoked []Record) {
	missing := func(all, from *Ring) (missing []Record) {
		for _, record := range all.records {
			other, known := from.keys[record.ID]
			if record.Revoked.IsZero() && (!known || !other.Revoked.IsZero()) {
				missing = append(missing, record)
			}
		}
		return missing
	}
	return missing(r, before), missing(before, r)
}

// Without returns the ring with some keys revoked. Ids that it does not have
// mean nothing.
func (r *Ring) Without(revoked []string, now time.Time) *Ring {
	records := r.Records()
	for i := range records {
		if slices.Contains(revoked, records[i].ID) && records[i].Revoked.IsZero() {
			records[i].Revoked = now
		}
	}
	return newRing(records)
}
