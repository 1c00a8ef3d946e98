// Peers compares the cost of a call, of a list, of a start and of memory between mcpd,
// other implementations of MCP, and a bare handler of net/http and encoding/json. Every
// server is a process. This process generates the load, checks every response, and
// reads the processor time and the memory of the servers from Linux.
//
// A scenario is a request and a way to send it. In a scenario all servers run, and take
// turns in each round. README.md describes how to run it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// settings are the flags of the program.
type settings struct {
	plan plan
	only *regexp.Regexp // names of scenarios
	peer *regexp.Regexp // names of servers
	out  string
	bin  string // directory with the programs of the servers; empty to build them
}

func parse() (settings, error) {
	quick := flag.Bool("quick", false, "few and short rounds, to see whether everything works")
	rounds := flag.Int("rounds", 0, "rounds of each scenario (default 5, with -quick 2)")
	only := flag.String("only", "", "run the scenarios with names that match this regular expression; startup and reload are scenarios too")
	peer := flag.String("servers", "", "compare the servers with names that match this regular expression; the bare handler always takes part")
	out := flag.String("out", "", "write table.md, results.json and plots into this directory")
	bin := flag.String("bin", "", "run the programs in this directory instead of building them")
	flag.Parse()
	s := settings{plan: fullPlan, out: *out, bin: *bin}
	if *quick {
		s.plan = quickPlan
	}
	if *rounds > 0 {
		s.plan.rounds = *rounds
	}
	var errs [2]error
	s.only, errs[0] = regexp.Compile(*only)
	s.peer, errs[1] = regexp.Compile(*peer)
	return s, errors.Join(errs[:]...)
}

// takesPart reports whether a server is compared.
func (s settings) takesPart(name string) bool { return name == baseline || s.peer.MatchString(name) }

func run(ctx context.Context) error {
	set, err := parse()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &site{dir: dir, bin: set.bin}
	if s.bin == "" {
		fmt.Fprintln(os.Stderr, "build the servers")
		if err := s.build(ctx); err != nil {
			return err
		}
	}
	if set.takesPart("typescript") {
		if err := s.installNode(ctx, true); err != nil {
			fmt.Fprintln(os.Stderr, "skip the TypeScript SDK:", err)
		}
	}
	r := results{Machine: thisMachine(), Command: strings.Join(os.Args[1:], " "), Rounds: set.plan.rounds, ManyTools: set.plan.manyTool}
	if r.Versions, err = s.versions(); err != nil {
		return err
	}
	failed := s.measureAll(ctx, set, &r) // what has been measured is printed anyway
	table := r.markdown()
	fmt.Print(table)
	if set.out == "" {
		return failed
	}
	return errors.Join(failed, r.write(set.out, table))
}

// measureAll runs the scenarios.
func (s *site) measureAll(ctx context.Context, set settings, r *results) error {
	for _, sc := range set.plan.scenarios() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !set.only.MatchString(sc.Name) {
			continue
		}
		sc.servers = slices.DeleteFunc(sc.servers, func(name string) bool { return !set.takesPart(name) })
		fmt.Fprintln(os.Stderr, sc.Name)
		sc, err := s.run(sc, set.plan)
		if err != nil {
			return fmt.Errorf("%s: %w", sc.Name, err)
		}
		r.Scenarios = append(r.Scenarios, sc)
	}
	if set.only.MatchString("startup") {
		fmt.Fprintln(os.Stderr, "startup")
		var all []server
		for _, v := range servers {
			if v.modes != nil && !v.isolated && set.takesPart(v.name) && s.available(v) {
				all = append(all, v)
			}
		}
		var err error
		if r.Startups, err = s.startups(all, set.plan); err != nil {
			return fmt.Errorf("startup: %w", err)
		}
	}
	for _, name := range []string{"mcpd-inline", "mcpd-worker"} {
		if !set.only.MatchString("reload") || !set.takesPart(name) || ctx.Err() != nil {
			continue
		}
		fmt.Fprintln(os.Stderr, "reload", name)
		rows, err := s.reloads(serverNamed(name), set.plan)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.Reloads = append(r.Reloads, rows...)
	}
	return ctx.Err()
}

// write writes the table, the results and the plots.
func (r *results) write(dir, table string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	files := map[string][]byte{"table.md": []byte(table), "results.json": append(raw, '\n')}
	for _, c := range r.charts() {
		plot, err := c.svg()
		if err != nil {
			return err
		}
		files[c.File] = plot
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
