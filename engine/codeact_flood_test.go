package engine_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/scripting"
)

func TestCode_maxCompiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, ran atomic.Int32
		goOn := make(chan struct{})
		s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "codeact {}\n")}, Scripts: engine.Scripts{Trial: func(scripting.Source) error {
			running.Add(1)
			<-goOn
			ran.Add(1)
			return nil
		}}})
		var calls sync.WaitGroup
		for range 12 {
			calls.Go(func() {
				if got := executeCall(t, s, runCodeCall("1;"+strings.Repeat(" ", 5<<10)+"2")); got.Err != nil {
					t.Errorf("a call ends with %s", outcomeLine(got))
				}
			})
		}
		synctest.Wait()
		if n := running.Load(); n != 4 {
			t.Errorf("%d are compiled at once", n)
		}
		close(goOn)
		calls.Wait()
		if n := ran.Load(); n != 12 {
			t.Errorf("%d were compiled", n)
		}
	})
}
