package apikey

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// encodeAll encodes the records in the format of Decode.
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
		return nil, errors.New("the keys would be longer than 8 MiB; remove expired and revoked keys")
	}
	return b.Bytes(), nil
}

// Add creates a key and adds its record to a file, which it creates if
// necessary. Only the returned Key has the secret; the file has none. known has
// the other fields of the record; Created must be set.
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

// Revoke revokes a key permanently, and returns its record. An already revoked
// key is unchanged. The error is [ErrUnknown] if the file has no such id.
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

// lockSuffix is the suffix of the lock file of a key file.
const lockSuffix = ".lock"

// editFile replaces the records of a file with the result of edit. It excludes
// other editors, and readers never see a partial file.
func editFile(path string, edit func([]Record) ([]Record, error)) error {
	// A symbolic link remains, and its target is replaced.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	unlock, err := lock(path + lockSuffix)
	if err != nil {
		return err
	}
	defer unlock()
	keys, err := Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		keys = &KeySet{}
	case err != nil:
		return err
	}
	records, err := edit(keys.Records())
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
