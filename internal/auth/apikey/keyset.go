package apikey

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/atomicfile"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// defaultFile is the file that mcpd key new writes by default.
const defaultFile = "keys.json"

const (
	maxFile = 8 << 20  // bytes
	maxLine = 64 << 10 // bytes
)

// The errors of [KeySet.Check]. They are for the operator: the caller cannot
// distinguish them.
var (
	ErrUnknown = errors.New("no such key")
	ErrRevoked = errors.New("the key was revoked")
	ErrExpired = errors.New("the key has expired")
)

// KeySet holds the records of a file. It is immutable; the zero KeySet is
// empty.
type KeySet struct {
	records []Record
	keys    map[string]*keyEntry
}

// keyEntry is a record with its principal.
type keyEntry struct {
	Record
	principal identity.Principal
}

// dummyRecord is compared with keys of unknown id, so that the response takes
// the same time.
var dummyRecord = Record{Salt: make([]byte, saltBytes), Hash: make([]byte, 32)}

func newKeySet(records []Record) *KeySet {
	r := &KeySet{records: records, keys: make(map[string]*keyEntry, len(records))}
	for _, record := range records {
		r.keys[record.ID] = &keyEntry{record, record.AsPrincipal()}
	}
	return r
}

// Check returns the principal of a key. The error is [ErrUnknown], [ErrRevoked]
// or [ErrExpired]. The principal is shared; the caller must not modify it.
func (s *KeySet) Check(k Key, now time.Time) (identity.Principal, error) {
	h, known := s.keys[k.ID]
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
func (s *KeySet) Records() []Record { return slices.Clone(s.records) }

// ChangesSince returns the records of keys that were added since an earlier
// set, and of keys that were revoked or removed, in the order of the files.
// Expired keys are not included: their records have the time.
func (s *KeySet) ChangesSince(before *KeySet) (added, revoked []Record) {
	missing := func(all, from *KeySet) (missing []Record) {
		for _, record := range all.records {
			other, known := from.keys[record.ID]
			if record.Revoked.IsZero() && (!known || !other.Revoked.IsZero()) {
				missing = append(missing, record)
			}
		}
		return missing
	}
	return missing(s, before), missing(before, s)
}

// Without returns the set with some keys revoked. It ignores unknown ids.
func (s *KeySet) Without(revoked []string, now time.Time) *KeySet {
	records := s.Records()
	for i := range records {
		if slices.Contains(revoked, records[i].ID) && records[i].Revoked.IsZero() {
			records[i].Revoked = now
		}
	}
	return newKeySet(records)
}

// FileError reports that a key file has errors.
type FileError struct {
	// Revoked are the ids that the valid lines revoke.
	Revoked []string
	err     error
}

// Error names the first error, with its line.
func (e *FileError) Error() string { return e.err.Error() }

// Unwrap returns the first error.
func (e *FileError) Unwrap() error { return e.err }

// Load reads a key file. It rejects a file that others may read or write. An
// invalid file is a [*FileError].
func Load(path string) (*KeySet, error) {
	text, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	keys, err := Decode(text)
	if err != nil {
		return nil, fmt.Errorf("read keys: %s: %w", path, err)
	}
	return keys, nil
}

// fileFlag returns the flag with which mcpd key writes to path; empty for the
// default file.
func fileFlag(path string) string {
	switch path = filepath.ToSlash(filepath.Clean(path)); {
	case path == defaultFile:
		return ""
	case strings.ContainsAny(path, " \"$&;()"):
		return " --file '" + path + "'"
	}
	return " --file " + path
}

// read returns the text of a file that only its owner may access.
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
		err = fmt.Errorf("%s is longer than 8 MiB; remove expired and revoked keys", path)
	}
	return text, err
}

// Decode parses records, one per line. Errors are a [*FileError].
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
			err = errors.New("duplicate id; remove one of the two lines")
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

// decodeRecord parses one line. With an error, the record has the fields that
// could be parsed.
func decodeRecord(line []byte) (r Record, err error) {
	if err := jsonguard.Check(line, jsonguard.Limits{Bytes: maxLine, Depth: 2, Tokens: 4 * maxList}); err != nil {
		return Record{}, fmt.Errorf("read JSON: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, errors.New("a member has an unknown name or the wrong type")
	}
	return r, r.check()
}
