// Package lazyctx bounds work that mostly ends at once: a [WithTimeout] has a
// timer, and a [WithCancel] is known to its parent, only when somebody waits for
// the end of the context.
//
// It is written by hand: a context of the standard library starts its timer at once,
// which a call that ends in microseconds would pay for.
package lazyctx
