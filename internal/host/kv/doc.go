// Package kv keeps values for scripts, under keys, in a [state.Pairs].
//
// A [Broker] carries out the operations of one grant in one space. [SpaceOf]
// makes the name of the space from the grant and from who runs: what a script
// passes is no part of it, so that no key can name another space. The broker
// checks keys, values and lifetimes; the store has the room and the clock.
package kv
