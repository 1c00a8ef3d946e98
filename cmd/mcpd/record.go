package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
)

// checkRecord rejects a value of --record that mcpd test would not read.
func (f *callFlags) checkRecord(e env) error {
	switch {
	case f.record == "":
		return nil
	case f.url != "":
		return usageError("--record needs the files: a server at --url does not return the answers of its hosts")
	}
	if err := f.checkRecordFile(e); err != nil {
		return usageError("--record: %v", err)
	}
	return nil
}

// checkRecordFile rejects a file for tests that mcpd test would not read.
func (f *callFlags) checkRecordFile(e env) error {
	inside, err := filepath.Rel(e.resolve(f.files.tools), e.resolve(f.record))
	if err != nil || !filepath.IsLocal(inside) || filepath.Ext(f.record) != ".hcl" {
		return fmt.Errorf("name a .hcl file in the tools directory %s, such as %s", f.files.tools, filepath.Join(f.files.tools, "recorded.hcl"))
	}
	at := f.files.tools
	for part := range strings.SplitSeq(filepath.ToSlash(inside), "/") {
		at = filepath.Join(at, part)
		info, err := os.Lstat(e.resolve(at))
		switch {
		case loader.IsHidden(part):
			return fmt.Errorf("mcpd loads no hidden file or backup such as %s; choose another name", at)
		case err != nil: // it is created, or a directory is missing
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a link; name what it leads to", at)
		}
	}
	if info, err := e.disk.stat(f.record); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", f.record)
	}
	if info, err := e.disk.stat(filepath.Dir(f.record)); err != nil || !info.IsDir() {
		return fmt.Errorf("directory %s not found; create it", filepath.Dir(f.record))
	}
	return nil
}

// writeTest appends the test of a recorded call to a file.
func writeTest(ctx context.Context, e env, f *callFlags, s *engine.Server, r recordedCall) error {
	test, err := r.test(ctx, s)
	if err == nil {
		err = appendTest(e, f.record, test)
	}
	if err != nil {
		return findingsError("the call was not recorded: %v", err)
	}
	return nil
}

// appendTest appends a test to a file in one step, and says so.
func appendTest(e env, file string, test recordedTest) error {
	before, err := e.disk.readFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	source := hclfile.Source{Path: file, Bytes: []byte(strings.TrimLeft(string(before)+"\n"+test.block, "\n"))}
	formatted, problems := hclfile.Format(source)
	if !problems.HasErrors() {
		source.Bytes = formatted
		_, problems = hclfile.Parse(source, hclfile.ToolsKind)
	}
	if problems.HasErrors() {
		return problems
	}
	if now, _ := e.disk.readFile(file); !bytes.Equal(now, before) {
		return fmt.Errorf("%s has just changed", file)
	}
	if err := e.disk.replaceFile(file, formatted); err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "recorded test %q in %s; run it with mcpd test\n", test.name, diag.Printable(file))
	for _, note := range test.notes {
		fmt.Fprintf(e.stderr, "note: %s\n", diag.PrintableLines(note, "      "))
	}
	return nil
}

// recordedCall is a call of a tool whose host calls were recorded for a test.
type recordedCall struct {
	recording *tooltest.Recording
	request   call.Request
	result    call.Result
	// plain is the caller without what only this machine knows. It is the caller of the test, unless
	// the test fails with it.
	plain identity.Caller
	// names are the names of tests that the files may not have yet; nil if there are none.
	names *testNames
}

// testNames names the tests that a server records, so that no two have the same name before the files
// have them. The nil value knows only the names in the files.
type testNames struct {
	mu   sync.Mutex
	last map[string]int // the number of the last test of each tool
}

// next returns a new name for a test of a tool.
func (n *testNames) next(tool string, files []definition.Test) string {
	number := 1
	if n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		number += n.last[tool]
	}
	base := "recorded call of " + tool
	name := func() string {
		if number == 1 {
			return base
		}
		return fmt.Sprintf("%s %d", base, number)
	}
	for slices.ContainsFunc(files, func(t definition.Test) bool { return t.Name == name() }) {
		number++
	}
	if n != nil {
		if n.last == nil {
			n.last = map[string]int{}
		}
		n.last[tool] = number
	}
	return name()
}

