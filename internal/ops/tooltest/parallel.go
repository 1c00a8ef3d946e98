package tooltest

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Parallel calls run for each number below n, as many at once as the process has processors, and
// waits for all. If a run panics, Parallel panics after the others, in the goroutine of its caller.
func Parallel(n int, run func(i int)) {
	var next atomic.Int64
	var busy sync.WaitGroup
	panics := make(chan string, runtime.GOMAXPROCS(0))
	for range min(n, cap(panics)) {
		busy.Go(func() {
			defer func() {
				if cause := recover(); cause != nil {
					panics <- fmt.Sprintf("%v\n%s", cause, debug.Stack())
				}
			}()
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				run(int(i))
			}
		})
	}
	busy.Wait()
	select {
	case cause := <-panics:
		panic(cause)
	default:
	}
}
