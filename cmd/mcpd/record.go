package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
)

// recordedCall is a call whose host calls were recorded for a test.
type recordedCall struct {
	recording *tooltest.Recording
	request   call.Request
	result    call.Result
}

// checkRecord rejects a value of --record that mcpd test would not read.
func (f *callFlags) checkRecord(e env) error {
	switch {
	case f.record == "":
		return nil
	case f.url != "":
		return usageError("--record needs the files: a server at --url does not tell what its hosts answer")
	}
	inside, err := filepath.Rel(e.resolve(f.files.tools), e.resolve(f.record))
	if err != nil || !filepath.IsLocal(inside) || filepath.Ext(f.record) != ".hcl" {
		return usageError("--record takes a .hcl file in the tools directory %s, such as %s", f.files.tools, filepath.Join(f.files.tools, "recorded.hcl"))
	}
	return nil
}

// write appends the test of a recorded call to a file, and runs it. A test that fails is
// removed again.
func (r *recordedCall) write(ctx context.Context, e env, f *callFlags, s *engine.Server) error {
	before, err := e.disk.readFile(f.record)
	existed := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return findingsError("record the call: %v", err)
	}
	name, err := r.newName(ctx, s)
	if err != nil {
		return err
	}
	var failures, first []string
	for _, candidate := range r.candidates(e, s, name) {
		text := strings.TrimLeft(string(before)+"\n"+r.hide(s, r.recording.Block(candidate)), "\n")
		formatted, problems := hclfile.Format(hclfile.Source{Path: f.record, Bytes: []byte(text)})
		if problems.HasErrors() { // cannot happen, unless a secret is part of the syntax
			failures = []string{problems.Error()}
			break
		}
		if err := e.disk.writeFile(f.record, formatted, 0o644); err != nil {
			return findingsError("record the call: %v", err)
		}
		if failures, err = runOne(ctx, s, name); err == nil && failures == nil {
			return r.tell(e, f, candidate, r.hide(s, strings.Join(first, "\n")))
		}
		if err != nil {
			break
		}
		if first == nil {
			first = failures
		}
	}
	if existed {
		err = e.disk.writeFile(f.record, before, 0o644)
	} else {
		err = e.disk.remove(f.record)
	}
	if err != nil {
		return findingsError("record the call: remove a test that fails: %v", err)
	}
	text := "the call was not recorded, because its test would fail"
	for _, failure := range append(failures, r.recording.Notes()...) {
		text += "\n  " + strings.ReplaceAll(r.hide(s, failure), "\n", "\n  ")
	}
	return findingsError("%s", text)
}

// tell prints what was recorded. failure says why the result is not part of the test.
func (r *recordedCall) tell(e env, f *callFlags, c tooltest.RecordedCall, failure string) error {
	fmt.Fprintf(e.stderr, "recorded test %q in %s; run it with mcpd test\n", c.Name, diag.Printable(f.record))
	if c.AnyOutput {
		fmt.Fprintln(e.stderr, "note: the test accepts every result, and checks only the host calls: the result depends on more than the arguments and the mocks, such as the time or a secret")
		fmt.Fprintf(e.stderr, "      %s\n", diag.PrintableLines(failure, "      "))
	}
	for _, note := range r.recording.Notes() {
		fmt.Fprintf(e.stderr, "note: %s\n", sanitize(note))
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

// candidates returns the calls to record, the best first. The name of the user and the result
// are left out of the first ones and the last ones, if the test passes so.
func (r *recordedCall) candidates(e env, s *engine.Server, name string) []tooltest.RecordedCall {
	entry := s.Inside().Catalog().Entry(call.Tools, r.request.Name)
	one := tooltest.RecordedCall{Name: name, Tool: r.request.Name, Arguments: r.request.Arguments, Principal: r.request.Caller.Principal, Result: r.result}
	if entry != nil {
		one.Arguments = redact.Pointers(one.Arguments, entry.Sensitive)
		one.Result.Value = redact.Pointers(one.Result.Value, entry.SensitiveOutput)
	}
	one.Principal.ID = "local"
	named := one
	named.Principal, named.Agent = r.request.Caller.Principal, r.request.Caller.Agent.AgentID
	if r.result.Err != nil {
		return []tooltest.RecordedCall{one, named}
	}
	anyOne, anyNamed := one, named
	anyOne.AnyOutput, anyNamed.AnyOutput = true, true
	return []tooltest.RecordedCall{one, named, anyOne, anyNamed}
}

// hide replaces the values of secrets and sensitive values in a test.
func (r *recordedCall) hide(s *engine.Server, text string) string {
	served := s.Inside().Catalog()
	hidden := served.Sensitive
	if entry := served.Entry(call.Tools, r.request.Name); entry != nil {
		hidden = hidden.And(redact.NewText(r.request.Arguments, entry.Sensitive)).And(redact.NewText(r.result.Value, entry.SensitiveOutput))
	}
	return hidden.Hide(s.Inside().Redact(text))
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
