// Package suspend is what a call that asks its client leaves behind, and what it
// goes on with.
//
// A body that asks is suspended: its journal holds everything that it has done,
// and [Requests] are what its client is to answer. [Pause] is the call meanwhile,
// as a state that can be sealed. [Resume] gives the answers to the journal, so
// that the body can be run again from the top without doing anything twice.
package suspend
