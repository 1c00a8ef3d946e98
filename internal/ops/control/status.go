package control

import (
	"encoding/json"
	"time"
)

// StatusResult is the result of [Status], as far as its types are in this package. Package main of mcpd
// adds the bundle, the appliance and the confinement of scripts.
type StatusResult struct {
	Status        string          `json:"status"`
	Ready         bool            `json:"ready"`
	Synchronized  bool            `json:"synchronized"`
	RestartNeeded bool            `json:"restart_needed"`
	Problems      json.RawMessage `json:"problems"` // a diag.List
	State         *StateReach     `json:"state,omitempty"`
	Revision      string          `json:"revision"`
	Since         time.Time       `json:"since"`
	AgeSeconds    float64         `json:"age_seconds"`
	Serves        ServedCounts    `json:"serves"`
	Loads         LoadCounts      `json:"loads"`
	Calls         CallCounts      `json:"calls"`
	HookRuns      HookRunCounts   `json:"hook_runs"`
	Upstreams     []UpstreamState `json:"upstreams"`
	Sessions      map[string]int  `json:"sessions"`
	Listeners     []string        `json:"listeners"`
	Version       string          `json:"version"`
	PID           int             `json:"pid"`
	Started       time.Time       `json:"started"`
	UptimeSeconds float64         `json:"uptime_seconds"`
}

// ScriptState describes the execution of scripts. With the inline executor, the processes are those for
// agent code.
type ScriptState struct {
	Executor  string `json:"executor"`
	Processes int    `json:"processes"`
	Calls     int    `json:"calls"`
	Computing int    `json:"computing"`
	Lost      uint64 `json:"lost"`
}

// UpstreamState describes an upstream server.
type UpstreamState struct {
	Name          string     `json:"name"`
	Up            bool       `json:"up"`
	Idle          bool       `json:"idle,omitempty"`
	Error         string     `json:"error,omitempty"`
	Since         *time.Time `json:"since,omitempty"`
	Again         *time.Time `json:"again,omitempty"`
	Revision      string     `json:"revision,omitempty"`
	Offered       int        `json:"offered"`
	Excluded      int        `json:"left"`
	ExcludedItems []string   `json:"left_out"`
	// Quarantined holds the tools that were not accepted in their current version.
	Quarantined []string `json:"quarantined"`
	// LockError is the reason why accepted tools are not in the lock file.
	LockError string `json:"unkept,omitempty"`
}

// StateReach describes the state database of a fleet.
type StateReach struct {
	// Database is its host, port and name.
	Database string `json:"database"`
	Away     bool   `json:"away"`
	// Heartbeat is the time of the last heartbeat that reached it.
	Heartbeat time.Time `json:"heartbeat"`
	Age       float64   `json:"heartbeat_age_seconds"`
	Error     string    `json:"error,omitempty"`
}

// ServedCounts counts the items that a server serves.
type ServedCounts struct {
	Tools     int `json:"tools"`
	Resources int `json:"resources"`
	Templates int `json:"templates"`
	Prompts   int `json:"prompts"`
	Policies  int `json:"policies"`
	Limits    int `json:"limits"`
	Hooks     int `json:"hooks"`
}

// LoadCounts counts loads since the start.
type LoadCounts struct {
	Total  uint64 `json:"total"`
	Failed uint64 `json:"failed"`
}

// CallCounts counts calls since the start.
type CallCounts struct {
	Running int    `json:"running"`
	Ended   uint64 `json:"ended"`
	Failed  uint64 `json:"failed"`
}

// HookRunCounts counts failed hook runs and backpressure since the start.
type HookRunCounts struct {
	Failed uint64 `json:"failed"`
	Waits  uint64 `json:"waits"`
}
