// Package bench measures the hot paths of mcpd end to end:
//   - a call in process
//   - a call of a Go tool compared with a bare handler
//   - a call of an upstream tool
//   - agent code
//   - a list of a thousand tools
//   - a cold load of a thousand files, and a reload after one changed
//   - idle sessions
//
// Times are informative, except the comparison with a bare handler under MCPD_LONG. The
// budgets for allocations and memory are tests.
package bench

import (
	"fmt"
	"os"
	"testing"

	"github.com/mcpd/mcpd/scripting/worker"
)

// workerVerb makes this program a script worker.
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
