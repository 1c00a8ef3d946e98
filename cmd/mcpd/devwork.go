package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// work writes the types and runs tests after each load, until ctx is done.
func (d *devSession) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		}
		d.writeTypes()
		d.runTests(ctx)
	}
}

// rerun runs all tests again.
func (d *devSession) rerun() {
	d.mu.Lock()
	d.runAll = true
	d.mu.Unlock()
	notify(d.wake)
}

// runTests runs the tests of what has changed since the last run, and those that failed in it.
func (d *devSession) runTests(ctx context.Context) {
	d.mu.Lock()
	before, failed := d.tested, map[string]bool{}
	if d.runAll {
		before, d.runAll = nil, false
	}
	for _, r := range d.results {
		if !r.Passed() {
			failed[r.Name] = true
		}
	}
	d.mu.Unlock()
	d.update(func(s *devState) { s.Running = true })
	start, tested := d.env.now(), d.server.Snapshot() // the tests may run on a later one
	results, err := d.server.Inside().RunTestsSince(ctx, before, func(name string) bool { return failed[name] })
	if ctx.Err() != nil || err != nil { // the server stops; it has loaded files before
		return
	}
	d.tested = tested
	d.mu.Lock()
	exists := map[testKey]bool{}
	for _, test := range d.server.Inside().Catalog().Tests {
		exists[testKey{test.NameRange.File, cmp.Or(test.Tool, test.Resource, test.Prompt), test.Name}] = true
	}
	d.results = slices.DeleteFunc(d.results, func(r engine.TestResult) bool { return !exists[keyOf(r)] })
	ran, ranFailed := d.record(results)
	all, allFailed := len(d.results), d.state.Failed
	d.mu.Unlock()
	d.update(func(s *devState) {
		s.Running, s.Ran, s.Took = false, ran, d.env.now().Sub(start)
	})
	for _, r := range results {
		if !r.Passed() {
			d.line("test", "FAIL  %s", failureText(r))
		}
	}
	of := ""
	if all != ran {
		of = fmt.Sprintf(" (of all %d: %d passed, %d failed)", all, all-allFailed, allFailed)
	}
	switch {
	case all == 0:
		d.line("tests", "none; add test blocks to the files")
	default:
		d.line("tests", "%d passed, %d failed%s", ran-ranFailed, ranFailed, of)
	}
}

// testKey identifies a test across changes of its file. Tests with the same key count as one, which
// fails if one of them fails.
type testKey struct{ file, target, name string }

func keyOf(r engine.TestResult) testKey { return testKey{r.Range.File, r.Target, r.Name} }

// record replaces the results of tests that ran again; d.mu is held. It returns how many ran and
// failed.
func (d *devSession) record(results []engine.TestResult) (ran, failed int) {
	again := make(map[testKey]engine.TestResult, len(results))
	for _, r := range results {
		if known, twice := again[keyOf(r)]; !twice || known.Passed() {
			again[keyOf(r)] = r
		}
	}
	d.results = slices.DeleteFunc(d.results, func(r engine.TestResult) bool {
		_, known := again[keyOf(r)]
		return known
	})
	for _, r := range again {
		if ran++; !r.Passed() {
			failed++
		}
		d.results = append(d.results, r)
	}
	slices.SortFunc(d.results, func(a, b engine.TestResult) int {
		return cmp.Or(cmp.Compare(a.Range.File, b.Range.File), cmp.Compare(a.Range.Start.Byte, b.Range.Start.Byte))
	})
	d.state.Tests, d.state.Failed, d.state.Failures = len(d.results), 0, nil
	for _, r := range d.results {
		if !r.Passed() {
			d.state.Failed++
			d.state.Failures = append(d.state.Failures, strings.Split(failureText(r), "\n")...)
		}
	}
	return ran, failed
}

// failureText describes a failed test in lines.
func failureText(r engine.TestResult) string {
	text := fmt.Sprintf("%s: %s\n  %s", r.Target, r.Name, r.Range)
	for _, failure := range r.Failures {
		text += "\n  " + strings.ReplaceAll(failure, "\n", "\n  ")
	}
	return text
}

// writeTypes writes the types of the served files. A problem is reported once.
func (d *devSession) writeTypes() {
	e, wrote := d.env, new(bytes.Buffer)
	e.stdout = wrote
	err := d.mayWrite()
	if err == nil {
		err = d.flags.files.writeTypesOf(e, d.server.Snapshot())
	}
	for name := range strings.Lines(wrote.String()) {
		d.line("types", "%s", name)
	}
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem == d.types {
		return
	}
	d.types = problem
	d.update(func(s *devState) { s.Types = problem })
	if problem != "" {
		d.line("types", "not written: %s", problem)
	}
}

// mayWrite returns an error if root would write into the directory of another user, who could have
// put a link there.
func (d *devSession) mayWrite() error {
	dir := d.flags.files.projectDir(d.env)
	info, err := d.env.disk.stat(dir)
	if err != nil || d.env.process.uid != "0" {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // the error of the load is better
		}
		return err
	}
	if owner, known := atomicfile.Owner(info); known && owner != 0 {
		return fmt.Errorf("%s belongs to another user, so root does not write there", filepath.ToSlash(dir))
	}
	return nil
}
