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
