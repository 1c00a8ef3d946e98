package control

import "time"

// The parts of the result of Status that describe one thing each. The rest is in package main of
// mcpd, which prints it.

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
