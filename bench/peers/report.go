package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// results are the results of a run.
type results struct {
	Machine   machine    `json:"machine"`
	Command   string     `json:"flags"`
	Rounds    int        `json:"rounds"`
	Versions  []string   `json:"versions"`
	Scenarios []scenario `json:"scenarios"`
	ManyTools int        `json:"many_tools"` // of the startups
	Startups  []startup  `json:"startups"`
	Reloads   []reload   `json:"reloads"`
}

// machine describes where and when the run took place.
type machine struct {
	Date       string `json:"date"`
	Processor  string `json:"processor"`
	Processors int    `json:"processors"`
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
}

func thisMachine() machine {
	m := machine{Date: time.Now().UTC().Format(time.DateOnly), Processors: runtime.NumCPU(), Go: runtime.Version(), Processor: runtime.GOARCH}
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range bytes.Lines(info) {
		if name, value, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(name)) == "model name" {
			m.Processor = string(bytes.TrimSpace(value))
			break
		}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	return m
}

// markdown returns the results as tables.
func (r *results) markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Results\n\n%s, %d processors (%s), %s, %s. Command: `%s`. Medians of %d rounds. Versions: %s.\n",
		r.Machine.Date, r.Machine.Processors, r.Machine.Processor, r.Machine.Kernel, r.Machine.Go,
		strings.TrimSpace("go run -C bench/peers . "+r.Command), r.Rounds, strings.Join(r.Versions, ", "))
	r.summary(&out)
	for _, sc := range r.Scenarios {
		fmt.Fprintf(&out, "\n## %s\n\n| %s | × bare | processor time, µs | p50, µs | p99, µs | p99 × bare | calls/s |\n|---|---|---|---|---|---|---|\n", sc.Title, code(sc.Name))
		for _, one := range sc.Rows {
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %s |\n", one.Title, number(one.Ratio), number(one.CPU), number(one.P50), number(one.P99), number(one.Tail), number(one.Rate))
		}
	}
	r.startupTable(&out)
	r.reloadTable(&out)
	r.fasterTable(&out)
	return out.String()
}

func code(text string) string { return "`" + text + "`" }

// overview lists the scenarios of the summary, with short titles.
var overview = []struct{ scenario, title string }{
	{"add/http/8", "HTTP 2026-07-28"},
	{"add/http-session/8", "HTTP 2025-11-25, session"},
	{"add/sse/8", "HTTP+SSE"},
	{"add/websocket/8", "WebSocket"},
	{"add/stdio/1", "stdio"},
}

// scenario returns the results of a scenario, or nil.
func (r *results) scenario(name string) *scenario {
	for i := range r.Scenarios {
		if r.Scenarios[i].Name == name {
			return &r.Scenarios[i]
		}
	}
	return nil
}

// row returns the results of a server, or nil.
func (s *scenario) row(server string) *row {
	if s == nil {
		return nil
	}
	for i := range s.Rows {
		if s.Rows[i].Server == server {
			return &s.Rows[i]
		}
	}
	return nil
}

// summary writes the ratios of the most important scenarios side by side.
func (r *results) summary(out *strings.Builder) {
	var head, line, body strings.Builder
	for _, o := range overview {
		if r.scenario(o.scenario) != nil {
			head.WriteString(" " + o.title + " |")
			line.WriteString("---|")
		}
	}
	if head.Len() == 0 {
		return
	}
	for _, v := range servers {
		cells, any := "", false
		for _, o := range overview {
			sc := r.scenario(o.scenario)
			if sc == nil {
				continue
			}
			if one := sc.row(v.name); one != nil {
				cells += " " + number(one.Ratio) + " |"
				any = true
			} else {
				cells += " – |"
			}
		}
		if any {
			fmt.Fprintf(&body, "| %s |%s\n", v.title, cells)
		}
	}
	fmt.Fprintf(out, "\n## Processor time of add(a, b), × bare handler\n\n| 8 connections, stdio: 1 call in flight |%s\n|---|%s\n%s", head.String(), line.String(), body.String())
}

func (r *results) startupTable(out *strings.Builder) {
	if len(r.Startups) == 0 {
		return
	}
	fmt.Fprintf(out, "\n## Start and memory\n\n| `startup` | program, MB | cold start, ms | processor time, ms | idle, MiB | processes | session, KiB | tool, KiB | %s tools, MiB | start with them, ms |\n|---|---|---|---|---|---|---|---|---|---|\n",
		number(float64(r.ManyTools)))
	for _, one := range r.Startups {
		session := "–"
		if one.Server != baseline {
			session = number(float64(one.Session) / (1 << 10))
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %d | %s | %s | %s | %s |\n", one.Title, number(float64(one.Program)/1e6), number(one.Cold), number(one.ColdCPU),
			number(float64(one.Idle)/(1<<20)), one.Processes, session, number(float64(one.Tool)/(1<<10)), number(float64(one.ManyBytes)/(1<<20)), number(one.Many))
	}
}

func (r *results) reloadTable(out *strings.Builder) {
	if len(r.Reloads) == 0 {
		return
	}
	out.WriteString("\n## Reload\n\n| `reload` | tools | save to served, ms | most | under load, ms | most | p99 under load, µs | with reloads, µs |\n|---|---|---|---|---|---|---|---|\n")
	for _, one := range r.Reloads {
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %s | %s | %s |\n", one.Title, one.Tools, number(one.IdleMedian), number(one.IdleMax),
			number(one.LoadMedian), number(one.LoadMax), number(one.P99), number(one.P99Reload))
	}
}

// fasterTable writes the rows of peers that use less processor time than a row of mcpd
// in the same scenario.
func (r *results) fasterTable(out *strings.Builder) {
	var lines strings.Builder
	for _, sc := range r.Scenarios {
		for _, ours := range sc.Rows {
			for _, peer := range sc.Rows {
				if strings.HasPrefix(ours.Server, "mcpd-") && !strings.HasPrefix(peer.Server, "mcpd-") && !strings.HasPrefix(peer.Server, baseline) && peer.CPU < ours.CPU {
					fmt.Fprintf(&lines, "| %s | %s | %s | %s |\n", code(sc.Name), peer.Title, ours.Title, number(ours.CPU/peer.CPU))
				}
			}
		}
	}
	if lines.Len() > 0 {
		fmt.Fprintf(out, "\n## Where another server uses less processor time\n\n| scenario | server | than | × |\n|---|---|---|---|\n%s", lines.String())
	}
}

// number formats a figure with three digits, and with separators above 999.
func number(f float64) string {
	switch {
	case f < 0:
		return "-" + number(-f)
	case f < 9.995:
		return fmt.Sprintf("%.2f", f)
	case f < 99.95:
		return fmt.Sprintf("%.1f", f)
	case f < 999.5:
		return fmt.Sprintf("%.0f", f)
	}
	digits := fmt.Sprintf("%.0f", f)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
