package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// Names in the directory of a [Follower], besides the bundles.
const (
	recordName = "active.json"
	partName   = "download.part"
	partRecord = "download.json"
	extension  = ".bundle"
)

// record is what must survive even if the bundles are lost: the floor below which no serial is
// accepted.
type record struct {
	Name   string `json:"name"`
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`
	// Tag is the entity tag of the bundle at its source, and Source the ID of the source.
	Tag    string `json:"tag,omitempty"`
	Source string `json:"source,omitempty"`
}

// disk is the part of a file system that a folder uses. A test replaces it with one that stops
// in the middle of an operation.
type disk interface {
	names() ([]string, error)
	// read returns a file of at most MaxSize bytes.
	read(name string) ([]byte, error)
	// replace writes a file atomically and durably.
	replace(name string, content []byte) error
	// extend appends to a file, which it creates. It is neither atomic nor durable.
	extend(name string, content []byte) error
	// remove removes a file. A missing file is no error.
	remove(name string) error
}

// folder is the directory in which a [Follower] keeps bundles: the active one and the one before
// it, each named by its serial. Which one is active follows from the names alone, so no order of
// writes can leave the folder without a bundle: the highest serial that verifies and loads is
// active. A new bundle is written before it is activated, and others are removed after that.
type folder struct{ disk disk }

// record returns the record, and a zero record if the file is missing.
func (f folder) record() (r record, err error) {
	text, err := f.disk.read(recordName)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return record{}, fmt.Errorf("read record of the active bundle: %w", err)
	}
	return r, nil
}

func (f folder) setRecord(r record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = f.disk.replace(recordName, text)
	}
	if err != nil {
		return fmt.Errorf("write record of the active bundle: %w", err)
	}
	return nil
}

// serials returns the serials of all bundles, highest first. It also removes the temporary files
// of writes that were interrupted.
func (f folder) serials() ([]int64, error) {
	names, err := f.disk.names()
	if err != nil {
		return nil, fmt.Errorf("list bundles: %w", err)
	}
	var serials []int64
	for _, name := range names {
		serial, ok := serialOf(name)
		switch {
		case ok:
			serials = append(serials, serial)
		case strings.HasPrefix(name, ".") && (strings.Contains(name, extension+".") || strings.HasPrefix(name, "."+recordName+".") || strings.HasPrefix(name, ".download.")):
			_ = f.disk.remove(name) // it only takes space
		}
	}
	slices.Sort(serials)
	slices.Reverse(serials)
	return serials, nil
}

// prune removes all bundles except the active one, the next lower one, and the one of the floor,
// which differs from the active one if it cannot be loaded now.
func (f folder) prune(active, floor int64) error {
	serials, err := f.serials()
	below := false
	for _, serial := range serials {
		before := serial < active && !below
		below = below || before
		if serial != active && serial != floor && !before {
			err = errors.Join(err, f.disk.remove(fileOf(serial)))
		}
	}
	return err
}

func fileOf(serial int64) string { return strconv.FormatInt(serial, 10) + extension }

// serialOf returns the serial in the name of a file.
func serialOf(name string) (int64, bool) {
	number, _ := strings.CutSuffix(name, extension)
	serial, err := strconv.ParseInt(number, 10, 64)
	return serial, err == nil && serial > 0 && fileOf(serial) == name
}

// realDisk is a directory of the file system.
type realDisk string

func (d realDisk) path(name string) string { return filepath.Join(string(d), name) }

func (d realDisk) names() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, err
}

func (d realDisk) read(name string) ([]byte, error) { return readFile(d.path(name)) }

func (d realDisk) replace(name string, content []byte) error {
	return atomicfile.Write(d.path(name), content, 0o600, nil)
}

func (d realDisk) extend(name string, content []byte) error {
	f, err := os.OpenFile(d.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

func (d realDisk) remove(name string) error {
	if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readFile reads a regular file of at most MaxSize bytes.
func readFile(path string) ([]byte, error) {
	f, err := atomicfile.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > MaxSize:
		return nil, fmt.Errorf("%s has more than %d bytes", path, MaxSize)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err == nil && len(data) > MaxSize {
		err = fmt.Errorf("%s has more than %d bytes", path, MaxSize)
	}
	return data, err
}
