package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
)

// recordedCall is a call whose host calls were recorded for a test.
type recordedCall struct {
	recording *tooltest.Recording
	// files are the files of the server with the test to try, which is not on disk.
	files   loader.Overlay
	request call.Request
	result  call.Result
}

// checkRecord rejects a value of --record that mcpd test would not read.
func (f *callFlags) checkRecord(e env) error {
	switch {
	case f.record == "":
		return nil
	case f.url != "":
		return usageError("--record needs the files: a server at --url does not return the answers of its hosts")
	}
	inside, err := filepath.Rel(e.resolve(f.files.tools), e.resolve(f.record))
	if err != nil || !filepath.IsLocal(inside) || filepath.Ext(f.record) != ".hcl" {
		return usageError("--record takes a .hcl file in the tools directory %s, such as %s", f.files.tools, filepath.Join(f.files.tools, "recorded.hcl"))
	}
	if info, err := e.disk.stat(filepath.Dir(f.record)); err != nil || !info.IsDir() {
		return usageError("--record: directory %s not found; create it", filepath.Dir(f.record))
	}
	return nil
}

// write appends the test of a recorded call to a file if it passes. A server that watches the file
// sees only the final test: candidates are tried in memory.
func (r *recordedCall) write(ctx context.Context, e env, f *callFlags, s *engine.Server) error {
	before, err := e.disk.readFile(f.record)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return findingsError("record the call: %v", err)
	}
	path, err := filepath.Abs(e.resolve(f.record))
	if err != nil {
		return findingsError("record the call: %v", err)
	}
	mode := fs.FileMode(0o644)
	if info, err := e.disk.stat(f.record); err == nil {
		mode = info.Mode().Perm()
	}
	if reason := r.whyUnsafe(s); reason != "" {
		return findingsError("the call was not recorded: %s", reason)
	}
	name, err := r.newName(ctx, s)
	if err != nil {
		return err
	}
	var failures, first []string
	hide, heading := r.redactor(s), "the call was not recorded:"
	for _, candidate := range r.candidates(e, s, name) {
		candidate.Hide = hide
		block := r.recording.Block(candidate)
		if hide(block) != block {
			failures = []string{"a secret or a sensitive value cannot be separated from the other text of the test"}
			break
		}
		text := strings.TrimLeft(string(before)+"\n"+block, "\n")
		formatted, problems := hclfile.Format(hclfile.Source{Path: f.record, Bytes: []byte(text)})
		if problems.HasErrors() { // cannot happen, unless a secret is part of the syntax
			failures = []string{problems.Error()}
			break
		}
		r.files.Set(path, formatted)
		if failures, err = runOne(ctx, s, name); err == nil && failures == nil {
			if now, _ := e.disk.readFile(f.record); !bytes.Equal(now, before) {
				return findingsError("the call was not recorded: %s changed during the call", f.record)
			}
			if err := e.disk.replaceFile(f.record, formatted, mode); err != nil {
				return findingsError("record the call: %v", err)
			}
			return r.printRecorded(e, f, candidate, hide, hide(strings.Join(first, "\n")))
		}
		if err != nil {
			failures = []string{err.Error()}
			break
		}
		heading = "the call was not recorded, because its test would fail:"
		if first == nil {
			first = failures
		}
	}
	text := heading
	for _, failure := range append(failures, r.recording.Notes()...) {
		text += "\n  " + strings.ReplaceAll(hide(failure), "\n", "\n  ")
	}
	return findingsError("%s", text)
}

// printRecorded prints what was recorded. failure says why the result is not part of the test.
func (r *recordedCall) printRecorded(e env, f *callFlags, c tooltest.RecordedCall, hide tooltest.Hide, failure string) error {
	fmt.Fprintf(e.stderr, "recorded test %q in %s; run it with mcpd test\n", c.Name, diag.Printable(f.record))
	if c.AnyOutput {
		fmt.Fprintln(e.stderr, "note: the test accepts every result, and checks only the host calls: the result depends on more than the arguments and the mocks, such as the time or a secret")
		fmt.Fprintf(e.stderr, "      %s\n", diag.PrintableLines(failure, "      "))
	}
	if c.Links {
		fmt.Fprintln(e.stderr, "note: the test has the headers link and location of responses, because it fails without them: a URL may contain a credential")
	}
	for _, note := range r.recording.Notes() {
		fmt.Fprintf(e.stderr, "note: %s\n", sanitize(hide(note)))
	}
	return nil
}

