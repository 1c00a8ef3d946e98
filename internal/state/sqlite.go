package state

import (
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteRows are rows in a SQLite file. The one connection holds the file
// locked for as long as it is open.
type sqliteRows struct {
	db *sql.DB
}

func (r *sqliteRows) each(yield func(entry)) error {
	found, err := r.db.Query(`SELECT kind, id, owner, phase, expires, size FROM records`)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var e entry
		var id, owner []byte
		if err := found.Scan(&e.kind, &id, &owner, &e.phase, &e.expires, &e.size); err != nil {
			return err
		}
		if e.kind < 0 || int(e.kind) >= kinds {
			return errMalformed
		}
		e.id, e.owner = string(id), string(owner)
		yield(e)
	}
	return found.Err()
}

func (r *sqliteRows) get(k kind, id string) ([]byte, error) {
	var data []byte
	err := r.db.QueryRow(`SELECT data FROM records WHERE kind = ? AND id = ?`, int(k), []byte(id)).Scan(&data)
	return data, err
}

func (r *sqliteRows) put(records ...record) error {
	return r.atOnce(func(do execer) error {
		for _, x := range records {
			_, err := do.Exec(`INSERT INTO records (kind, id, owner, phase, expires, size, data) VALUES (?, ?, ?, ?, ?, ?, ?)
				ON CONFLICT (kind, id) DO UPDATE SET phase = excluded.phase, expires = excluded.expires, size = excluded.size, data = excluded.data`,
				int(x.kind), []byte(x.id), []byte(x.owner), x.phase, x.expires, x.size, x.data)
			if err != nil {
				return err
			}
		}
		return nil
	}, len(records))
}

func (r *sqliteRows) drop(k kind, ids []string) error {
	return r.atOnce(func(do execer) error {
		for _, id := range ids {
			if _, err := do.Exec(`DELETE FROM records WHERE kind = ? AND id = ?`, int(k), []byte(id)); err != nil {
				return err
			}
		}
		return nil
	}, len(ids))
}

func (r *sqliteRows) close() error { return r.db.Close() }

// execer is a database or a transaction.
type execer interface {
	Exec(query string, args ...any) (sql.Result, error)
}

// atOnce makes a number of changes at once. One needs no transaction of its own.
func (r *sqliteRows) atOnce(change func(execer) error, number int) error {
	if number == 1 {
		return change(r.db)
	}
	return inTransaction(r.db, func(tx *sql.Tx) error { return change(tx) })
}

// inTransaction runs change so that all or nothing of it happens.
func inTransaction(db *sql.DB, change func(*sql.Tx) error) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	if err := change(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// code returns the primary result code of an error of SQLite, or 0.
func code(err error) int {
	var failure *sqlite.Error
	if errors.As(err, &failure) {
		return failure.Code() & 0xff
	}
	return 0
}

// isDiskFull reports whether an error means that the disk has no room.
func isDiskFull(err error) bool { return code(err) == sqlite3.SQLITE_FULL }

// explain says what to do about a file that cannot be used.
func explain(path string, err error) error {
	switch code(err) {
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("%s is %w; give each server a folder of its own: %w", path, ErrInUse, err)
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%s is damaged; move it away, and a new one is made: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
