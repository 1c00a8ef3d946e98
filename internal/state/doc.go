// Package state keeps what must outlive a call and a restart.
//
// A [Store] holds five things: the keys that request states are sealed with,
// the claims of request states that were used together with what they were
// answered, journals too large to travel, tasks, and pairs of keys and values.
// [Open] keeps them in a SQLite file, [NewMemory] in memory; both follow the same
// rules, which package statetest checks. A [Sealer] turns the [State] of a call that waits for its
// client into text which the client hands back, and which it can neither read,
// change, use for another call, nor use twice.
//
// Everything but keys and pairs has an owner, an expiry and a bound, and pairs
// have a space and a bound: a store that is full
// refuses and says when to come back ([FullError]), and what has expired is
// gone. The package runs no call and knows no protocol.
package state
