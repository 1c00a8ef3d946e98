//go:build unix

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/postgrestest"
)

// A fleetFault breaks something for a time, and repairs it.
type fleetFault struct {
	name string
	do   func(f *fleet, r *replica)
}

// fleetFaults returns a fault of each kind. Those with a duration last as long.
func fleetFaults(lasts time.Duration) []fleetFault {
	return []fleetFault{
		{"kill", func(_ *fleet, r *replica) {
			r.stop(syscall.SIGKILL)
			r.start()
		}},
		pauseFault(lasts),
		partitionFault(lasts),
		{fmt.Sprintf("cut of %v from the database", lasts), func(_ *fleet, r *replica) {
			r.link.cut()
			time.Sleep(lasts)
			r.link.restore()
		}},
		{"restart of the database", func(f *fleet, _ *replica) { f.restartDatabase((*postgrestest.Server).Stop, 0) }},
		{"crash of the database", func(f *fleet, _ *replica) { f.crashDatabase(0) }},
		{"rolling upgrade", func(f *fleet, _ *replica) {
			for _, r := range f.replicas {
				r.stop(syscall.SIGTERM)
				r.start()
			}
		}},
	}
}

// longFaults returns faults that last until replicas are presumed dead, also several at once.
func longFaults() []fleetFault {
	const lasts = 12 * time.Second
	pause, partition := pauseFault(lasts), partitionFault(lasts)
	return []fleetFault{
		pause, partition,
		{fmt.Sprintf("database away for %v", lasts), func(f *fleet, _ *replica) { f.crashDatabase(lasts) }},
		{pause.name + " and kill of another", func(f *fleet, r *replica) {
			r.signal(syscall.SIGSTOP)
			f.after(r).stop(syscall.SIGKILL)
			f.after(r).start()
			time.Sleep(lasts)
			r.signal(syscall.SIGCONT)
		}},
		{partition.name + " and restart of the database", func(f *fleet, r *replica) {
			r.link.hold()
			f.crashDatabase(0)
			time.Sleep(lasts)
			r.link.restore()
		}},
	}
}

// pauseFault stops a process for a time. It stays in the rotation.
func pauseFault(lasts time.Duration) fleetFault {
	return fleetFault{fmt.Sprintf("pause of %v", lasts), func(_ *fleet, r *replica) {
		r.signal(syscall.SIGSTOP)
		time.Sleep(lasts)
		r.signal(syscall.SIGCONT)
	}}
}

// partitionFault holds the traffic between a replica and the database.
func partitionFault(lasts time.Duration) fleetFault {
	return fleetFault{fmt.Sprintf("partition of %v", lasts), func(_ *fleet, r *replica) {
		r.link.hold()
		time.Sleep(lasts)
		r.link.restore()
	}}
}

func (f *fleet) restartDatabase(stop func(*postgrestest.Server) error, away time.Duration) {
	f.Helper()
	if err := stop(f.database); err != nil {
		f.Fatal(err)
	}
	if f.whileAway != nil {
		f.whileAway()
	}
	time.Sleep(away)
	if err := f.database.Restart(); err != nil {
		f.Fatal(err)
	}
}

func (f *fleet) crashDatabase(away time.Duration) {
	f.Helper()
	from := wallTime()
	f.restartDatabase((*postgrestest.Server).Kill, away)
	f.limits.noteCrash(from)
}

