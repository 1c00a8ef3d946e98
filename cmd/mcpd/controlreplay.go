package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/replay"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
)

// Bounds of a replay.
const (
	maxReplayed = 1000 // calls of the audit log
	maxChanges  = 100  // changed calls in a response
	maxListed   = 1000 // policy files in a response
	// maxNamedFiles bounds the files with errors on disk in a response.
	maxNamedFiles = 10
)

// policyFiles lists the files that may be edited for a replay, with the text of one.
func (o *runningServer) policyFiles(of control.PolicyFile) (any, error) {
	serving := o.server.Inside().Catalog()
	result := control.PolicyFilesResult{Revision: serving.Revision, Files: o.editable()}
	switch {
	case o.flags.bundle.follower != nil:
		result.Files, result.Problem = []string{}, "the files are in a bundle; use mcpd policy replay"
	case of.File == "":
	case !slices.Contains(result.Files, of.File):
		return nil, fmt.Errorf("the server has no policies in a file %.200q", of.File)
	default:
		_, shown, ok := serving.File(of.File)
		if !ok {
			return nil, fmt.Errorf("%s is too large to edit here", of.File)
		}
		result.Text = string(shown)
	}
	result.Files = result.Files[:min(len(result.Files), maxListed)]
	return result, nil
}

// editable returns the names of the files with policies in the serving revision, and of mcpd.hcl.
func (o *runningServer) editable() []string {
	names := []string{}
	config := filepath.ToSlash(filepath.Clean(o.flags.files.config))
	if _, _, ok := o.server.Inside().Catalog().File(config); ok {
		names = append(names, config)
	}
	for _, d := range o.server.Snapshot().Inside().Definitions().Files {
		for _, p := range d.Policies {
			names = append(names, p.NameRange.File)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// replay evaluates the last calls of the audit log with the serving policies, and with the policies of the
// files with an edit. It serves nothing, changes no file, and runs no script.
func (o *runningServer) replay(ctx context.Context, edit control.PolicyEdit) (any, error) {
	if !o.replaying.TryLock() {
		return nil, errors.New("the server is replaying another edit; try again when that has ended")
	}
	defer o.replaying.Unlock()
	text, err := o.editedText(edit)
	if err != nil {
		return nil, err
	}
	candidate, err := o.openEdited(map[string][]byte{edit.File: text})
	if err != nil {
		return nil, err
	}
	defer candidate.Close(context.WithoutCancel(ctx))
	report, err := candidate.Load(ctx)
	var mistakes diag.List
	if err != nil && !errors.As(err, &mistakes) {
		return nil, fmt.Errorf("load the files with the edit: %w", err)
	}
	problems := o.withoutLiterals(edit.File, report)
	result := control.ReplayResult{Problems: encoded(problems), Changes: []control.ReplayedCall{}}
	shown := report.Shown()
	if shown[edit.File] != nil {
		// In the text of the client, masked literals stay masked wherever the edit has moved them.
		shown[edit.File] = hclfile.RedactSecrets(edit.File, []byte(edit.Text))
	}
	var printed bytes.Buffer
	if err := (diag.Printer{Sources: shown}).Print(&printed, problems); err != nil {
		return nil, err
	}
	result.Diagnostics = printed.String()
	if mistakes != nil {
		result.Problem, err = o.errorsOnDisk(ctx, edit.File, report.Problems)
		return result, err
	}
	if err := o.replayCalls(ctx, candidate, &result); err != nil {
		return nil, err
	}
	return result, nil
}

// withoutLiterals returns the problems of an edit without the masked literals of the files: a problem may
// quote a value where the edit has moved it, or a local value that the edit uses.
func (o *runningServer) withoutLiterals(edited string, report engine.Report) diag.List {
	if len(report.Problems) == 0 {
		return report.Problems
	}
	content, _, _ := o.server.Inside().Catalog().File(edited)
	hidden := tooltest.Sensitive(append(report.SecretLiterals(), hclfile.SecretLiterals(edited, content)...))
	problems := slices.Clone(report.Problems)
	for i := range problems {
		d := &problems[i]
		d.Summary, d.Detail, d.Notes = redact.Over(d.Summary, hidden), redact.Over(d.Detail, hidden), slices.Clone(d.Notes)
		for j := range d.Notes {
			d.Notes[j].Message = redact.Over(d.Notes[j].Message, hidden)
		}
	}
	return problems
}

// editedText returns the text of an edit, with the values of masked literals.
func (o *runningServer) editedText(edit control.PolicyEdit) ([]byte, error) {
	switch {
	case o.flags.bundle.follower != nil:
		return nil, errors.New("the files are in a bundle; use mcpd policy replay")
	case !slices.Contains(o.editable(), edit.File):
		return nil, fmt.Errorf("the server has no policies in a file %.200q", edit.File)
	}
	serving := o.server.Inside().Catalog()
	content, shown, ok := serving.File(edit.File)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is too large to edit here", edit.File)
	case edit.Revision != "" && edit.Revision != serving.Revision:
		return nil, errors.New("the server now serves another revision; start again with its text")
	case edit.Revision == "" && !bytes.Equal(content, shown):
		return nil, fmt.Errorf("the text of %s has masked literals; send the revision whose text was edited", edit.File)
	}
	if !strings.Contains(edit.Text, "\r\n") { // an editor has replaced the line ends
		content, shown = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")), bytes.ReplaceAll(shown, []byte("\r\n"), []byte("\n"))
	}
	text, ok := unmask(content, shown, []byte(edit.Text))
	if !ok {
		return nil, fmt.Errorf("the edit of %s spans a masked literal; change policies only before or after it, or use mcpd policy replay", edit.File)
	}
	return text, nil
}

// unmask returns an edited text with the values of the literals that shown masks in content. shown and
// content have the same length. ok is false if a masked literal is between the first and the last
// changed byte, where its place in the edited text is not known.
func unmask(content, shown, text []byte) (unmasked []byte, ok bool) {
	start := 0
	for start < min(len(shown), len(text)) && shown[start] == text[start] {
		start++
	}
	same := 0 // bytes at the end
	for same < min(len(shown), len(text))-start && shown[len(shown)-1-same] == text[len(text)-1-same] {
		same++
	}
	end := len(shown) - same
	if !bytes.Equal(content[start:end], shown[start:end]) {
		return nil, false
	}
	return slices.Concat(content[:start], text[start:len(text)-same], content[end:]), true
}

// editChecks are the checks of the serving front, which has the port.
type editChecks struct{ serveChecks }

func (editChecks) CheckVacant(engine.Listen) error { return nil }

// errorsOnDisk names the files, except the edited one, that have errors on disk without the edit. It
// returns "" if there are none.
func (o *runningServer) errorsOnDisk(ctx context.Context, edited string, problems diag.List) (string, error) {
	type place struct {
		file, code, summary string
		line                int
	}
	of := func(d diag.Diagnostic) place { return place{d.Range.File, d.Code, d.Summary, d.Range.Start.Line} }
	unedited, err := o.openEdited(nil)
	if err != nil {
		return "", err
	}
	defer unedited.Close(context.WithoutCancel(ctx))
	report, err := unedited.Load(ctx)
	var mistakes diag.List
	if err != nil && !errors.As(err, &mistakes) {
		return "", fmt.Errorf("load the files without the edit: %w", err)
	}
	onDisk := map[place]bool{}
	for _, d := range report.Problems {
		onDisk[of(d)] = d.Severity == diag.Error && d.Range.File != edited
	}
	var names []string
	for _, d := range problems {
		if onDisk[of(d)] && !slices.Contains(names, d.Range.File) && len(names) < maxNamedFiles {
			names = append(names, d.Range.File)
		}
	}
	if names == nil {
		return "", nil
	}
	return fmt.Sprintf("the errors in %s are not part of the edit: the files on disk have them without it", strings.Join(names, ", ")), nil
}

// openEdited returns a server that is not loaded and connects to nothing, of the files on disk with
// other texts for some of them.
func (o *runningServer) openEdited(texts map[string][]byte) (*engine.Server, error) {
	f := o.flags.files
	f.serving = false
	options := engine.Options{Mode: engine.Offline, Logger: slog.New(slog.DiscardHandler), Front: editChecks{o.flags.checks(func() bool { return true })}}
	if err := f.setFiles(o.env, &options); err != nil {
		return nil, err
	}
	var edited loader.Overlay
	for file, text := range texts {
		edited.Set(o.env.resolve(filepath.FromSlash(file)), text)
	}
	if options.Files.Tools != nil {
		options.Files.Tools = edited.Dir(o.env.resolve(f.tools))
	}
	options.Files.Config = edited.Dir(o.env.resolve(filepath.Dir(f.config)))
	return f.open(o.env, options)
}

// replayCalls compares the last calls of the audit log.
func (o *runningServer) replayCalls(ctx context.Context, candidate *engine.Server, result *control.ReplayResult) error {
	log := o.server.Inside().AuditLog()
	if log == nil {
		result.Problem = noAuditLog
		return nil
	}
	comparison := replay.Comparison{Serving: o.server.Inside().Explain, Candidate: candidate.Inside().Explain}
	counts := control.ReplayCounts{}
	reading, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	var failed error
	next, err := audit.CallsBefore(reading, log.Path(), 0, auditBytes, func(c *audit.Call) bool {
		if reading.Err() != nil {
			result.Truncated = true
			return false
		}
		var found *replay.Difference
		if found, failed = comparison.Compare(ctx, c); failed != nil {
			return false
		}
		if found != nil {
			addChange(&counts, result, found)
		}
		return comparison.Counts.Calls < maxReplayed
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case failed != nil:
		return failed
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	judged := comparison.Counts
	counts.Calls, counts.Same, counts.Unknown, counts.Gone, counts.Reasons = judged.Calls, judged.Same, judged.Unknown, judged.Gone, judged.Reasons
	counts.Judged = judged.Same + judged.Different
	result.Counts, result.Truncated = &counts, result.Truncated || next > 0
	return nil
}

// addChange adds a changed call to a result.
func addChange(counts *control.ReplayCounts, result *control.ReplayResult, d *replay.Difference) {
	switch before, after := d.Serving.Verdict, d.Candidate.Verdict; {
	case before == pipeline.VerdictAllowed && after == pipeline.VerdictDenied:
		counts.AllowedToDenied++
	case before == pipeline.VerdictDenied && after == pipeline.VerdictAllowed:
		counts.DeniedToAllowed++
	default:
		counts.OtherChanges++
	}
	if len(result.Changes) == maxChanges {
		return
	}
	p := &d.Call.Caller.Principal
	result.Changes = append(result.Changes, control.ReplayedCall{
		Seq: d.Call.Seq, Time: d.Call.Began.UTC().Truncate(time.Millisecond), CallID: d.Call.Call, Kind: d.Call.Kind, Name: d.Call.Name,
		Principal: p.ID, AuthKind: string(p.Kind), Before: decisionIn(d.Serving), After: decisionIn(d.Candidate),
	})
}

func decisionIn(d replay.PolicyOutcome) control.PolicyDecision {
	decision := control.PolicyDecision{Verdict: string(d.Verdict), Policy: d.By}
	if d.ByDefault {
		decision.Policy = pipeline.DeniedByDefault
	}
	if d.Ruling != nil && d.Ruling.Policy.Compiled != nil {
		decision.Place = placeIn(d.Ruling.Policy.Where)
	}
	return decision
}
