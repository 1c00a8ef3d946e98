package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// scenario is a request, a way to send it, and the servers to compare.
type scenario struct {
	Name    string `json:"name"` // such as add/http/8
	Title   string `json:"title"`
	Work    string `json:"work"` // add, list or blob
	Mode    string `json:"mode"`
	Callers int    `json:"callers"` // connections; on stdio, calls in flight
	Tools   int    `json:"tools"`
	Rows    []row  `json:"rows"`

	servers []string
}

// row is a server in a scenario. Its figures are medians over the rounds.
type row struct {
	Server string  `json:"server"`
	Title  string  `json:"title"`
	Rounds []round `json:"rounds"`
	CPU    float64 `json:"cpu_us"` // processor time for each call
	Ratio  float64 `json:"ratio"`  // of CPU to the bare handler in the same round; 0 without it
	P50    float64 `json:"p50_us"`
	P99    float64 `json:"p99_us"`
	Tail   float64 `json:"p99_ratio"` // of P99, as Ratio
	Rate   float64 `json:"calls_per_second"`
}

// round is one batch of calls of one server.
type round struct {
	Calls int     `json:"calls"`
	CPU   float64 `json:"cpu_us"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	Rate  float64 `json:"calls_per_second"`
}

// plan holds the size of the measurements.
type plan struct {
	rounds   int
	batch    time.Duration // of one server in one round
	warmUp   time.Duration
	settle   time.Duration // before memory is measured; mcpd returns memory after up to 9 s
	callers  []int
	manyTool int // tools for the memory of a tool
	sessions int // sessions for the memory of a session
	reloads  int
	catalogs []int // tools in the measurements of reloads
}

var (
	fullPlan = plan{
		rounds: 5, batch: 400 * time.Millisecond, warmUp: time.Second, settle: 10 * time.Second,
		callers: []int{1, 8, 64}, manyTool: 10_000, sessions: 5000, reloads: 20, catalogs: []int{10, 1000, 10_000},
	}
	quickPlan = plan{
		rounds: 2, batch: 100 * time.Millisecond, warmUp: 200 * time.Millisecond, settle: 300 * time.Millisecond,
		callers: []int{8}, manyTool: 1000, sessions: 500, reloads: 5, catalogs: []int{10, 100},
	}
)

// fewTools is the number of tools of a server unless a scenario needs more.
const fewTools = 10

// scenarios returns the scenarios of calls.
func (p plan) scenarios() []scenario {
	var all []scenario
	add := func(title, work string, m mode, callers, tools int, only []string) {
		s := scenario{
			Name: fmt.Sprintf("%s/%s/%d", work, m.name, callers), Title: title + ", " + m.title,
			Work: work, Mode: m.name, Callers: callers, Tools: tools, servers: only,
		}
		s.Title += ", " + m.load(callers)
		if work == "list" {
			s.Name += fmt.Sprintf("/%d", tools)
		}
		all = append(all, s)
	}
	for _, m := range modes {
		callers := p.callers
		if m.transport == "stdio" {
			callers = []int{1, 8}
		}
		for _, n := range callers {
			add("add(a, b)", "add", m, n, fewTools, serving(m))
		}
	}
	for _, tools := range []int{10, 100, 1000} {
		add(fmt.Sprintf("tools/list of %d tools", tools), "list", modeNamed("http"), 8, tools, serving(modeNamed("http")))
	}
	for _, m := range []mode{modeNamed("http"), modeNamed("stdio")} {
		callers := 8
		if m.transport == "stdio" {
			callers = 1
		}
		add("a result of 100 KB", "blob", m, callers, fewTools, serving(m))
		all = append(all, guarded(m, callers))
	}
	return all
}

// load describes the number of callers.
func (m mode) load(callers int) string {
	noun := "connection"
	if m.transport == "stdio" {
		noun = "call in flight"
	}
	if callers > 1 {
		noun = strings.Replace(noun+"s", "call in flights", "calls in flight", 1)
	}
	return fmt.Sprintf("%d %s", callers, noun)
}

// serving returns the names of the servers that serve a mode, without policies, limits
// and audit.
func serving(m mode) (names []string) {
	for _, v := range servers {
		if slices.Contains(v.modes, m.name) {
			names = append(names, v.name)
		}
	}
	return names
}

// guarded returns the scenario that compares mcpd with and without policies, limits and
// audit.
func guarded(m mode, callers int) scenario {
	s := scenario{
		Name: fmt.Sprintf("guarded/%s/%d", m.name, callers), Title: "add(a, b) with policy, limit and audit, " + m.title + ", " + m.load(callers),
		Work: "add", Mode: m.name, Callers: callers, Tools: fewTools,
	}
	for _, v := range servers {
		if v.name == baseline || v.program == "embedded" || v.program == "mcpd" {
			s.servers = append(s.servers, v.name)
		}
	}
	return s
}

// contender is a running server in a scenario.
type contender struct {
	process  *process
	callers  []*caller
	row      row
	baseline bool
}

// caller sends one message again and again on its connection.
type caller struct {
	connection connection
	message    *message
	latencies  []time.Duration
}

// call makes one call and checks the response.
func (c *caller) call() error {
	c.message.next()
	start := time.Now()
	response, err := c.connection.send(c.message)
	if err != nil {
		return err
	}
	c.latencies = append(c.latencies, time.Since(start))
	return c.message.check(response)
}

// join starts a server and connects the callers.
func (s *site) join(v server, sc scenario) (*contender, error) {
	m := modeNamed(sc.Mode)
	p, err := s.start(v, m, sc.Tools)
	if err != nil {
		return nil, err
	}
	c := &contender{process: p, row: row{Server: v.name, Title: v.title}, baseline: v.name == baseline}
	connections, err := p.dial(sc.Callers)
	if err != nil {
		p.stop()
		return nil, err
	}
	for i, conn := range connections {
		c.callers = append(c.callers, &caller{connection: conn, message: newMessage(sc.Work, m.revision, i, sc.Tools)})
	}
	return c, nil
}

func (c *contender) leave() {
	for _, one := range c.callers {
		_ = one.connection.Close()
	}
	c.process.stop()
}

// load makes calls on all connections, each caller one after the other, for a time.
func (c *contender) load(d time.Duration) error {
	errs := make([]error, len(c.callers))
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for i, one := range c.callers {
		one.latencies = one.latencies[:0]
		all.Go(func() {
			for errs[i] == nil && time.Now().Before(end) {
				errs[i] = one.call()
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s over %s: %w\n%s", c.process.server.name, c.process.mode.name, err, c.process.log)
	}
	return nil
}

// latencies returns the sorted latencies of the last load.
func (c *contender) latencies() []time.Duration {
	var all []time.Duration
	for _, one := range c.callers {
		all = append(all, one.latencies...)
	}
	slices.Sort(all)
	return all
}

// measure runs one batch.
func (c *contender) measure(d time.Duration) error {
	before, err := processorTime(c.process.id)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := c.load(d); err != nil {
		return err
	}
	elapsed := time.Since(start)
	after, err := processorTime(c.process.id)
	if err != nil {
		return err
	}
	sorted := c.latencies()
	c.row.Rounds = append(c.row.Rounds, round{
		Calls: len(sorted),
		CPU:   micros(after-before) / float64(len(sorted)),
		P50:   micros(percentile(sorted, 0.5)),
		P99:   micros(percentile(sorted, 0.99)),
		Rate:  float64(len(sorted)) / elapsed.Seconds(),
	})
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// run measures the servers of a scenario. All of them are running. They take turns, and
// another one starts each round, so other load on the machine affects all equally.
func (s *site) run(sc scenario, p plan) (scenario, error) {
	var all []*contender
	defer func() {
		for _, c := range all {
			c.leave()
		}
	}()
	for _, name := range sc.servers {
		v := serverNamed(name)
		if !s.available(v) {
			continue
		}
		c, err := s.join(v, sc)
		if err != nil {
			return sc, err
		}
		all = append(all, c)
		if err := c.load(p.warmUp); err != nil {
			return sc, err
		}
	}
	for r := range p.rounds {
		for i := range all {
			if err := all[(i+r)%len(all)].measure(p.batch); err != nil {
				return sc, err
			}
		}
	}
	for _, c := range all {
		sc.Rows = append(sc.Rows, c.row)
	}
	summarize(sc.Rows)
	return sc, nil
}

// summarize computes the medians of the rows.
func summarize(rows []row) {
	base := slices.IndexFunc(rows, func(r row) bool { return r.Server == baseline })
	for i := range rows {
		r := &rows[i]
		if base >= 0 {
			var ratios, tails []float64
			for j, one := range r.Rounds {
				ratios = append(ratios, one.CPU/rows[base].Rounds[j].CPU)
				tails = append(tails, one.P99/rows[base].Rounds[j].P99)
			}
			r.Ratio, r.Tail = median(ratios), median(tails)
		}
		r.CPU = medianOf(r.Rounds, func(o round) float64 { return o.CPU })
		r.P50 = medianOf(r.Rounds, func(o round) float64 { return o.P50 })
		r.P99 = medianOf(r.Rounds, func(o round) float64 { return o.P99 })
		r.Rate = medianOf(r.Rounds, func(o round) float64 { return o.Rate })
	}
}

func medianOf[T any](all []T, figure func(T) float64) float64 {
	var values []float64
	for _, one := range all {
		values = append(values, figure(one))
	}
	return median(values)
}

// median returns the middle of the values, or the mean of the middle two.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// percentile returns the smallest of the sorted values that at least a share of all
// values do not exceed.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(share*float64(len(sorted)) + 0.999999)
	return sorted[max(0, min(rank, len(sorted))-1)]
}
