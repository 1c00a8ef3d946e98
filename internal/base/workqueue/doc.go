// Package workqueue keeps account of work that runs beside other work.
//
// A [Queue] runs jobs off the path of those who order them: a few at once,
// those of one key in order, with goroutines only while there is something to
// do. Who orders more than the queue holds waits until there is room. [Calls]
// counts what is under way and waits for the last to end. Neither drops a job,
// starts again what has failed, or ends one.
//
// The queue is written by hand: errgroup and worker pools have no order by key.
package workqueue
