// Package lockfile holds the tools of other MCP servers as an operator has accepted them.
//
// A [Tool] is the definition that an upstream lists: what an agent reads of it, and what
// it is called with. A [Lock] is what was accepted, the content of the file mcpd.lock.
// [Of] takes a definition out of an entry of tools/list, [Lock.Check] compares what an
// upstream lists now with what was accepted, and says what may be served and what is a
// [Change]; [Change.Diff] shows one, and [Lock.Accept] takes it in. Locks are values: what
// changes one returns another.
//
// # Policy
//
// A tool is served only with the definition that the lock holds. Whatever else is listed
// is quarantined until somebody accepts it, under one of two modes: with [FirstUse], all
// that an upstream lists while the lock does not know that upstream is taken in without a
// question, and what it lists later is not; with [Strict], nothing is ever taken in
// without a question. An upstream is known from then on, also when it has no tool left.
//
// # Definitions
//
// A definition is the members name, title, description, inputSchema, outputSchema and
// annotations of an entry. Others (_meta, icons, execution, and those of revisions to
// come) are no part of it: they change with releases and sessions of a server, and say
// nothing of what a tool does. Who serves a tool by its pin must therefore not pass them
// to a model. A member that is null is absent, as servers write either.
//
// Definitions are compared by value, in the canonical form of RFC 8785 but for numbers,
// which keep all their digits: key order, white space and the spelling of strings and
// numbers change nothing, and two integers that are the same float64 are still two. The
// hash of a definition is the SHA-256 of that form.
//
// # File
//
// The file is text, a block for each tool, sorted, with the whole definition one member a
// line, and long texts one sentence a line, so that a review shows what was put into one.
// Adjacent string literals are one string. Characters that show nothing, or that move
// others, are escapes. A definition that does not fit the hash above it is an error: it
// was edited by hand, or mixed by a merge. The hash is no signature; who may write the
// file may accept tools. What would take much of a file is no tool: what is listed in a few
// bytes may take many there.
//
// The package asks no server, decides nothing about a call, and locks no file against
// other processes.
//
// Canonical JSON is written by hand: implementations of RFC 8785 round numbers to a
// float64, and hashes of accepted definitions must stay what they are.
package lockfile