// recordedTest is the test of a recorded call. The block is formatted. The notes say what the test
// cannot repeat.
type recordedTest struct {
	name, block string
	notes       []string
}

// test returns a test of the call that passes with the serving files. It has no value of a secret and
// no sensitive value. The error says why there is none.
func (r *recordedCall) test(ctx context.Context, s *engine.Server) (recordedTest, error) {
	served := s.Inside().Catalog()
	switch {
	case served.Revision != r.result.Revision:
		return recordedTest{}, errors.New("the server has loaded other files since the call began; call the tool again")
	case r.recording.IsFull():
		return recordedTest{}, errors.New("its host calls are larger than 1 MiB, which no test file holds")
	case served.Entry(call.Tools, r.request.Name) == nil:
		return recordedTest{}, errors.New("there is no such tool")
	}
	values := r.values(func(tool string) (in, out []string) {
		if e := served.Entry(call.Tools, tool); e != nil {
			return e.Sensitive, e.SensitiveOutput
		}
		return nil, nil
	})
	for _, one := range values.all {
		if redact.HasShort(one.raw, one.pointers) {
			return recordedTest{}, errors.New("a sensitive value is a boolean or shorter than four bytes, and cannot be found in other texts")
		}
	}
	name := r.names.next(r.request.Name, served.Tests)
	hide := values.redactor(served.Sensitive, s.Inside().Redact, r.recording.Variables())
	var first *testRuns
	var until *recordedTest
	for _, candidate := range r.candidates(name, values) {
		candidate.Hide = hide
		var runs testRuns
		formatted, err := r.try(candidate, func(block []byte) diag.List {
			only, problems := served.WithTest(block)
			if !problems.HasErrors() {
				runs = runSoonAndLater(func(later time.Duration) engine.TestResult { return s.Inside().RunTest(ctx, only, 0, later) })
			}
			return problems
		})
		switch {
		case ctx.Err() != nil:
			return recordedTest{}, context.Cause(ctx)
		case err != nil && candidate.Texts: // the text may be longer than the JSON
			continue
		case err != nil:
			return recordedTest{}, err
		}
		if first == nil {
			first = &runs
		}
		test := recordedTest{name, formatted, r.notes(candidate, first.failures())}
		switch {
		case runs.soon.Passed() && runs.later.Passed():
			return test, nil
		case runs.soon.Passed() && until == nil:
			test.notes = append(test.notes, "the test depends on the time, and fails later\n"+hide(strings.Join(runs.later.Failures, "\n")))
			until = &test
		}
	}
	if until != nil {
		return *until, nil
	}
	return recordedTest{}, errors.New(hide(first.problem(r.recording.Notes())))
}

// try returns the text of a test, and runs it. The error has no hidden value.
func (r *recordedCall) try(c tooltest.RecordedCall, run func(block []byte) diag.List) (formatted string, err error) {
	block := r.recording.Block(c)
	if c.Hide(block) != block {
		return "", errors.New("a secret or a sensitive value cannot be separated from the other text of the test")
	}
	text, problems := hclfile.Format(hclfile.Source{Path: "test.hcl", Bytes: []byte(block)})
	if !problems.HasErrors() { // else it is too long, or a secret is part of the syntax
		problems = run(text)
	}
	if problems.HasErrors() {
		return "", errors.New(c.Hide(problems.Error()))
	}
	return string(text), nil
}

// testRuns has the results of a test that runs soon after the call, in another millisecond, and at another
// time of another day of another year. A test that fails soon, with all mocks, does not run later.
type testRuns struct{ soon, later engine.TestResult }

func runSoonAndLater(run func(later time.Duration) engine.TestResult) (t testRuns) {
	if t.soon = run(1017 * time.Millisecond); t.soon.Passed() || len(t.soon.Missing) > 0 {
		t.later = run(400*24*time.Hour + 7*time.Hour + 13*time.Minute)
	}
	return t
}

// failures returns the failures of the first run that failed.
func (t *testRuns) failures() []string {
	if t.soon.Passed() {
		return t.later.Failures
	}
	return t.soon.Failures
}

