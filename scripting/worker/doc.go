// Package worker does in processes of its own what this process must survive.
//
// A [Pool] starts such processes, keeps a few that are idle for a moment, and
// kills one that is over a limit. [Main] is what they run. All that crosses
// between the two are frames of bytes on the standard streams; a process can do
// nothing but compute, and what it says counts for what it was given alone. What
// the system offers to confine it is told by [Probe].
//
// They compile bodies on trial ([Pool.Try]): parsers and compilers of JavaScript
// recurse on what they read, some take quadratic time on it, and none can be
// interrupted, so that a body which is too large to be bounded beforehand is
// compiled where that costs nothing but a process.
//
// And they run bodies ([Executor]), several at once in each. A call that does not
// end in time costs its process, and the other calls in that run again in another
// one from their journals, which this side keeps. Programs whose calls end by
// themselves share no process with others (see [record]), and have turns that no
// others take (see [admission]). Code that an agent wrote is sent with its call and
// forgotten with it, on both sides.
package worker
