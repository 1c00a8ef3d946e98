package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// Fleet is a store that knows the servers which use it at the same time.
type Fleet interface {
	// Describe makes the store publish what about returns, with each heartbeat until it is closed. about
	// must not block, nor use the store except Self and Reach.
	Describe(about func() ReplicaInfo)
	// Self returns the id of this replica and the time since its last heartbeat that reached the store.
	Self() (id string, age time.Duration)
	// Reach returns whether heartbeats reach the database.
	Reach() Reach
	// Replicas returns the replicas by the age of their processes, oldest first.
	Replicas() ([]Replica, error)
	// Beat sends a heartbeat now.
	Beat() error
	// LocalIP returns the address of this machine in a connection to the database.
	LocalIP() (netip.Addr, error)
}

// Reach says whether the heartbeats of this replica reach its database.
type Reach struct {
	// Database is the host, the port and the name of the database.
	Database string
	// Heartbeat is the time of the last heartbeat that reached it.
	Heartbeat time.Time
	// Err is the error of the last heartbeat; nil if it reached the database.
	Err error
}

// AwaySince returns the time of the last heartbeat that reached the database, if the last one did not,
// and otherwise the zero time. r may be nil.
func (r *Reach) AwaySince() time.Time {
	if r == nil || r.Err == nil {
		return time.Time{}
	}
	return r.Heartbeat
}

// ErrNotShared is the error for replicas of a store that only this process uses.
var ErrNotShared = errors.New("the state is not in a database that servers share")

// Describe is [Fleet.Describe], also for a store that is opened later.
func (l *Lazy) Describe(about func() ReplicaInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.about.Store(&about)
	if fleet := l.fleet.Load(); fleet != nil {
		(*fleet).Describe(l.describe)
	}
}

// Announce adds an endpoint to what this replica says about itself, and returns when the others can
// read it. The database must be open.
func (l *Lazy) Announce(e Endpoint) error {
	l.endpoint.Store(&e)
	fleet := l.fleet.Load()
	if fleet == nil {
		return ErrNotShared
	}
	(*fleet).Describe(l.describe)
	if err := (*fleet).Beat(); err != nil {
		return fmt.Errorf("announce this replica: %w", err)
	}
	return nil
}

// describe does not take mu, which Close holds while it waits for the last heartbeat.
func (l *Lazy) describe() ReplicaInfo {
	var i ReplicaInfo
	if about := l.about.Load(); about != nil {
		i = (*about)()
	}
	if e := l.endpoint.Load(); e != nil {
		i.Endpoint = *e
	}
	return i
}

// ReplicaConfig is a replica block: where this replica listens for requests of the others.
type ReplicaConfig struct {
	// Listen is HOST:PORT. Address is the HOST:PORT that the others connect to, or "" for the default.
	Listen, Address string
}

// Endpoint is where a replica takes requests of the others.
type Endpoint struct {
	// Process identifies the process: another one may listen at the address later.
	Process string `json:"process,omitempty"`
	// Address is HOST:PORT.
	Address string `json:"address,omitempty"`
}

// LocalIP is [Fleet.LocalIP]. The database must be open.
func (l *Lazy) LocalIP() (netip.Addr, error) {
	if fleet := l.fleet.Load(); fleet != nil {
		return (*fleet).LocalIP()
	}
	return netip.Addr{}, ErrNotShared
}

// Self is [Fleet.Self], and "" if no database is open. It does not wait.
func (l *Lazy) Self() (id string, age time.Duration) {
	if fleet := l.fleet.Load(); fleet != nil {
		return (*fleet).Self()
	}
	return "", 0
}

// Reach is [Fleet.Reach], and nil if no database is open. It does not wait.
func (l *Lazy) Reach() *Reach {
	fleet := l.fleet.Load()
	if fleet == nil {
		return nil
	}
	reach := (*fleet).Reach()
	return &reach
}

// Replicas is [Fleet.Replicas]. It opens a database but no file. The error is [ErrNotShared] without a
// database.
func (l *Lazy) Replicas() ([]Replica, error) {
	if !l.Shared() {
		return nil, ErrNotShared
	}
	store, err := l.Open()
	if err != nil {
		return nil, err
	}
	if fleet, ok := store.(Fleet); ok {
		return fleet.Replicas()
	}
	return nil, ErrNotShared
}

// DeadAfter is the time without a heartbeat after which a replica is presumed dead. Another replica then
// ends its work and removes it from the store.
const DeadAfter = 10 * time.Second

// Replica is a server that uses a store.
type Replica struct {
	// ID is unique for each opening of the store; a replica that was presumed dead gets a new one. Host
	// is the name of its machine. Self marks the replica that was asked.
	ID, Host string
	Self     bool
	// HeartbeatAge is the time since its last heartbeat, by the clock of the store.
	HeartbeatAge time.Duration
	// Info is what the replica says about itself, up to a heartbeat ago; nil if it says nothing, as a
	// replica of an earlier version, or one that has just started.
	Info *ReplicaInfo
}

// ReplicaInfo is what a replica says about itself. Replicas of several versions run side by side, so a
// reader ignores fields that it does not know, and a missing field has its zero value.
type ReplicaInfo struct {
	// Version is the version of mcpd. Started is the start of the process.
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started,omitzero"`
	// Revision identifies what the replica serves since Since; empty if it serves nothing.
	Revision string    `json:"revision,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// Status is the health in words, and Errors the number of errors in its files.
	Status string `json:"status,omitempty"`
	Errors int    `json:"errors,omitempty"`
	// Draining means that the replica rejects new calls.
	Draining bool `json:"draining,omitempty"`
	// Running is the number of its running calls.
	Running int `json:"running,omitempty"`
	// Endpoint is zero if the replica takes no requests of others.
	Endpoint
}

// maxReplicaInfo bounds the JSON of what a replica says about itself, in bytes.
const maxReplicaInfo = 16 << 10

// maxStatus bounds the status in words, in bytes.
const maxStatus = 1 << 10

// Encode returns the JSON of i. It truncates a long status.
func (i ReplicaInfo) Encode() ([]byte, error) {
	if len(i.Status) > maxStatus {
		i.Status = strings.ToValidUTF8(i.Status[:maxStatus], "") + "…"
	}
	return json.Marshal(i)
}

// DecodeReplicaInfo decodes what a replica of any version wrote.
func DecodeReplicaInfo(text []byte) (*ReplicaInfo, error) {
	if err := jsonguard.Check(text, jsonguard.Limits{Bytes: maxReplicaInfo}); err != nil {
		return nil, err
	}
	var i ReplicaInfo
	if err := json.Unmarshal(text, &i); err != nil {
		return nil, errors.New("decode replica info: the text is not an object with the known types")
	}
	return &i, nil
}
