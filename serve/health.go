package serve

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/mcpd/mcpd/diag"
)

// healthz says that the process serves HTTP.
func (f *Front) healthz(w http.ResponseWriter, r *http.Request) {
	if !reads(w, r) {
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready bool `json:"ready"`
	// Status is for people: "healthy", or what is wrong.
	Status       string  `json:"status"`
	Revision     string  `json:"revision"`
	AgeSeconds   float64 `json:"age_seconds"`
	Tools        int     `json:"tools"`
	Resources    int     `json:"resources"`
	Templates    int     `json:"templates"`
	Prompts      int     `json:"prompts"`
	Synchronized bool    `json:"synchronized"`
	// ProblemCount is how many problems there are, for everybody; Problems are for callers
	// who may enter.
	ProblemCount int       `json:"problem_count"`
	Problems     diag.List `json:"problems"`
	// RestartNeeded says that the operator's file asks for what only a restart
	// brings about.
	RestartNeeded bool `json:"restart_needed"`
}

// readyz says what is served, how old it is, and what is wrong with the files
// on disk. It is 503 only when no calls are answered.
func (f *Front) readyz(w http.ResponseWriter, r *http.Request) {
	if !reads(w, r) {
		return
	}
	status := f.Status()
	answer := readiness{
		Ready: status.Ready(), Status: status.Health(), Revision: status.Revision,
		Tools: status.Tools, Resources: status.Resources, Templates: status.Templates, Prompts: status.Prompts,
		Synchronized: status.Synchronized, ProblemCount: len(status.Problems), Problems: status.Problems, RestartNeeded: status.RestartNeeded,
	}
	if answer.Problems == nil || !f.access.knows(r) {
		answer.Problems = diag.List{} // lines of files are for those who may enter
	}
	if !status.Since.IsZero() {
		answer.AgeSeconds = time.Since(status.Since).Seconds()
	}
	code := http.StatusOK
	if !answer.Ready {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, answer)
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusNotFound, map[string]string{
		"error": "INVALID_INPUT", "message": "no such route; MCP is on /mcp, /ws and /sse, REST on /mcp/capabilities and /mcp/execute",
	})
}

// takeBack has a page answer to which users come back, and says that there is none.
func takeBack(w http.ResponseWriter, r *http.Request, page http.Handler) {
	if page == nil {
		notFound(w, r)
		return
	}
	page.ServeHTTP(w, r)
}

func reads(w http.ResponseWriter, r *http.Request) bool {
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
	// A client that went away is nobody's error.
	_ = json.NewEncoder(w).Encode(value)
}