// newName returns a name that no test of the files has.
func (r *recordedCall) newName(ctx context.Context, s *engine.Server) (string, error) {
	taken := map[string]bool{}
	if _, err := s.RunTests(ctx, func(name, _ string) bool {
		taken[name] = true
		return false
	}); err != nil {
		return "", err
	}
	base := "recorded call of " + r.request.Name
	name := base
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s %d", base, n)
	}
	return name, nil
}

// candidates returns the tests to try, the best first: without the name of the user and with it,
// then both with the headers that have URLs, and then all of these without the result.
func (r *recordedCall) candidates(e env, s *engine.Server, name string) []tooltest.RecordedCall {
	entry := s.Inside().Catalog().Entry(call.Tools, r.request.Name)
	one := tooltest.RecordedCall{Name: name, Tool: r.request.Name, Arguments: r.request.Arguments, Principal: r.request.Caller.Principal, Result: r.result}
	if entry != nil {
		one.Arguments = redact.Pointers(one.Arguments, entry.Sensitive)
		one.Result.Value = redact.Pointers(one.Result.Value, entry.SensitiveOutput)
	}
	one.SensitiveOutput = func(tool string) []string {
		if called := s.Inside().Catalog().Entry(call.Tools, tool); called != nil {
			return called.SensitiveOutput
		}
		return nil
	}
	one.Principal.ID = "local"
	named := one
	named.Principal, named.Agent = r.request.Caller.Principal, r.request.Caller.Agent.AgentID
	list := []tooltest.RecordedCall{one, named}
	if r.recording.HasLinks() {
		one.Links, named.Links = true, true
		list = append(list, one, named)
	}
	if r.result.Err == nil {
		for _, c := range slices.Clone(list) {
			c.AnyOutput = true
			list = append(list, c)
		}
	}
	return list
}

// sensitive is JSON with sensitive values at JSON pointers.
type sensitive struct {
	raw      json.RawMessage
	pointers []string
}

// sensitive returns the values of the call, and the results of the tools that it called.
func (r *recordedCall) sensitive(s *engine.Server) (list []sensitive) {
	served := s.Inside().Catalog()
	if entry := served.Entry(call.Tools, r.request.Name); entry != nil {
		list = append(list, sensitive{r.request.Arguments, entry.Sensitive}, sensitive{r.recording.Input(), entry.Sensitive}, sensitive{r.result.Value, entry.SensitiveOutput})
	}
	for _, answer := range r.recording.Called() {
		if entry := served.Entry(call.Tools, answer.Request); entry != nil {
			list = append(list, sensitive{answer.JSON, entry.SensitiveOutput})
		}
	}
	return list
}

// whyUnsafe says why sensitive values cannot be found in other texts; "" if they can.
func (r *recordedCall) whyUnsafe(s *engine.Server) string {
	for _, one := range r.sensitive(s) {
		if redact.HasShort(one.raw, one.pointers) {
			return "a sensitive value is a boolean or shorter than four bytes, and cannot be found in other texts"
		}
	}
	return ""
}

// redactor returns a function that replaces the values of secrets and variables, and sensitive
// values, in every form that is searched for secrets.
func (r *recordedCall) redactor(s *engine.Server) tooltest.Hide {
	hidden := s.Inside().Catalog().Sensitive
	for _, one := range r.sensitive(s) {
		hidden = hidden.And(redact.NewText(one.raw, one.pointers))
	}
	values := append(hidden.Values(), r.recording.Variables()...)
	for _, value := range hidden.Values() {
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			values = append(values, strconv.FormatFloat(n, 'f', -1, 64))
		}
	}
	matcher := tooltest.Sensitive(values)
	return func(text string) string { return hidden.Hide(s.Inside().Redact(text), matcher) }
}

// runOne loads the files and runs the test with a name. failures is nil if it passes.
func runOne(ctx context.Context, s *engine.Server, name string) (failures []string, err error) {
	if _, err := s.Reload(ctx, engine.Change{All: true}); err != nil {
		return []string{err.Error()}, nil
	}
	results, err := s.RunTests(ctx, func(test, _ string) bool { return test == name })
	switch {
	case err != nil:
		return nil, err
	case len(results) != 1:
		return []string{"the files do not include the test"}, nil
	}
	return results[0].Failures, nil
}
