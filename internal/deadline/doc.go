// Package deadline bounds work that mostly ends at once: a [WithTimeout] has a
// timer, and a [WithCancel] is known to its parent, only when somebody waits for
// the end of the context.
package deadline
