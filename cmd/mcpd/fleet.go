package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/ops/control"
)

// fleetState is the JSON output of status --fleet.
type fleetState struct {
	// Healthy means that all replicas are alive and healthy, and serve the same revision.
	Healthy bool `json:"healthy"`
	// Summary says how many replicas serve which revision.
	Summary  string         `json:"summary"`
	Replicas []fleetReplica `json:"replicas"`
}

// fleetReplica is a replica in the JSON output of status --fleet. What the replica did not
// publish is missing.
type fleetReplica struct {
	ID           string       `json:"id"`
	Host         string       `json:"host"`
	Self         bool         `json:"self"`
	State        replicaState `json:"state"`
	HeartbeatAge float64      `json:"heartbeat_age_seconds"`
	state.ReplicaInfo
	UptimeSeconds float64 `json:"uptime_seconds,omitempty"`
}

// replicaState is the state of a replica.
type replicaState string

const (
	replicaAlive    replicaState = "alive"
	replicaDraining replicaState = "draining"
	// replicaDead has sent no heartbeat for [state.DeadAfter].
	replicaDead replicaState = "presumed_dead"
)

// describe returns what this server publishes to its fleet.
func (o *runningServer) describe() state.ReplicaInfo {
	s := o.server.Status()
	s.StateAway = time.Time{} // what the others read has reached the database
	info := state.ReplicaInfo{
		Version: version(), Started: o.began.UTC(), Revision: s.Revision, Since: s.Since.UTC(),
		Status: o.health(s), Draining: s.Draining, Running: s.Running,
	}
	for _, p := range s.Problems {
		if p.Severity == diag.Error {
			info.Errors++
		}
	}
	return info
}

// fleetState lists the replicas in the state database of this server.
func (o *runningServer) fleetState() (fleetState, error) {
	replicas, err := o.server.Inside().States().Replicas()
	if errors.Is(err, state.ErrNotShared) {
		return fleetState{}, errors.New("this server has no state database, so it knows no other servers; add a state block with a PostgreSQL url, or start it with --state postgres://…")
	}
	if err != nil {
		return fleetState{}, err
	}
	row := fleetState{Replicas: []fleetReplica{}}
	for _, r := range replicas {
		one := fleetReplica{ID: r.ID, Host: r.Host, Self: r.Self, State: replicaAlive, HeartbeatAge: r.HeartbeatAge.Seconds()}
		if r.Info != nil {
			one.ReplicaInfo = *r.Info
		}
		if r.Self {
			at := one.Endpoint
			one.ReplicaInfo = o.describe() // newer than the last heartbeat
			one.Endpoint = at
		}
		if !one.Started.IsZero() {
			one.UptimeSeconds = max(0, time.Since(one.Started).Seconds())
		}
		switch {
		case r.HeartbeatAge > state.DeadAfter:
			one.State = replicaDead
		case one.Draining:
			one.State = replicaDraining
		}
		row.Replicas = append(row.Replicas, one)
	}
	row.summarize()
	return row, nil
}

// summarize sets the health and the summary. Replicas that are presumed dead serve nothing.
func (r *fleetState) summarize() {
	serving := map[string]int{}
	r.Healthy = true
	for _, one := range r.Replicas {
		if one.State != replicaDead {
			serving[one.Revision]++
		}
		if one.State != replicaAlive || one.Status != "" && one.Status != "healthy" {
			r.Healthy = false
		}
	}
	alive, silent := 0, serving[""]
	for _, n := range serving {
		alive += n
	}
	delete(serving, "")
	revisions := slices.SortedFunc(maps.Keys(serving), func(a, b string) int {
		return cmp.Or(serving[b]-serving[a], strings.Compare(a, b))
	})
	r.Healthy = r.Healthy && len(revisions) <= 1
	var parts []string
	for _, revision := range revisions {
		part := fmt.Sprintf("%d of %d serve revision %.12s", serving[revision], alive, revision)
		if serving[revision] == alive {
			part = fmt.Sprintf("all serve revision %.12s", revision)
		}
		parts = append(parts, part)
	}
	if silent > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d do not say what they serve", silent, alive))
	}
	if dead := len(r.Replicas) - alive; dead > 0 {
		parts = append(parts, fmt.Sprintf("%d presumed dead", dead))
	}
	r.Summary = count(len(r.Replicas), "replica") + ": " + strings.Join(parts, ", ")
}

// fleetStatus prints the fleet of the running server. It returns an error unless all replicas are healthy, and
// at least as many alive as expected.
func fleetStatus(ctx context.Context, e env, a *controlClientFlags, expect int) error {
	var row fleetState
	if err := a.ask(ctx, e, control.Fleet, statusPatience, &row); err != nil {
		return err
	}
	if !a.asJSON {
		if err := row.print(e); err != nil {
			return err
		}
	}
	alive := 0
	for _, one := range row.Replicas {
		if one.State == replicaAlive {
			alive++
		}
	}
	if alive < expect && !a.asJSON {
		return findingsError("%d of %d expected replicas alive", alive, expect)
	}
	if !row.Healthy || alive < expect {
		return &exitError{code: exitFindings} // the fleet was printed
	}
	return nil
}

func (r *fleetState) print(e env) error {
	table := tabwriter.NewWriter(e.stdout, 0, 0, 3, ' ', 0)
	lines := [][]string{{"REPLICA", "HOST", "STATE", "HEARTBEAT", "VERSION", "REVISION", "SINCE", "UP", "CALLS", "STATUS"}}
	for _, one := range r.Replicas {
		id := one.ID
		if one.Self {
			id += " *"
		}
		line := []string{id, one.Host, strings.ReplaceAll(string(one.State), "_", " "), seconds(one.HeartbeatAge) + " ago", "?", "?", "?", "?", "?", "?"}
		if one.Version != "" {
			line = append(line[:4], one.Version, fmt.Sprintf("%.12s", cmp.Or(one.Revision, "none")), "-", seconds(one.UptimeSeconds), strconv.Itoa(one.Running), one.Status)
			if !one.Since.IsZero() {
				line[6] = one.Since.Format(time.RFC3339)
			}
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		for i, cell := range line {
			line[i] = sanitize(cell)
		}
		if _, err := fmt.Fprintln(table, strings.Join(line, "\t")); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.stdout, sanitize(r.Summary))
	return err
}
