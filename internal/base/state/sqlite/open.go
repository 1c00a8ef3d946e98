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

	"github.com/mcpd/mcpd/internal/base/state"
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
	info, err := os.Stat(folder)
	if err == nil {
		err = checkOwner(folder, info, 0o022) // in which others could replace files
	}
	if err != nil {
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

// applicationID marks a SQLite file as one of ours: "mcpd".
const applicationID = 0x6d637064

// schema holds the steps from an empty file to today's tables. A file knows how
// many of them it has been through, so that a step is never changed, only added.
var schema = []string{
	// The columns are those of entry. Larger data stands in pages of its own,
	// which reading entries does not touch.
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
	// The value stands behind what is read more often than it.
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

// migrate brings a file to the last of the steps, and locks it.
func migrate(db *sql.DB, steps []string) error {
	return inTransaction(db, func(tx *sql.Tx) error {
		version, err := recognize(tx)
		if err != nil {
			return err
		}
		if version > len(steps) {
			return fmt.Errorf("was written by a newer version, whose schema is %d where this one knows %d; run that version, or move the file away", version, len(steps))
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

// recognize returns how many steps a file has been through, and refuses the
// files of other programs.
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
		return 0, errors.New("belongs to another program; give the state store a file of its own")
	}
	return version, nil
}
