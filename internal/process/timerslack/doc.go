// Package timerslack sets by how much the threads of a process may be late when they
// wait for a time, on Linux (PR_SET_TIMERSLACK of prctl(2)).
//
// The runtime of Go has a thread that watches the others and sleeps for 20 µs at a time
// while anything runs, and threads that look for work sleep for 3 µs. With the 50 µs that
// Linux gives everybody, these naps take up to a quarter of what a process uses that
// answers many short requests. Nothing that mcpd waits for is told in less than 1 ms.
package timerslack

import "time"

// Late is by how much the threads may be late.
const Late = time.Millisecond

// Mark is the variable of the environment that a program has which [Again] began, so that
// none begins forever where the system forgets the slack.
const Mark = "MCPD_TIMERSLACK"
