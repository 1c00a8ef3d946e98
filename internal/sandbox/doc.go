// Package sandbox takes from the process that it is called in whatever the
// process does not need to compute: files, the network, other processes, and
// more memory than it is given. What remains are the descriptors that it was
// started with, memory, threads and clocks.
//
// [Enter] does so with what the system offers, and says in a [Report] what is
// on and what is missing. It cannot be undone. It does not decide whether what
// is missing matters.
package sandbox
