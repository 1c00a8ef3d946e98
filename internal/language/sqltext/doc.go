// Package sqltext cuts SQL statements into what is a parameter and what is not.
//
// A [Statement] is one statement as its author wrote it, with parameters such as
// :name. The package knows the strings, names and comments of the databases, and
// nothing else of their grammar: whether a statement is right, the database says.
package sqltext
