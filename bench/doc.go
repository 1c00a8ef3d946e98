// Package bench measures the hot paths of mcpd from end to end: a call in
// process, a call of a Go tool beside a bare handler, a call of a tool of another
// server, a program of an agent, a list of a thousand tools, a cold load of a
// thousand files, a reload after one of them has changed, and sessions that do
// nothing. Times are for people, but for the one that is held
// to a bare handler's with MCPD_LONG; the budgets on allocations and memory
// beside them are tests.
package bench
