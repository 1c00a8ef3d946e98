package tooltest

import (
	"strings"
	"sync/atomic"
	"testing"
)

func TestParallel_panics(t *testing.T) {
	var ran atomic.Int64
	defer func() {
		if cause, _ := recover().(string); !strings.Contains(cause, "broken") || ran.Load() < 1 {
			t.Errorf("the panic is %q after %d runs", cause, ran.Load())
		}
	}()
	Parallel(20, 2, func(i int) {
		if i == 3 {
			panic("broken")
		}
		ran.Add(1)
	})
	t.Error("no panic")
}
