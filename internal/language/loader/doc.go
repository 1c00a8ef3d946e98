// Package loader reads the files that a server is made of: the tools folder,
// as a [Tree], and the operator's file, as a [Config].
//
// A tree remembers what it has read, parsed and decoded, so that the change of
// one file costs the reading of one file. It trusts neither names nor links:
// what is hidden, leaves the folder, is no regular file or may be written by
// every user is a diagnostic and is never read. Which of the files belong to other users
// it says when it is asked, as production mode does. Nothing is compiled here.
package loader