// problem says why a test that fails soon cannot pass. notes say what its mocks cannot repeat.
func (t *testRuns) problem(notes []string) string {
	differing := slices.DeleteFunc(slices.Clone(t.soon.Missing), func(block string) bool { return slices.Contains(t.later.Missing, block) })
	if len(differing) > 0 {
		text := "a host call depends on the time or on a random value, so it differs in each call, and no mock can answer it; make the value an argument of the tool\n  the test would need"
		for _, block := range differing[:min(3, len(differing))] {
			label, _, _ := strings.Cut(block, " {")
			text += "\n    " + label
		}
		return text
	}
	text := "its test would fail:"
	for _, failure := range append(t.soon.Failures, notes...) {
		text += "\n  " + strings.ReplaceAll(failure, "\n", "\n  ")
	}
	return text
}

// notes returns what a test of the call cannot repeat. failures say why the result is not part of it.
func (r *recordedCall) notes(c tooltest.RecordedCall, failures []string) (notes []string) {
	if err := r.result.Err; err != nil {
		notes = append(notes, fmt.Sprintf("the call failed, so the test expects the error %s; remove the test if that was a mistake, such as a wrong argument or a missing secret", err.Code))
	}
	if c.AnyOutput {
		notes = append(notes, "the test accepts every result, and checks only the host calls: the result depends on more than the arguments and the mocks, such as the time or a secret\n"+c.Hide(strings.Join(failures, "\n")))
	}
	if c.Links {
		notes = append(notes, "the test has the headers link and location of responses, because it fails without them: a URL may contain a credential")
	}
	for _, note := range r.recording.Notes() {
		notes = append(notes, c.Hide(note))
	}
	return notes
}

// candidates returns the tests to try, the best first: with the plain caller and with the whole one,
// then both with the headers that have URLs, all of these with the texts of responses in JSON, and
// then all without the result.
func (r *recordedCall) candidates(name string, values sensitiveValues) []tooltest.RecordedCall {
	in, out := values.pointers(r.request.Name)
	one := tooltest.RecordedCall{Name: name, Tool: r.request.Name, Arguments: redact.Pointers(r.request.Arguments, in), Caller: r.plain, Result: r.result}
	one.Result.Value = redact.Pointers(one.Result.Value, out)
	one.SensitiveOutput = func(tool string) []string {
		_, out := values.pointers(tool)
		return out
	}
	whole := one
	whole.Caller = r.request.Caller
	list := []tooltest.RecordedCall{one, whole}
	if r.recording.HasLinks() {
		one.Links, whole.Links = true, true
		list = append(list, one, whole)
	}
	if r.recording.HasJSON() {
		for _, c := range slices.Clone(list) {
			c.Texts = true
			list = append(list, c)
		}
	}
	if r.result.Err == nil {
		for _, c := range slices.Clone(list) {
			c.AnyOutput = true
			list = append(list, c)
		}
	}
	return list
}

// sensitiveValues are the sensitive values of a call: JSON with JSON pointers. pointers returns the
// pointers to the sensitive arguments and results of a tool.
type sensitiveValues struct {
	pointers func(tool string) (in, out []string)
	all      []sensitiveJSON
}

type sensitiveJSON struct {
	raw      json.RawMessage
	pointers []string
}

// values returns the values of the call, and the results of the tools that it called.
func (r *recordedCall) values(pointers func(tool string) (in, out []string)) sensitiveValues {
	in, out := pointers(r.request.Name)
	v := sensitiveValues{pointers, []sensitiveJSON{{r.request.Arguments, in}, {r.recording.Input(), in}, {r.result.Value, out}}}
	for _, answer := range r.recording.Called() {
		_, out := pointers(answer.Request)
		v.all = append(v.all, sensitiveJSON{answer.JSON, out})
	}
	return v
}

// redactor returns a function that replaces these values, secrets and values of variables, in every
// form that is searched for secrets.
func (v sensitiveValues) redactor(hidden redact.Text, secrets func(string) string, variables []string) tooltest.Hide {
	for _, one := range v.all {
		hidden = hidden.And(redact.NewText(one.raw, one.pointers))
	}
	values := append(hidden.Values(), variables...)
	for _, value := range hidden.Values() {
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			values = append(values, strconv.FormatFloat(n, 'f', -1, 64))
		}
	}
	matcher := tooltest.Sensitive(values)
	return func(text string) string { return hidden.Hide(secrets(text), matcher) }
}
