// Package sqldb runs the statements of sql grants on their databases.
//
// A [Broker] runs a statement that a grant names, with values for its parameters,
// which are bound and never become a part of its text. It keeps connections, by
// the hash of the grant, until nobody has used them for a while; files that calls
// choose are opened for each statement anew, from the file that was checked, and
// only read. What a statement may do is enforced by the database: SQLite by
// package lite, PostgreSQL by transactions that only read. A statement ends with
// its call, and its answer is bounded in rows and bytes.
package sqldb
