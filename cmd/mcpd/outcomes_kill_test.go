package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// processes returns the ids of those that run bodies of the scene: no others bear its name.
func (s *outcomeScene) processes() (ours []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		var id int
		if _, err := fmt.Sscanf(file, "/proc/%d/cmdline", &id); err != nil {
			continue
		}
		if line, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(line), s.name+"\x00") {
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
	if ours := s.processes(); !s.stalling && len(ours) > 0 {
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
		for _, id := range s.processes() {
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
