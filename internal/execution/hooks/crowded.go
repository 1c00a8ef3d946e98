package hooks

import (
	"context"
	"fmt"
	"time"
)

// crowded is why a run was cut short: the number of the crowding of the
// hook's queue that it was in.
type crowded uint64

func (crowded) Error() string {
	return fmt.Sprintf("the hook lags so far behind its calls that they wait for it: its runs are cut to %s until half of the %d MiB that wait have run; "+
		"those cut after this one are counted only", hurried, maxWaiting>>20)
}

// hurry cuts the run of ctx short when it has taken [hurried] and the queue is
// crowded, or gets so before ctx is done. The timer is for a run that ends soon.
func (h *Hook) hurry(ctx context.Context, cut context.CancelCauseFunc) *time.Timer {
	return time.AfterFunc(hurried, func() {
		begun, number := h.queue.Crowding()
		select {
		case <-begun:
			cut(crowded(number))
		case <-ctx.Done():
		}
	})
}
