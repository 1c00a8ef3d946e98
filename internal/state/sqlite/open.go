// Package sqlite keeps the state of a server in a SQLite file: [Open] returns a [state.Store]
// whose rows stand there.
package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/mcpd/mcpd/internal/state"
)

// Open is a [state.Opener]. It refuses a file that others could have written or read.
func Open(path string, o state.Options, patience time.Duration) (state.Store, error) {
	s, _, err := open(path, o, patience)
	return s, err
}

func open(path string, o state.Options, patience time.Duration) (state.Store, *rows, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open the state store: %w", err)
	}
	if err := prepare(path); err != nil {
		return nil, nil, fmt.Errorf("open the state store: %w", err)
	}
	s, r, err := openRows(path, o, patience)
	if err != nil {
		return nil, nil, fmt.Errorf("open the state store: %w", explain(path, err))
	}
	return s, r, nil
}

func openRows(path string, o state.Options, patience time.Duration) (state.Store, *rows, error) {
	db, err := sql.Open("sqlite", source(path, patience))
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	r := &rows{db}
	err = migrate(db, schema)
	var s state.Store
	if err == nil {
		s, err = state.NewStore(r, o)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return s, r, nil
}

// source returns what SQLite opens the file as. The lock comes before the
// journal mode, so that no memory is shared with other processes.
func source(path string, patience time.Duration) string {
	path = filepath.ToSlash(path)
	if path[0] != '/' {
		path = "/" + path // a drive
	}
	query := url.Values{
		"_busy_timeout": {fmt.Sprint(patience.Milliseconds())},
		"_txlock":       {"exclusive"},
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_error_rc":     {"1"},
		"_pragma": {
			"locking_mode(EXCLUSIVE)", "journal_mode(WAL)", "synchronous(FULL)",
			"trusted_schema(OFF)", "secure_delete(ON)", "journal_size_limit(8388608)",
		},
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}).String()
}

// prepare makes the folder and the file, or checks those that exist. SQLite
// gives its other files the rights of this one.
func prepare(path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := checkFolder(folder); err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := checkFile(path + suffix); err != nil {
			return err
		}
	}
	// A file that exists is not opened: closing it again would undo the locks
	// that SQLite has on it in this process.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// checkFolder refuses a folder in which others could replace files.
func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	return checkOwner(folder, info, 0o022)
}

// checkFile refuses a file that others can read or write, or that stands
// elsewhere. One that does not exist is fine.
func checkFile(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is a link or something else than a file; move it away", path)
	}
	return checkOwner(path, info, 0o077)
}
