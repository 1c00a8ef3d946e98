package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
)

func TestStatus_health(t *testing.T) {
	in := func(severity diag.Severity, files ...string) diag.List {
		var list diag.List
		for _, file := range files {
			list = append(list, diag.Diagnostic{Severity: severity, Range: diag.Range{File: file}})
		}
		return list
	}
	away := time.Now()
	for _, r := range []struct {
		status engine.Status
		want   string
	}{
		{engine.Status{}, "nothing is loaded yet"},
		{engine.Status{Revision: "r", Loads: 1, Synchronized: true}, "healthy"},
		{engine.Status{Revision: "r", Loads: 1, Synchronized: true, Problems: in(diag.Warning, "a")}, "healthy"},
		{engine.Status{Revision: "r", Loads: 2, Problems: in(diag.Error, "a")}, "serving last good, 1 file broken"},
		{engine.Status{Revision: "r", Loads: 2, Problems: append(in(diag.Error, "a", "b", "b", "c"), in(diag.Warning, "d")...)}, "serving last good, 3 files broken"},
		{engine.Status{Revision: "r", Loads: 2, Problems: in(diag.Error, "")}, "serving last good, 1 mistake"},
		{engine.Status{Revision: "r", Loads: 2, Problems: in(diag.Error, "", "")}, "serving last good, 2 mistakes"},
		{engine.Status{Loads: 1, Problems: in(diag.Error, "a")}, "nothing is served, 1 file broken"},
		{engine.Status{Revision: "r", Loads: 1, Synchronized: true, Draining: true}, "shutting down"},
		{engine.Status{Revision: "r", Loads: 1, Synchronized: true, AuditFailing: true}, "the audit log cannot be written"},
		{engine.Status{Revision: "r", Loads: 1, Synchronized: true, AuditFailing: true, RejectingCalls: true}, "calls are rejected, because the audit log cannot be written"},
		{engine.Status{Revision: "r", Loads: 2, AuditFailing: true, Problems: in(diag.Error, "a")}, "the audit log cannot be written; serving last good, 1 file broken"},
		{engine.Status{Revision: "r", Loads: 1, Synchronized: true, AuditFailing: true, Draining: true}, "shutting down"},
		{engine.Status{Revision: "r", Loads: 1, Synchronized: true, StateAway: away}, "the state database is away"},
		{engine.Status{Revision: "r", Loads: 2, StateAway: away, Upstreams: []engine.UpstreamStatus{{Name: "crm", Err: errors.New("refused"), Since: away}}, Problems: in(diag.Error, "a")}, "serving last good, 1 file broken; the state database is away; not reached: crm"},
		{engine.Status{Revision: "r", Loads: 1, Synchronized: true, StateAway: away, Draining: true}, "shutting down"},
	} {
		if got := r.status.Health(); got != r.want {
			t.Errorf("%+v: %q, want %q", r.status, got, r.want)
		}
	}
}

// The result of a load is printed later, with secrets masked.
func TestStatus_shown(t *testing.T) {
	folder := files("a.hcl", probedTool)
	s := server(t, engine.Options{Files: engine.Files{Tools: folder}})
	folder["b.hcl"] = files("b.hcl", `tool "b" { rum = 1 }`)["b.hcl"]
	if _, err := s.Reload(t.Context(), engine.Change{Paths: []string{"b.hcl"}}); err == nil {
		t.Fatal("a broken file is loaded")
	}
	if got := string(s.Status().Shown()["tools.d/b.hcl"]); got != `tool "b" { rum = 1 }` {
		t.Errorf("the sources are %q", got)
	}
	if workers := s.Status().Workers; workers != nil {
		t.Errorf("there are workers: %+v", workers)
	}
}
