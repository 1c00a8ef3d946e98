package main

import (
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/scripting"
)

// coverage is an executor that records which statements of scripts run.
type coverage struct {
	scripting.Executor

	mu sync.Mutex
	// programs are the programs with coverage, by the hashes of those without.
	programs map[[32]byte]*scripting.Program
	ran      map[diag.Range]bool
}

func newCoverage(x scripting.Executor) *coverage {
	return &coverage{Executor: x, programs: map[[32]byte]*scripting.Program{}, ran: map[diag.Range]bool{}}
}

// Run runs a call with coverage.
func (c *coverage) Run(ctx context.Context, call scripting.Call, h scripting.Host) (scripting.Outcome, error) {
	program, err := c.program(call.Program)
	if err != nil {
		return scripting.Outcome{}, err
	}
	call.Program = program
	out, err := c.Executor.Run(ctx, call, h)
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, at := range program.Statements() {
		if out.HasRun(n) {
			c.ran[at] = true
		}
	}
	return out, err
}

// program returns a program with coverage, which is compiled once.
func (c *coverage) program(p *scripting.Program) (*scripting.Program, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.programs[p.Hash()]; known != nil {
		return known, nil
	}
	covered, err := p.WithCoverage()
	if err == nil {
		c.programs[p.Hash()] = covered
	}
	return covered, err
}

// reset removes the statements that have run, and the programs. A nil coverage does nothing.
func (c *coverage) reset() {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		clear(c.ran)
		clear(c.programs)
	}
}

// coverageReport is the JSON of the coverage of tests.
type coverageReport struct {
	Statements int              `json:"statements"`
	Ran        int              `json:"ran"`
	Files      []fileCoverage   `json:"files"`
	Policies   []policyCoverage `json:"policies"`
}

// fileCoverage is the coverage of the scripts in a file.
type fileCoverage struct {
	File       string `json:"file"`
	Statements int    `json:"statements"`
	Ran        int    `json:"ran"`
	// NotRun are the lines with statements that did not run.
	NotRun []int `json:"not_run"`
}

// policyCoverage counts the tests in which a policy decided, by decision. Covered reports that a test
// shows its purpose: a policy that denies has denied a call.
type policyCoverage struct {
	Policy    string         `json:"policy"`
	Where     string         `json:"where"`
	Purpose   string         `json:"purpose"`
	Decisions map[string]int `json:"decisions"`
	Covered   bool           `json:"covered"`
}

// report returns the coverage of the serving files by tests with these results.
func (c *coverage) report(s *engine.Server, results []engine.TestResult) (*coverageReport, error) {
	files, served := map[string]map[diag.Range]bool{}, s.Inside().Catalog()
	for _, script := range served.Scripts() {
		program, err := c.program(script.Program)
		if err != nil {
			return nil, findingsError("%v", err)
		}
		for _, at := range program.Statements() {
			if files[at.File] == nil {
				files[at.File] = map[diag.Range]bool{}
			}
			files[at.File][at] = c.ran[at]
		}
	}
	report := &coverageReport{Files: []fileCoverage{}, Policies: []policyCoverage{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		row := fileCoverage{File: name, Statements: len(files[name]), NotRun: []int{}}
		for at, ran := range files[name] {
			if ran {
				row.Ran++
			} else {
				row.NotRun = append(row.NotRun, at.Start.Line)
			}
		}
		slices.Sort(row.NotRun)
		row.NotRun = slices.Compact(row.NotRun)
		report.Files = append(report.Files, row)
		report.Statements, report.Ran = report.Statements+row.Statements, report.Ran+row.Ran
	}
	for _, p := range served.PolicyBlocks() {
		row := policyCoverage{Policy: p.Name, Where: p.Where.String(), Purpose: p.Purpose.String(), Decisions: map[string]int{}}
		for _, r := range results {
			if decision := r.Policies[p.Name]; decision != "" {
				row.Decisions[decision]++
			}
		}
		row.Covered = row.Decisions[row.Purpose] > 0
		report.Policies = append(report.Policies, row)
	}
	return report, nil
}

func (r *coverageReport) print(e env) error {
	table := tabwriter.NewWriter(e.text(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table)
	for _, f := range r.Files {
		fmt.Fprintf(table, "%s\t%d of %s%s\n", diag.Printable(f.File), f.Ran, count(f.Statements, "statement"), notRun(f.NotRun))
	}
	covered := 0
	for _, p := range r.Policies {
		var decisions []string
		for _, d := range slices.Sorted(maps.Keys(p.Decisions)) {
			decisions = append(decisions, fmt.Sprintf("%s: %d", d, p.Decisions[d]))
		}
		if p.Covered {
			covered++
		} else {
			decisions = append(decisions, p.Purpose+": never")
		}
		fmt.Fprintf(table, "policy %s\t%s\n", p.Policy, strings.Join(decisions, ", "))
	}
	fmt.Fprintf(table, "coverage\t%d of %s%s\n", r.Ran, count(r.Statements, "statement"), r.coveredPolicies(covered))
	return table.Flush()
}

func (r *coverageReport) coveredPolicies(covered int) string {
	switch len(r.Policies) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(", %d of 1 policy", covered)
	}
	return fmt.Sprintf(", %d of %d policies", covered, len(r.Policies))
}

// notRun returns the cell of a table with sorted lines, such as "not run: line 3, 7-9".
func notRun(lines []int) string {
	if len(lines) == 0 {
		return ""
	}
	var parts []string
	for at := 0; at < len(lines); {
		end := at + 1
		for end < len(lines) && lines[end] == lines[end-1]+1 {
			end++
		}
		part := fmt.Sprint(lines[at])
		if end > at+1 {
			part += fmt.Sprintf("-%d", lines[end-1])
		}
		parts, at = append(parts, part), end
	}
	return "\tnot run: line " + strings.Join(parts, ", ")
}

// The elements of JUnit XML that all consumers read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
		took     time.Duration
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// junitReport returns the results as JUnit XML, with a suite for each file.
func junitReport(results []engine.TestResult) ([]byte, error) {
	all := junitSuites{Tests: len(results)}
	var took time.Duration
	for _, r := range results {
		i := slices.IndexFunc(all.Suites, func(s junitSuite) bool { return s.Name == r.Range.File })
		if i < 0 {
			i = len(all.Suites)
			all.Suites = append(all.Suites, junitSuite{Name: r.Range.File})
		}
		suite := &all.Suites[i]
		one := junitCase{Name: r.Name, Class: r.Target, File: r.Range.File, Line: r.Range.Start.Line, Time: junitTime(r.Took), Output: strings.Join(r.Notes, "\n")}
		if !r.Passed() {
			message, _, _ := strings.Cut(r.Failures[0], "\n")
			one.Failure = &junitFailure{Message: message, Text: r.Range.String() + ": " + strings.Join(r.Failures, "\n")}
			suite.Failures++
			all.Failures++
		}
		suite.Cases = append(suite.Cases, one)
		suite.Tests++
		suite.took += r.Took
		suite.Time = junitTime(suite.took)
		took += r.Took
	}
	all.Time = junitTime(took)
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, err
	}
	return append([]byte(xml.Header), append(text, '\n')...), nil
}

func junitTime(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
