package state

import (
	"database/sql"
	"errors"
)

func (r *sqliteRows) pair(space, key string) (pair, error) {
	var p pair
	err := r.db.QueryRow(`SELECT value, expires FROM pairs WHERE space = ? AND key = ?`, []byte(space), []byte(key)).Scan(&p.value, &p.expires)
	if errors.Is(err, sql.ErrNoRows) {
		return pair{}, nil
	}
	return p, err
}

func (r *sqliteRows) putPair(space, key string, p pair) error {
	_, err := r.db.Exec(`INSERT INTO pairs (space, key, expires, size, value) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (space, key) DO UPDATE SET expires = excluded.expires, size = excluded.size, value = excluded.value`,
		[]byte(space), []byte(key), p.expires, p.size(key), p.value)
	return err
}

func (r *sqliteRows) dropPair(space, key string) error {
	_, err := r.db.Exec(`DELETE FROM pairs WHERE space = ? AND key = ?`, []byte(space), []byte(key))
	return err
}

func (r *sqliteRows) pairKeys(space, from, end string, now int64, most int) ([]string, error) {
	found, err := r.db.Query(`SELECT key FROM pairs WHERE space = ? AND key >= ? AND key < ? AND expires > ? ORDER BY key LIMIT ?`,
		[]byte(space), []byte(from), []byte(end), now, most)
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

func (r *sqliteRows) dropExpired(space string, now int64, most int) (map[string]usage, error) {
	expired := `SELECT rowid FROM pairs WHERE expires <= ? LIMIT ?`
	args := []any{now, most}
	if space != "" {
		expired = `SELECT rowid FROM pairs WHERE space = ? AND expires <= ? LIMIT ?`
		args = []any{[]byte(space), now, most}
	}
	found, err := r.db.Query(`DELETE FROM pairs WHERE rowid IN (`+expired+`) RETURNING space, size`, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	freed := map[string]usage{}
	for found.Next() {
		var name []byte
		var size int64
		if err := found.Scan(&name, &size); err != nil {
			return nil, err
		}
		u := freed[string(name)]
		freed[string(name)] = usage{u.count + 1, u.bytes + size}
	}
	return freed, found.Err()
}

func (r *sqliteRows) soonest() (first int64, err error) {
	err = r.db.QueryRow(`SELECT coalesce(min(expires), ?) FROM pairs`, int64(never)).Scan(&first)
	return first, err
}

func (r *sqliteRows) eachSpace(yield func(space string, u usage)) error {
	found, err := r.db.Query(`SELECT space, count(*), sum(size) FROM pairs GROUP BY space`)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var name []byte
		var u usage
		if err := found.Scan(&name, &u.count, &u.bytes); err != nil {
			return err
		}
		yield(string(name), u)
	}
	return found.Err()
}
