package serve

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
)

func (f *Front) healthz(w http.ResponseWriter, r *http.Request) {
	if !requireGET(w, r) {
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readiness is the response of /readyz.
type readiness struct {
	Ready bool `json:"ready"`
	// Status is for people: "healthy", or the problem.
	Status       string  `json:"status"`
	Revision     string  `json:"revision"`
	AgeSeconds   float64 `json:"age_seconds"`
	Tools        int     `json:"tools"`
	Resources    int     `json:"resources"`
	Templates    int     `json:"templates"`
	Prompts      int     `json:"prompts"`
	Synchronized bool    `json:"synchronized"`
	// ProblemCount is public; Problems are for authenticated callers.
	ProblemCount int       `json:"problem_count"`
	Problems     diag.List `json:"problems"`
	// RestartNeeded is true if a changed setting of the config file needs a
	// restart.
	RestartNeeded bool `json:"restart_needed"`
}

// readyz reports the served revision, its age, and the problems of the files on
// disk. It answers 503 only while no calls are served.
func (f *Front) readyz(w http.ResponseWriter, r *http.Request) {
	if !requireGET(w, r) {
		return
	}
	status := f.Status()
	body := readiness{
		Ready: status.Ready(), Status: status.Health(), Revision: status.Revision,
		Tools: status.Tools, Resources: status.Resources, Templates: status.Templates, Prompts: status.Prompts,
		Synchronized: status.Synchronized, ProblemCount: len(status.Problems), Problems: status.Problems, RestartNeeded: status.RestartNeeded,
	}
	if body.Problems == nil || !f.auth.isAuthenticated(r) {
		body.Problems = diag.List{} // source lines are for authenticated callers
	}
	if len(f.bundleProblems()) > 0 { // the text is in Problems
		body.Status = strings.TrimPrefix(body.Status+"; the bundle has a problem", "healthy; ")
	}
	if !status.Since.IsZero() {
		body.AgeSeconds = time.Since(status.Since).Seconds()
	}
	code := http.StatusOK
	if !body.Ready {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, body)
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusNotFound, map[string]string{
		"error": "INVALID_INPUT", "message": "no such route; MCP is on /mcp, /ws and /sse, REST on /mcp/capabilities and /mcp/execute",
	})
}

func requireGET(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"error": "INVALID_INPUT", "message": "this route takes GET"})
	return false
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	// A client that is gone is not an error.
	_ = json.NewEncoder(w).Encode(value)
}

// clients returns the number of connected clients by transport; sessions belong
// to the streamable transport.
func (f *Front) clients() []engine.Clients {
	now := f.mcp.ClientCounts()
	counted := []engine.Clients{{Transport: "streamable", Sessions: now.Sessions}}
	for _, transport := range slices.Sorted(maps.Keys(now.Connections)) {
		counted = append(counted, engine.Clients{Transport: transport, Connections: now.Connections[transport]})
	}
	return counted
}

// withAuthDiagnostics adds the errors of authentication to a status, at the
// auth blocks of the current snapshot.
func (a *authManager) withAuthDiagnostics(status engine.Status) engine.Status {
	now := a.engine.Snapshot()
	if now == nil || len(now.Auths()) == 0 {
		return status
	}
	barred := a.keyFileDiagnostics(now.Auths())
	if err := a.applyError(now); err != nil && len(barred) == 0 {
		barred = diag.List{authDiagnostic(now.Auths()[0], err.Error())}
	}
	if len(barred) == 0 {
		return status
	}
	status.Synchronized = false
	for _, b := range barred {
		reported := func(p diag.Diagnostic) bool { return p.Code == b.Code && p.Range == b.Range }
		if !slices.ContainsFunc(status.Problems, reported) {
			status.Problems = append(status.Problems, b)
		}
	}
	status.Problems = status.Problems.Sort()
	return status
}

// keyFileDiagnostics returns a diagnostic for each block with an unreadable key
// file.
func (a *authManager) keyFileDiagnostics(blocks []engine.Auth) (found diag.List) {
	errs := a.registry.KeyFileErrors()
	for _, b := range blocks {
		if b.Keys != nil && errs[b.Keys.File] != nil {
			found = append(found, authDiagnostic(b, errs[b.Keys.File].Error()))
		}
	}
	return found
}

// applyError returns the error of applying the blocks of a snapshot, if it
// failed.
func (a *authManager) applyError(of *engine.Snapshot) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lastFailure.snapshot != of {
		return nil
	}
	return a.lastFailure.err
}

// authDiagnostic returns the diagnostic that a load would report for a block.
func authDiagnostic(b engine.Auth, why string) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "bad-auth", Range: b.Range, Summary: fmt.Sprintf("auth %q %q cannot be applied: %s", b.Kind, b.Name, why),
		Detail: "correct the block or what it names",
	}
}
