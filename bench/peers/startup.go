package main

import (
	"fmt"
	"time"
)

// startup holds the cost of a server beside its calls. The figures are medians.
type startup struct {
	Server    string  `json:"server"`
	Title     string  `json:"title"`
	Program   int64   `json:"program_bytes"`
	Cold      float64 `json:"cold_start_ms"`     // on stdio, from the start to the first tools/list
	ColdCPU   float64 `json:"cold_start_cpu_ms"` // processor time of it
	Idle      int64   `json:"idle_bytes"`        // PSS of all processes with 10 tools
	Processes int     `json:"processes"`
	Session   int64   `json:"session_bytes"` // memory of another session
	Tool      int64   `json:"tool_bytes"`    // memory of another tool
	ManyBytes int64   `json:"many_bytes"`    // PSS with many tools
	Many      float64 `json:"many_ms"`       // over HTTP, from the start to the first result with many tools
}

// startups measures all servers in turns.
func (s *site) startups(all []server, p plan) ([]startup, error) {
	rows := make([]startup, len(all))
	cold, used := make([][]float64, len(all)), make([][]float64, len(all))
	for r := range p.rounds + 1 {
		for i := range all {
			at := (i + r) % len(all)
			elapsed, cpu, err := s.coldStart(all[at])
			if err != nil {
				return nil, err
			}
			if r > 0 { // the first round reads the programs from the disk
				cold[at], used[at] = append(cold[at], millis(elapsed)), append(used[at], millis(cpu))
			}
		}
	}
	for i, v := range all {
		size, err := s.size(v)
		if err != nil {
			return nil, err
		}
		rows[i] = startup{Server: v.name, Title: v.title, Program: size, Cold: median(cold[i]), ColdCPU: median(used[i])}
		if err := s.measureMemory(v, p, &rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// coldStart starts a server on stdio and waits for the list of its tools.
func (s *site) coldStart(v server) (elapsed, cpu time.Duration, err error) {
	sc := scenario{Work: "list", Mode: "stdio", Callers: 1, Tools: fewTools}
	c, err := s.join(v, sc)
	if err != nil {
		return 0, 0, err
	}
	defer c.leave()
	if err := c.callers[0].call(); err != nil {
		return 0, 0, fmt.Errorf("%s: first list: %w\n%s", v.name, err, c.process.log)
	}
	elapsed = time.Since(c.process.started)
	cpu, err = processorTime(c.process.id)
	return elapsed, cpu, err
}

// measureMemory fills in the memory of a server. Calls before each measurement make the
// garbage collector run, as in a server that is in use.
func (s *site) measureMemory(v server, p plan, to *startup) error {
	idle, count, err := s.footprint(v, p, scenario{Work: "add", Mode: "http", Callers: 1, Tools: fewTools}, nil)
	if err != nil {
		return err
	}
	to.Idle, to.Processes = idle, count
	if v.name != baseline { // it has no sessions
		open := func(c *contender) error { return c.process.openSessions(p.sessions) }
		few, _, err := s.footprint(v, p, scenario{Work: "add", Mode: "http-session", Callers: 1, Tools: fewTools}, nil)
		if err != nil {
			return err
		}
		many, _, err := s.footprint(v, p, scenario{Work: "add", Mode: "http-session", Callers: 1, Tools: fewTools}, open)
		if err != nil {
			return err
		}
		to.Session = (many - few) / int64(p.sessions)
	}
	first := func(c *contender) error {
		err := c.callers[0].call()
		to.Many = millis(time.Since(c.process.started))
		return err
	}
	many, _, err := s.footprint(v, p, scenario{Work: "add", Mode: "http", Callers: 1, Tools: p.manyTool}, first)
	if err != nil {
		return err
	}
	to.ManyBytes = many
	to.Tool = (many - idle) / int64(p.manyTool-fewTools)
	return nil
}

// footprint returns the memory and the number of processes of a new server after a
// preparation, some calls and a pause.
func (s *site) footprint(v server, p plan, sc scenario, prepare func(*contender) error) (size int64, count int, err error) {
	c, err := s.join(v, sc)
	if err != nil {
		return 0, 0, err
	}
	defer c.leave()
	if prepare != nil {
		if err := prepare(c); err != nil {
			return 0, 0, fmt.Errorf("%s: %w\n%s", v.name, err, c.process.log)
		}
	}
	if err := c.load(p.warmUp); err != nil {
		return 0, 0, err
	}
	time.Sleep(p.settle)
	return memory(c.process.id)
}

// openSessions opens sessions of Streamable HTTP on one connection.
func (p *process) openSessions(count int) error {
	c, err := dialHTTP(p.address, "/mcp", mode{transport: "http"})
	if err != nil {
		return err
	}
	defer c.Close()
	fixed := c.fixed
	seen := map[string]bool{}
	for range count {
		c.fixed = fixed
		if err := c.open(); err != nil {
			return err
		}
		seen[c.session] = true
	}
	if len(seen) != count || seen[""] {
		return fmt.Errorf("%d sessions have %d IDs", count, len(seen))
	}
	return nil
}
