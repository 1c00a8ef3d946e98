package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
)

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
