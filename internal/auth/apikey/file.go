package apikey

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/atomicfile"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// defaultFile is where mcpd key new writes to when nobody says where.
const defaultFile = "keys.json"

const (
	maxFile = 8 << 20  // bytes
	maxLine = 64 << 10 // bytes
)

// BrokenError says that a file of keys has mistakes.
type FileError struct {
	// Revoked are the ids that the readable lines revoke.
	Revoked []string
	err     error
}

// Error names the first mistake, by its line.
func (e *FileError) Error() string { return e.err.Error() }

// Unwrap returns the first mistake.
func (e *FileError) Unwrap() error { return e.err }

// Load reads a file of keys. A file that others may read or write is refused; one
// with mistakes is a [*BrokenError].
func Load(path string) (*KeySet, error) {
	text, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	ring, err := Decode(text)
	if err != nil {
		return nil, fmt.Errorf("read keys: %s: %w", path, err)
	}
	return ring, nil
}

// fileFlag is the flag that has mcpd key write to path, where it would not without.
func fileFlag(path string) string {
	switch path = filepath.ToSlash(filepath.Clean(path)); {
	case path == defaultFile:
		return ""
	case strings.ContainsAny(path, " \"$&;()"):
		return " --file '" + path + "'"
	}
	return " --file " + path
}

// read returns the text of a file that is its owner's alone.
func read(path string) ([]byte, error) {
	f, err := atomicfile.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; make one with mcpd key new NAME%s", err, fileFlag(path))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkOwner(path, info); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is longer than 8 MiB; remove keys that have ended", path)
	}
	return text, err
}

// Decode reads records, one a line. Mistakes are a [*BrokenError].
func Decode(text []byte) (*KeySet, error) {
	var broken FileError
	var records []Record
	seen := map[string]bool{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		r, err := decodeRecord(line)
		if err == nil && seen[r.ID] {
			err = errors.New("the id is that of a line above; remove one of the two")
		}
		if err != nil && broken.err == nil {
			broken.err = fmt.Errorf("line %d: %w", number, err)
		}
		if !r.Revoked.IsZero() {
			broken.Revoked = append(broken.Revoked, r.ID)
		}
		seen[r.ID] = true
		records = append(records, r)
	}
	if broken.err != nil {
		return nil, &broken
	}
	return newKeySet(records), nil
}

// decodeRecord reads one line. The record is what could be read of it where there
// is an error.
func decodeRecord(line []byte) (r Record, err error) {
	if err := jsonguard.Check(line, jsonguard.Limits{Bytes: maxLine, Depth: 2, Tokens: 4 * maxList}); err != nil {
		return Record{}, fmt.Errorf("read JSON: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, errors.New("a member has an unknown name or not its type")
	}
	return r, r.check()
}

// encodeAll writes the records as Decode reads them.
func encodeAll(records []Record) ([]byte, error) {
	var b bytes.Buffer
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encode key %s: %w", r.ID, err)
		}
		b.Write(append(line, '\n'))
	}
	if b.Len() > maxFile {
		return nil, errors.New("the keys would be longer than 8 MiB; remove some that have ended")
	}
	return b.Bytes(), nil
}

// Add makes a key and writes its record to a file, which is made when there is
// none. The key is returned once: nobody can read it out of the file. known is
// what the record says beside that; Created must be set.
func Add(path string, known Record) (Key, error) {
	k := New()
	err := editFile(path, func(records []Record) ([]Record, error) {
		r := NewRecord(k, known)
		if err := r.check(); err != nil {
			return nil, err
		}
		return append(records, r), nil
	})
	if err != nil {
		return Key{}, fmt.Errorf("add key: %w", err)
	}
	return k, nil
}

// Revoke revokes a key for good, and returns its record. A key that was revoked
// before stays as it is. [ErrUnknown] says that the file has no such id.
func Revoke(path, id string, now time.Time) (revoked Record, err error) {
	if _, err := os.Stat(path); err != nil {
		return Record{}, fmt.Errorf("revoke key: %w", err)
	}
	err = editFile(path, func(records []Record) ([]Record, error) {
		for i := range records {
			r := &records[i]
			if r.ID != id {
				continue
			}
			if r.Revoked.IsZero() {
				r.Revoked = now
			}
			revoked = *r
			return records, nil
		}
		return nil, ErrUnknown
	})
	if err != nil {
		return Record{}, fmt.Errorf("revoke key: %w", err)
	}
	return revoked, nil
}

// lockSuffix is behind the name of the file that is locked in place of one of keys.
const lockSuffix = ".lock"

// change replaces a file by what edit makes of its records. Nobody else changes
// it meanwhile, and no reader ever sees a part of it.
func editFile(path string, edit func([]Record) ([]Record, error)) error {
	// A link stays one, and its target is replaced.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	unlock, err := lock(path + lockSuffix)
	if err != nil {
		return err
	}
	defer unlock()
	ring, err := Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		ring = &KeySet{}
	case err != nil:
		return err
	}
	records, err := edit(ring.Records())
	if err != nil {
		return err
	}
	text, err := encodeAll(records)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(path, text, 0o600, func(f *os.File) error { return chownLikeTarget(f, path) }); err != nil {
		return fmt.Errorf("write keys: %w", err)
	}
	return nil
}

// Why a key proves nothing. They are for the operator: whoever sent it learns
// of no difference.
var (
	ErrUnknown = errors.New("there is no such key")
	ErrRevoked = errors.New("the key was revoked")
	ErrExpired = errors.New("the key has expired")
)

// Ring are the records of a file. It is immutable, and the zero Ring has none.
type KeySet struct {
	records []Record
	keys    map[string]*keyEntry
}

// held is a record with what is made of it once.
type keyEntry struct {
	Record
	principal identity.Principal
}

// nobody is what a key of unknown id is compared with, so that the answer takes
// the same time.
var dummyRecord = Record{Salt: make([]byte, saltBytes), Hash: make([]byte, 32)}

func newKeySet(records []Record) *KeySet {
	r := &KeySet{records: records, keys: make(map[string]*keyEntry, len(records))}
	for _, record := range records {
		r.keys[record.ID] = &keyEntry{record, record.asPrincipal()}
	}
	return r
}

// Check returns whose a key is: [ErrUnknown], [ErrRevoked] or [ErrExpired]
// otherwise. What it returns is shared, and not to be changed.
func (r *KeySet) Check(k Key, now time.Time) (identity.Principal, error) {
	h, known := r.keys[k.ID]
	if !known {
		dummyRecord.verify(k.secret)
		return identity.Principal{}, ErrUnknown
	}
	if !h.verify(k.secret) {
		return identity.Principal{}, ErrUnknown
	}
	if err := h.checkValid(now); err != nil {
		return identity.Principal{}, err
	}
	return h.principal, nil
}

// Records returns a copy of the records, in the order of the file.
func (r *KeySet) Records() []Record { return slices.Clone(r.records) }

// Since returns the records of keys that prove something now and did not in a ring of
// before, and of those that did and were revoked or taken out, in the order of the files.
// When a key expires is known from its record.
func (r *KeySet) ChangesSince(before *KeySet) (added, revoked []Record) {
	missing := func(all, from *KeySet) (missing []Record) {
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
func (r *KeySet) Without(revoked []string, now time.Time) *KeySet {
	records := r.Records()
	for i := range records {
		if slices.Contains(revoked, records[i].ID) && records[i].Revoked.IsZero() {
			records[i].Revoked = now
		}
	}
	return newKeySet(records)
}
