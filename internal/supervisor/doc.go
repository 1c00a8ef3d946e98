// Package supervisor runs a program so that nothing of it is left when it has
// ended: no process that it started, however that has hidden itself, and no
// pipe that keeps its caller waiting.
//
// [Run] starts a [Program] and returns its [Result]. On Linux it does so through
// another process that runs [Main]: all descendants of the program become
// children of that one when their parents end, and it kills them until there are
// none. It does so, too, when whoever called Run dies. Without such a process,
// and on other systems, the group of processes is killed that the program began
// in; what has left the group goes on.
//
// No shell takes part. The program has the environment that it is given and no
// other, reads nothing, and has no file open but its three standard streams.
// Which programs may run is not decided here.
package supervisor
