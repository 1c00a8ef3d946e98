// Package sqlite stores the state of a server in a SQLite file. [Open] returns a
// [state.Store].
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

	"github.com/mcpd/mcpd/internal/base/atomicfile"
	"github.com/mcpd/mcpd/internal/base/state"
)

// Open is a [state.Opener]. It rejects a file that other users could read or write.
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

// source returns the data source name of the file. The lock comes before the journal
// mode, so that no memory is shared with other processes.
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

// prepare creates the directory and the file, or checks existing ones. SQLite creates
// its other files with the mode of this file.
func prepare(path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(folder)
	if err == nil {
		err = checkOwner(folder, info, 0o022) // others could replace files in it
	}
	if err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := checkFile(path + suffix); err != nil {
			return err
		}
	}
	// An existing file is not opened: closing it would release the locks of SQLite in
	// this process.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// checkFile rejects a file that others can read or write, and links. A missing file is
// fine.
func checkFile(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; move it away", path)
	}
	return checkOwner(path, info, 0o077)
}

// checkOwner rejects files of other users, hard links, and forbidden mode bits. Where files have no
// owner, it accepts every file: permissions are then access control lists that new files inherit from
// their directory.
func checkOwner(path string, info fs.FileInfo, forbidden fs.FileMode) error {
	owner, known := atomicfile.Owner(info)
	if !known {
		return nil
	}
	if rights := info.Mode().Perm(); rights&forbidden != 0 {
		return fmt.Errorf("%s is accessible to other users (%v); run chmod go-rwx", path, rights)
	}
	if int(owner) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (%d); use another directory for the state store", path, owner)
	}
	if info.Mode().IsRegular() && atomicfile.LinkCount(info) > 1 {
		return fmt.Errorf("%s has another hard link; move it away", path)
	}
	return nil
}

// applicationID marks our SQLite files: "mcpd".
const applicationID = 0x6d637064

// schema holds the migration steps from an empty file. A file records the number of its
// steps, so steps are only added, never changed.
var schema = []string{
	// The columns are the fields of entry. Larger data is in separate pages, which reading
	// entries does not touch.
	`CREATE TABLE records (
		kind    INTEGER NOT NULL,
		id      BLOB    NOT NULL,
		owner   BLOB    NOT NULL,
		phase   INTEGER NOT NULL,
		expires INTEGER NOT NULL,
		size    INTEGER NOT NULL,
		data    BLOB,
		UNIQUE (kind, id)
	) STRICT`,
	// The value is last, because it is read less often than the other columns.
	`CREATE TABLE pairs (
		space   BLOB    NOT NULL,
		key     BLOB    NOT NULL,
		expires INTEGER NOT NULL,
		size    INTEGER NOT NULL,
		value   BLOB    NOT NULL,
		UNIQUE (space, key)
	) STRICT`,
	`CREATE INDEX pairs_by_expiry ON pairs (expires)`,
}

// migrate applies the missing steps to a file, and locks it.
func migrate(db *sql.DB, steps []string) error {
	return inTransaction(db, func(tx *sql.Tx) error {
		version, err := recognize(tx)
		if err != nil {
			return err
		}
		if version > len(steps) {
			return fmt.Errorf("was written by a newer version (schema %d, this version supports %d); run that version, or move the file away", version, len(steps))
		}
		for _, step := range steps[version:] {
			if _, err := tx.Exec(step); err != nil {
				return err
			}
		}
		_, err = tx.Exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(steps)))
		return err
	})
}

// recognize returns the number of applied steps, and rejects files of other programs.
func recognize(tx *sql.Tx) (version int, err error) {
	var application, tables int
	for query, into := range map[string]*int{
		"PRAGMA application_id":              &application,
		"PRAGMA user_version":                &version,
		"SELECT count(*) FROM sqlite_schema": &tables,
	} {
		if err := tx.QueryRow(query).Scan(into); err != nil {
			return 0, err
		}
	}
	if application != applicationID && (application != 0 || version != 0 || tables != 0) {
		return 0, errors.New("belongs to another program; use another file for the state store")
	}
	return version, nil
}
