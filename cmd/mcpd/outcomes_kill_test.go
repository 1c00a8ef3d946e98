package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
)

// processes returns the ids of those that run bodies.
func processes() (ours []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		var id int
		if _, err := fmt.Sscanf(file, "/proc/%d/stat", &id); err != nil {
			continue
		}
		if fields, err := stat(id); err == nil && fields[0] != "Z" && fields[1] == fmt.Sprint(os.Getpid()) {
			ours = append(ours, id)
		}
	}
	return ours
}

// kill ends one of the processes that run bodies, as the system may at any time. Calls
// that are cut are not to die of it.
func (s *outcomeScene) kill(r *rand.Rand) {
	s.killing.Lock()
	defer s.killing.Unlock()
	if ours := processes(); !s.stalling && len(ours) > 0 {
		s.signal(ours[r.IntN(len(ours))])
	}
}

// signal ends a process, unless it has ended meanwhile.
func (s *outcomeScene) signal(id int) {
	if p, err := os.FindProcess(id); err == nil && p.Kill() == nil {
		s.killed.Add(1)
	}
}

// rendezvous is a call that waits in its body until its process has died.
type rendezvous struct {
	arrived, dead chan struct{}
	once          sync.Once
}

// wait is what the body calls: in each process that it runs in.
func (m *rendezvous) wait(ctx context.Context) error {
	m.once.Do(func() { close(m.arrived) })
	select {
	case <-m.dead:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// killInFlight ends all processes that run bodies while one of them runs a call.
func (s *outcomeScene) killInFlight(*rand.Rand) {
	s.killing.Lock()
	defer s.killing.Unlock()
	if s.stalling {
		return
	}
	m := &rendezvous{arrived: make(chan struct{}), dead: make(chan struct{})}
	s.ledger.meeting.Store(m)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.call(context.Background(), "survives", `{}`, nil)
	}()
	select {
	case <-m.arrived:
		before := s.killed.Load()
		for _, id := range processes() {
			s.signal(id)
		}
		if s.killed.Load() == before {
			s.Error("no process was killed while a call was in one")
		}
	case <-ended: // it was refused
	}
	close(m.dead)
	<-ended
}
