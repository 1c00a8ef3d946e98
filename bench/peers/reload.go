package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// reload holds the cost of edited files. Only mcpd reloads: the peers define their tools
// in code.
type reload struct {
	Server     string  `json:"server"`
	Title      string  `json:"title"`
	Tools      int     `json:"tools"`
	IdleMedian float64 `json:"idle_ms"` // from the save to the first new result
	IdleMax    float64 `json:"idle_max_ms"`
	LoadMedian float64 `json:"load_ms"` // the same while 8 connections make calls
	LoadMax    float64 `json:"load_max_ms"`
	P99        float64 `json:"p99_us"`        // of these calls without reloads
	P99Reload  float64 `json:"p99_reload_us"` // and with reloads
}

// versionTool returns its version. A reload publishes the next one.
const versionTool = `tool "version" {
  description = "Returns the version of its file."

  output "version" { type = number }

  run = <<JS
    return { version: %d };
  JS
}
`

// reloads measures a server with the catalogs of the plan.
func (s *site) reloads(v server, p plan) ([]reload, error) {
	var rows []reload
	for _, tools := range p.catalogs {
		r, err := s.reload(v, p, tools)
		if err != nil {
			return nil, fmt.Errorf("reload %d tools: %w", tools, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// reload edits a file of a running server, first alone and then under load.
func (s *site) reload(v server, p plan, tools int) (_ reload, err error) {
	c, err := s.join(v, scenario{Work: "add", Mode: "http", Callers: 8, Tools: tools})
	if err != nil {
		return reload{}, err
	}
	defer c.leave()
	e := &editor{process: c.process}
	if e.connection, err = dialHTTP(c.process.address, "/mcp", c.process.mode); err != nil {
		return reload{}, err
	}
	defer e.connection.Close()
	if _, err := e.save(); err != nil { // adds the tool
		return reload{}, err
	}
	r := reload{Server: v.name, Title: v.title, Tools: tools}
	idle, err := e.saves(p.reloads)
	if err != nil {
		return reload{}, err
	}
	r.IdleMedian, r.IdleMax = median(idle), slices.Max(idle)

	busy := time.Duration(p.reloads) * 250 * time.Millisecond
	if err := c.load(p.warmUp); err != nil {
		return reload{}, err
	}
	if err := c.load(busy); err != nil {
		return reload{}, err
	}
	r.P99 = micros(percentile(c.latencies(), 0.99))
	loaded := make(chan error, 1)
	go func() { loaded <- c.load(busy) }()
	var took []float64
	for err == nil && len(loaded) == 0 {
		var one []float64
		one, err = e.saves(1)
		took = append(took, one...)
	}
	if err := errors.Join(err, <-loaded); err != nil {
		return reload{}, err
	}
	r.P99Reload = micros(percentile(c.latencies(), 0.99))
	r.LoadMedian, r.LoadMax = median(took), slices.Max(took)
	return r, nil
}

// editor saves new versions of a tool file, and calls the tool until it sees them.
type editor struct {
	process    *process
	connection *httpConnection
	version    int
}

// saves saves a number of versions, with pauses, and returns the milliseconds until
// each was served.
func (e *editor) saves(count int) (took []float64, err error) {
	for range count {
		time.Sleep(150 * time.Millisecond)
		d, err := e.save()
		if err != nil {
			return nil, err
		}
		took = append(took, millis(d))
	}
	return took, nil
}

// save replaces the file as editors do, and waits until the tool returns the new
// version.
func (e *editor) save() (time.Duration, error) {
	e.version++
	path := filepath.Join(e.process.work, "tools.d", "version.hcl")
	next := filepath.Join(e.process.work, "version.hcl")
	if err := os.WriteFile(next, fmt.Appendf(nil, versionTool, e.version), 0o644); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := os.Rename(next, path); err != nil {
		return 0, err
	}
	want := []byte(`"version":` + strconv.Itoa(e.version) + `}`)
	message := newMessage("version", e.process.mode.revision, 0, 0)
	for time.Since(start) < patience {
		message.next()
		response, err := e.connection.send(message)
		if err != nil && e.version > 1 { // before the first version there is no tool
			return 0, err
		}
		if bytes.Contains(response, want) {
			return time.Since(start), nil
		}
		time.Sleep(time.Millisecond)
	}
	return 0, fmt.Errorf("version %d is not served after %s\n%s", e.version, patience, e.process.log)
}
