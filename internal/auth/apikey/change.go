package apikey

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// Add makes a key and writes its record to a file, which is made when there is
// none. The key is returned once: nobody can read it out of the file. known is
// what the record says beside that; Created must be set.
func Add(path string, known Record) (Key, error) {
	k := New()
	err := change(path, func(records []Record) ([]Record, error) {
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
	err = change(path, func(records []Record) ([]Record, error) {
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
func change(path string, edit func([]Record) ([]Record, error)) error {
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
		ring = &Ring{}
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
	if err := atomicfile.Write(path, text, 0o600, func(f *os.File) error { return giveAway(f, path) }); err != nil {
		return fmt.Errorf("write keys: %w", err)
	}
	return nil
}
