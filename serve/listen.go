package serve

import (
	"slices"
	"sync"

	"github.com/mcpd/mcpd/engine"
)

// listen returns where to listen and whom to let in: what the options say, and
// what the operator's file says now. The engine must have been loaded.
func (f *Front) listen() engine.Listen {
	l := f.engine.Snapshot().Listen()
	if f.options.Address != "" {
		l.Address = f.options.Address
	}
	if l.Address == "" {
		l.Address = DefaultAddress
	}
	l.Hosts, l.Origins = append(l.Hosts, f.options.Hosts...), append(l.Origins, f.options.Origins...)
	return l
}

// compare tells the operator, until stop is called, when the file wants
// something else than what is bound: only a restart makes it so.
func (f *Front) compare(bound engine.Listen) (stop func()) {
	var mu sync.Mutex
	told := bound
	look := func() {
		mu.Lock()
		defer mu.Unlock()
		now := f.listen()
		if same(now, told) {
			return
		}
		told = now
		f.outdated.Store(!same(now, bound))
		if f.outdated.Load() {
			f.engine.Logger().Warn("the listen block has changed; restart mcpd to make it take effect")
			return
		}
		f.engine.Logger().Info("the listen block is what it was at the start; no restart is needed")
	}
	stop = f.engine.Watch(func([]string) { look() })
	look()
	return stop
}

func same(a, b engine.Listen) bool {
	return a.Address == b.Address && slices.Equal(a.Hosts, b.Hosts) && slices.Equal(a.Origins, b.Origins)
}
