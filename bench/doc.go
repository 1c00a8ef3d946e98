// Package bench measures the hot paths of mcpd from end to end: a call in
// process, a list of a thousand tools, a cold load of a thousand files, and a
// reload after one of them has changed. Times are for people; the budgets on
// allocations beside them are tests.
package bench
