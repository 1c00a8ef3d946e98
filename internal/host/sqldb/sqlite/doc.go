// Package sqlite runs single statements on SQLite files whose author is not
// trusted, nor who wrote the statement, further than a grant says.
//
// A [Conn] is an open file and a [Stmt] a statement on it. The driver for
// database/sql is not used, because it stops no statement between two rows, and
// has no authorizer: here a statement ends when its connection is stopped, reads
// and writes rows and nothing else, and takes no more memory than there is for
// all of them.
package sqlite
