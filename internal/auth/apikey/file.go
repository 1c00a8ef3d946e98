package apikey

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

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
type BrokenError struct {
	// Revoked are the ids that the readable lines revoke.
	Revoked []string
	mistake error
}

// Error names the first mistake, by its line.
func (e *BrokenError) Error() string { return e.mistake.Error() }

// Unwrap returns the first mistake.
func (e *BrokenError) Unwrap() error { return e.mistake }

// Load reads a file of keys. A file that others may read or write is refused; one
// with mistakes is a [*BrokenError].
func Load(path string) (*Ring, error) {
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
func Decode(text []byte) (*Ring, error) {
	var broken BrokenError
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
		if err != nil && broken.mistake == nil {
			broken.mistake = fmt.Errorf("line %d: %w", number, err)
		}
		if !r.Revoked.IsZero() {
			broken.Revoked = append(broken.Revoked, r.ID)
		}
		seen[r.ID] = true
		records = append(records, r)
	}
	if broken.mistake != nil {
		return nil, &broken
	}
	return newRing(records), nil
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
