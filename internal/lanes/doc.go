// Package lanes keeps account of work that runs beside other work.
//
// A [Queue] runs jobs off the path of those who order them: it has a few lanes,
// the jobs of one lane run in order, and a lane has a goroutine only while it
// has something to do. Who orders more than the queue holds waits, but not for
// ever. [Calls] counts what is under way and waits for the last to end. Neither
// starts again what has failed, and neither ends a job.
package lanes
