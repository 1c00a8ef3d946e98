package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// captured are the names of what has its arguments kept in the audit log of testdata/outcomes.
var captured = []string{"adds", "plan", "row"}

// auditBlock is the audit block of a scene.
func (s *outcomeScene) auditBlock() string {
	names, _ := json.Marshal(captured) // of texts
	return fmt.Sprintf("audit {\n  path    = %q\n  mode    = %q\n  capture = %s\n}\n", s.auditPath(), s.auditMode(), names)
}

func (s *outcomeScene) auditPath() string { return filepath.Join(s.auditDir, "audit.jsonl") }

// auditMode is strict where calls are cut: what is written down of them is waited for.
func (s *outcomeScene) auditMode() audit.Mode {
	if s.cut {
		return audit.Strict
	}
	return audit.Relaxed
}

// checkAudit holds the audit log of the server that has ended to what hooks were told: one
// record of each call says what they say, and those that ran bodies had their intent before.
func (s *outcomeScene) checkAudit(t *testing.T) {
	t.Helper()
	report, err := audit.Verify(s.auditPath(), nil)
	if err != nil || len(report.Findings) > 0 {
		t.Fatalf("the audit log: %v, %+v", err, report)
	}
	intents := s.intents(t)
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	written, ran := map[string]bool{}, map[string]bool{}
	strange, err := audit.Calls(s.auditPath(), 0, func(c *audit.Call) error {
		told := s.ledger.calls[c.Call]
		switch {
		case told == nil:
			t.Errorf("no hook was told of %s, a call of %s", c.Call, c.Name)
			return nil
		case written[c.Call]:
			t.Errorf("%s, a call of %s, is written down twice", c.Call, c.Name)
		}
		written[c.Call] = true
		if want := phaseOf(told.last); phaseIn(c) != want {
			t.Errorf("%s, a call of %s, is written down as %q, and hooks were told of %q", c.Call, c.Name, phaseIn(c), want)
		}
		if s.auditMode() == audit.Strict && c.Outcome == audit.OutcomeOK && c.Kind != "completion" && !c.Cached {
			leg := fmt.Sprint(c.Root, " ", c.Leg) // who comes twice with the state of a leg has the answer of the first
			ran[leg] = ran[leg] || intents[c.Call]
		}
		if kept := len(c.Values) > 2; kept && !slices.Contains(captured, c.Name) {
			t.Errorf("arguments of %s are kept: %s", c.Name, c.Values)
		} else if kept {
			s.kept[c.Kind] = true
		}
		return nil
	})
	if err != nil || strange > 0 {
		t.Errorf("%d strange lines, %v", strange, err)
	}
	for leg, intended := range ran {
		if !intended {
			t.Errorf("leg %s ran, and nothing of it was written down before", leg)
		}
	}
	for id, told := range s.ledger.calls {
		if !written[id] {
			t.Errorf("%s, a call of %s which ended with %q, is not written down", id, told.first.Tool, phaseOf(told.last))
		}
	}
}

// phaseIn is [phaseOf] of a record.
func phaseIn(c *audit.Call) string {
	e := call.Event{Phase: call.End}
	switch c.Outcome {
	case audit.OutcomeOK:
	case audit.OutcomeInputRequired:
		e.Outcome = c.Outcome
	default:
		e.Phase, e.Err = call.Failed, &call.Error{Code: call.Code(c.Outcome)}
	}
	return phaseOf(e)
}

// intents returns the calls whose intent stands before their outcome.
func (s *outcomeScene) intents(t *testing.T) map[string]bool {
	t.Helper()
	file, err := os.Open(s.auditPath())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	intents, ended := map[string]bool{}, map[string]bool{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var line struct {
			Kind string `json:"kind"`
			Call string `json:"call_id"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		switch {
		case line.Kind == "outcome":
			ended[line.Call] = true
		case line.Kind == "intent" && ended[line.Call]:
			t.Errorf("the intent of %s is behind its outcome", line.Call)
		case line.Kind == "intent":
			intents[line.Call] = true
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return intents
}
