// Package limitstore counts the limits of a server by a store of the program that embeds
// it, which several servers may share.
//
// [New] returns the [ratelimit.Store] that a server counts by. It asks the [call.LimitStore] of the
// program, which may be slow, fail, panic or not answer at all, in goroutines of their own,
// and denies what could not be counted. What is for one process alone is counted in memory.
package limitstore
