package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"math"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mcpd/mcpd/internal/base/state"
)

// rows are rows in a SQLite file. The only connection holds the lock on the file while
// it is open.
type rows struct {
	db *sql.DB
}

func (r *rows) Each(yield func(state.Entry)) error {
	found, err := r.db.Query(`SELECT kind, id, owner, phase, expires, size FROM records`)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var e state.Entry
		var id, owner []byte
		if err := found.Scan(&e.Kind, &id, &owner, &e.Phase, &e.Expires, &e.Size); err != nil {
			return err
		}
		e.ID, e.Owner = string(id), string(owner)
		yield(e)
	}
	return found.Err()
}

func (r *rows) Get(k state.Kind, id string) ([]byte, error) {
	var data []byte
	err := r.db.QueryRow(`SELECT data FROM records WHERE kind = ? AND id = ?`, int(k), []byte(id)).Scan(&data)
	return data, err
}

func (r *rows) Put(records ...state.Record) error {
	return r.atOnce(func(do execer) error {
		for _, x := range records {
			_, err := do.Exec(`INSERT INTO records (kind, id, owner, phase, expires, size, data) VALUES (?, ?, ?, ?, ?, ?, ?)
				ON CONFLICT (kind, id) DO UPDATE SET phase = excluded.phase, expires = excluded.expires, size = excluded.size, data = excluded.data`,
				int(x.Kind), []byte(x.ID), []byte(x.Owner), x.Phase, x.Expires, x.Size, x.Data)
			if err != nil {
				return err
			}
		}
		return nil
	}, len(records))
}

func (r *rows) Drop(k state.Kind, ids []string) error {
	return r.atOnce(func(do execer) error {
		for _, id := range ids {
			if _, err := do.Exec(`DELETE FROM records WHERE kind = ? AND id = ?`, int(k), []byte(id)); err != nil {
				return err
			}
		}
		return nil
	}, len(ids))
}

func (r *rows) Close() error { return r.db.Close() }

// execer is a database or a transaction.
type execer interface {
	Exec(query string, args ...any) (sql.Result, error)
}

// atOnce makes a number of changes atomically. A single change needs no transaction.
func (r *rows) atOnce(change func(execer) error, number int) error {
	if number == 1 {
		return change(r.db)
	}
	return inTransaction(r.db, func(tx *sql.Tx) error { return change(tx) })
}

// inTransaction runs change in a transaction.
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

// code returns the primary result code of a SQLite error, or 0.
func code(err error) int {
	var failure *driver.Error
	if errors.As(err, &failure) {
		return failure.Code() & 0xff
	}
	return 0
}

func (r *rows) IsFull(err error) bool { return code(err) == sqlite3.SQLITE_FULL }

// explain adds advice to the error of an unusable file.
func explain(path string, err error) error {
	switch code(err) {
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("%s is %w; use a separate directory for each server: %w", path, state.ErrInUse, err)
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%s is damaged; move it away to start with a new file: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

func (r *rows) Pair(space, key string) (state.StoredPair, error) {
	var p state.StoredPair
	err := r.db.QueryRow(`SELECT value, expires FROM pairs WHERE space = ? AND key = ?`, []byte(space), []byte(key)).Scan(&p.Value, &p.Expires)
	if errors.Is(err, sql.ErrNoRows) {
		return state.StoredPair{}, nil
	}
	return p, err
}

func (r *rows) PutPair(space, key string, p state.StoredPair) error {
	_, err := r.db.Exec(`INSERT INTO pairs (space, key, expires, size, value) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (space, key) DO UPDATE SET expires = excluded.expires, size = excluded.size, value = excluded.value`,
		[]byte(space), []byte(key), p.Expires, p.Size(key), p.Value)
	return err
}

func (r *rows) DropPair(space, key string) error {
	_, err := r.db.Exec(`DELETE FROM pairs WHERE space = ? AND key = ?`, []byte(space), []byte(key))
	return err
}

func (r *rows) PairKeys(space, from, end string, now int64, limit int) ([]string, error) {
	found, err := r.db.Query(`SELECT key FROM pairs WHERE space = ? AND key >= ? AND key < ? AND expires > ? ORDER BY key LIMIT ?`,
		[]byte(space), []byte(from), []byte(end), now, limit)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var keys []string
	for found.Next() {
		var key []byte
		if err := found.Scan(&key); err != nil {
			return nil, err
		}
		keys = append(keys, string(key))
	}
	return keys, found.Err()
}

func (r *rows) DropExpired(space string, now int64, limit int) (map[string]state.Usage, error) {
	expired := `SELECT rowid FROM pairs WHERE expires <= ? LIMIT ?`
	args := []any{now, limit}
	if space != "" {
		expired = `SELECT rowid FROM pairs WHERE space = ? AND expires <= ? LIMIT ?`
		args = []any{[]byte(space), now, limit}
	}
	found, err := r.db.Query(`DELETE FROM pairs WHERE rowid IN (`+expired+`) RETURNING space, size`, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	freed := map[string]state.Usage{}
	for found.Next() {
		var name []byte
		var size int64
		if err := found.Scan(&name, &size); err != nil {
			return nil, err
		}
		u := freed[string(name)]
		freed[string(name)] = state.Usage{Count: u.Count + 1, Bytes: u.Bytes + size}
	}
	return freed, found.Err()
}

func (r *rows) Soonest() (first int64, err error) {
	err = r.db.QueryRow(`SELECT coalesce(min(expires), ?) FROM pairs`, int64(math.MaxInt64)).Scan(&first)
	return first, err
}

func (r *rows) EachSpace(yield func(space string, u state.Usage)) error {
	found, err := r.db.Query(`SELECT space, count(*), sum(size) FROM pairs GROUP BY space`)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var name []byte
		var u state.Usage
		if err := found.Scan(&name, &u.Count, &u.Bytes); err != nil {
			return err
		}
		yield(string(name), u)
	}
	return found.Err()
}
