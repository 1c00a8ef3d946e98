// Package bench measures the hot paths of mcpd from end to end: a call in
// process, a call of a Go tool beside a bare handler, a call of a tool of another
// server, a program of an agent, a list of a thousand tools, a cold load of a
// thousand files, a reload after one of them has changed, and sessions that do
// nothing. Times are for people, but for the one that is held
// to a bare handler's with MCPD_LONG; the budgets on allocations and memory
// beside them are tests.
package bench

import (
	"fmt"
	"os"
	"testing"

	"github.com/mcpd/mcpd/scripting/worker"
)

// workerVerb has this program run bodies for another.
const workerVerb = "worker"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerVerb {
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == gatedVerb {
		if err := gatedWorker(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == bareVerb {
		fmt.Fprintln(os.Stderr, serveBare())
		os.Exit(1)
	}
	if len(os.Args) == 2 && os.Args[1] == behindVerb {
		if err := serveBehind(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