// Three replicas serve 16 clients through faults. A third party counts each effect: no effect
// happens twice, and each effect of a call with a result happened. Tasks end, clients that retry
// recover, subscribers see changes at other replicas again, and a limit that six clients share is
// never exceeded. With MCPD_LONG there are 10,000 effects and pauses after which a replica is
// presumed dead, clients do not pause, and the time to recover is checked. MCPD_SEED repeats a schedule.
func TestReplicas_nothingTwiceNothingLost(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: three servers with the race detector need the whole machine")
	}
	t.Parallel()
	seed, start := rand.Uint64(), time.Now()
	if text := os.Getenv("MCPD_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("MCPD_SEED=%d", seed)
	long := os.Getenv("MCPD_LONG") != ""
	r := rand.New(rand.NewPCG(seed, 0))
	var faults []fleetFault
	rounds, effects, timeouts := 1, 0, []time.Duration{time.Second, 3 * time.Second}
	if long {
		rounds, effects, timeouts = 4, 10_000, []time.Duration{2 * time.Second, 20 * time.Second}
	}
	for range rounds {
		round := fleetFaults(300 * time.Millisecond)
		if long {
			round = append(fleetFaults(5*time.Second), longFaults()...)
		}
		r.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		faults = append(faults, round...)
	}
	seen := newWitness()
	defer seen.Close()
	limits, upstream := newLimitWitness(t), newNotes(t)
	f := newFleet(t, fmt.Sprintf(fleetTools, strings.TrimPrefix(seen.URL, "http://"))+fmt.Sprintf(limitedTools, strings.TrimPrefix(limits.URL, "http://")), fmt.Sprintf(noteConfig, upstream.URL))
	f.limits = limits
	p := &promises{kept: map[string]bool{}, numbers: map[string]string{}, ends: map[string]int{}}
	over, late := make(chan struct{}), make(chan struct{})
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	streams := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // see newFleet
	client := func(name string, n uint64, timeout time.Duration) *fleetClient {
		browser := &http.Client{Transport: transport, Timeout: timeout}
		return &fleetClient{promises: p, name: name, rand: rand.New(rand.NewPCG(seed, n)), over: over, late: late, front: &daemon{url: f.front.URL, client: browser},
			streams: streams, direct: func() (all []*daemon) {
				for _, r := range f.replicas {
					var d *daemon
					if u := r.url.Load(); u != nil {
						d = &daemon{url: u.String(), client: browser}
					}
					all = append(all, d)
				}
				return all
			}}
	}
	var clients sync.WaitGroup
	for n := range uint64(16) {
		c := client(fmt.Sprintf("c%d", n), n+1, timeouts[n%2])
		if n < 6 {
			c.limited = limits.call(c, false)
		}
		clients.Go(func() {
			for !isClosed(over) {
				if c.step(); !long {
					c.pause()
				}
			}
		})
	}
	probe, limited := client("probe", 100, time.Second), client("limited", 101, patience)
	f.whileAway = func() { limits.checkAway(limited) }
	subscribers, news, unsubscribe := f.startSubscribers(client("subscribers", 102, patience))
	defer unsubscribe()
	recovers := func(after string) {
		began, process, changed := time.Now(), r.IntN(len(f.replicas)), time.Duration(0)
		var updated sync.WaitGroup
		updated.Go(func() {
			upstream.update(f, process, subscribers, news)
			changed = time.Since(began)
		})
		for _, act := range []func(string) error{probe.call, probe.counts, func(id string) error { return probe.converse("asks", "sure", id) }, func(id string) error { return probe.legacy("asks", id) }} {
			probe.until("probe", act)
		}
		took := time.Since(began)
		updated.Wait()
		t.Logf("%v: recovered from %s after %v, and subscribers after %v; %d effects", time.Since(start).Round(time.Millisecond), after, took.Round(time.Millisecond), changed.Round(time.Millisecond), seen.count())
		if long && slower == 1 && max(took, changed) > 5*time.Second {
			t.Errorf("after %s, clients recovered only after %v, and subscribers after %v", after, took, changed)
		}
	}
	recovers("the start")
	for _, fault := range faults {
		target := f.replicas[r.IntN(len(f.replicas))]
		from := wallTime()
		fault.do(f, target)
		limits.noteFault(from)
		recovers(fault.name + " of " + target.name)
	}
	for seen.count() < effects {
		probe.step()
	}
	close(over)
	if !long {
		close(late) // another replica reports what a killed one was doing only after 10 s
	}
	settled := make(chan struct{})
	go func() {
		clients.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-time.After(patience):
		close(late)
		<-settled
	}
	if limited.until("limited call", limits.call(limited, false)); long {
		limits.checkAll(limited)
	}
	unsubscribe()
	f.checkPromises(p, seen, long)
	limits.check(f)
	f.stopAll()
	t.Logf("the logs:\n%s", f.logCounts())
	if t.Failed() {
		t.Logf("repeat with MCPD_SEED=%d", seed)
	}
}

// checkPromises compares what clients received with what the witness has seen.
func (f *fleet) checkPromises(p *promises, seen *witness, long bool) {
	f.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, problem := range p.problems {
		f.Error(problem)
	}
	for id, n := range seen.effects {
		if n > 1 {
			f.Errorf("effect %s happened %d times", id, n)
		}
	}
	for id := range p.kept {
		if seen.effects[id] == 0 {
			f.Errorf("effect %s was acknowledged, and did not happen", id)
		}
	}
	highest := 0
	for text := range p.numbers {
		n, err := strconv.Atoi(text)
		if err != nil {
			f.Errorf("the counter gave %q", text)
		}
		highest = max(highest, n)
	}
	if highest > p.tried || highest < len(p.numbers) {
		f.Errorf("%d increments gave %d numbers up to %d", p.tried, len(p.numbers), highest)
	}
	for _, how := range slices.Sorted(maps.Keys(p.ends)) {
		if f.Logf("%6d × %s", p.ends[how], how); long && strings.Contains(how, errUndecided.Error()) {
			f.Errorf("%s after %v", how, patience)
		}
	}
	f.Logf("%d effects, %d of them acknowledged, and %d increments", len(seen.effects), len(p.kept), len(p.numbers))
}
