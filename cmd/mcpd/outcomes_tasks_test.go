package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"
)

// begin has a call run as a task, and returns the id as a member of an object; "" where it
// was refused before it was one.
func (s *outcomeScene) begin(params string) string {
	id := taskID.FindSubmatch(s.post("tools/call", params))
	if id == nil {
		return ""
	}
	s.tasks.Add(1)
	return fmt.Sprintf(`{"taskId":%q`, id[1])
}

// task has a call run as a task. One that asks is answered, cancelled or left alone.
func (s *outcomeScene) task(r *rand.Rand) {
	of := s.begin(fmt.Sprintf(`{"name":"job","arguments":{"ask":%t}}`, r.IntN(2) == 0))
	if of == "" {
		return
	}
	switch r.IntN(4) {
	case 0:
		s.post("tasks/cancel", of+"}")
		return
	case 1:
		return
	}
	for end := time.Now().Add(patience); ; runtime.Gosched() {
		got := string(s.post("tasks/get", of+"}"))
		if strings.Contains(got, `"status":"input_required"`) {
			s.post("tasks/update", of+`,"inputResponses":{"first":{"action":"decline"}}}`)
			continue
		}
		if !strings.Contains(got, `"status":"working"`) {
			return
		}
		if time.Now().After(end) {
			s.Errorf("the task goes on: %s", got)
			return
		}
	}
}

// cancelTask cancels a task that does not end by itself.
func (s *outcomeScene) cancelTask(*rand.Rand) {
	if of := s.begin(`{"name":"long","arguments":{}}`); of != "" {
		s.post("tasks/cancel", of+"}")
	}
}

// lasting has a task run that does not end by itself, and lasts reports whether one runs.
// A task for whose call there is no room has ended at once, and another one is begun.
func (s *outcomeScene) lasting() {
	s.await("a task that does not end", func() bool {
		if s.lasts() {
			return true
		}
		s.begin(`{"name":"lasts","arguments":{}}`)
		return false
	})
}

func (s *outcomeScene) lasts() bool {
	begun, ended := s.ledger.count("lasts")
	return begun > ended
}
