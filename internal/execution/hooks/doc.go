// Package hooks runs the hooks in files, off the path of the calls that they
// watch.
//
// A [Hook] is a compiled hook block. A [Runner] queues a [Run] of it with what
// happened, and runs it a moment later, in order for each call. Every hook has
// a queue of its own, so that one that is slow delays no other. A run that fails
// is logged and counted, and never felt by the call. Every run is begun: when a
// hook lags so far behind that its queue is full, calls wait for room, and its
// runs are cut short so that there is some soon.
//
// A run is a part of the trace of its call, which may be over, and the log knows it by the
// ids of the call. It runs for nobody: it has neither the values nor the tokens of the
// principal whose call it is told of.
//
// What the events say, and which hooks want them, is decided elsewhere.
package hooks
