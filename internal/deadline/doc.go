// Package deadline bounds work that mostly ends at once: a [WithTimeout] has a
// timer only when somebody waits for the end of its context.
package deadline
