// Package tasks keeps calls going while their clients do not wait.
//
// [Tasks.Start] answers at once with a [Task], and has a [Runner] run the first
// leg of the call in the background. A leg ends the call, or asks: then nothing
// runs until the client has answered everything by [Tasks.Update], and the next
// leg goes on with what it answered. All that is known of a task is in a
// [Store], so that one that waits for its client outlives the process; one that
// was running does not, and has failed. What a call is and how it ends are bytes
// here, which the Runner alone reads.
//
// A task is its principal's: for everyone else there is none.
package tasks
