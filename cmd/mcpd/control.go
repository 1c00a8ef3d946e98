package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/control"
)

// controlOff is the value of --control that disables the socket.
const controlOff = "off"

// controlFlag holds the path of the control socket.
type controlFlag struct{ value string }

func (c *controlFlag) add(cmd *cobra.Command, text string) {
	cmd.Flags().StringVar(&c.value, "control", "", text)
	_ = cmd.MarkFlagFilename("control")
}

// path returns the path of the control socket for these files, or "" for none.
func (c *controlFlag) path(e env, f *projectFlags) string {
	switch c.value {
	case controlOff:
		return ""
	case "":
		return f.stateFileFor(e, ".sock")
	default:
		return c.value
	}
}

// absolute returns the absolute path of a file, or the path itself if there is none.
func absolute(e env, path string) string {
	path = e.resolve(path)
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// controlAnswer is the response of a server: JSON for machines, which verbs print
// unchanged, and the diagnostics of the files for people.
type controlAnswer struct {
	JSON        json.RawMessage `json:"said"`
	Diagnostics string          `json:"printed"`
}

// answer answers a request. A panic fails only this request.
func (o *runningServer) answer(ctx context.Context, r control.Request) (result any, err error) {
	defer func() {
		if recover() != nil { // the value may quote a file
			o.logger.Error("recover panic in control request", slog.String("action", string(r.Action)), slog.String("stack", string(debug.Stack())))
			result, err = nil, errors.New("mcpd failed on this request, which is a bug in mcpd; the log has the stack")
		}
	}()
	if row, ok, err := o.answerConsole(ctx, r); ok {
		return row, err
	}
	switch r.Action {
	case control.Status:
		status := o.front.Status()
		return answerOf(o.row(status), status.Problems, status.Shown(), r)
	case control.Fleet:
		row, err := o.fleetState()
		if err != nil {
			return nil, err
		}
		return answerOf(row, nil, nil, r)
	case control.Tokens:
		return answerTokens(o.server, r)
	case control.DropTokens:
		f := r.TokenFilter
		o.noteChange(ctx, "console.tokens_dropped", map[string]string{"name": f.Secret, "principal": f.Principal, "kind": f.Kind, "issuer": f.Issuer})
		return answerTokens(o.server, r)
	case control.History:
		return o.answerHistory(r)
	case control.Attach:
		return o.attach()
	case control.Detached:
		return detachedResult{o.env.process.pid, o.detachments.take(r.Client)}, nil
	case control.Reload:
		return o.answerReload(ctx, r)
	default:
		return nil, fmt.Errorf("the server does not know the action %.40q", string(r.Action))
	}
}

// answerReload loads all files again and answers with the result.
func (o *runningServer) answerReload(ctx context.Context, r control.Request) (any, error) {
	if o.server.Status().Draining {
		return nil, errors.New("the server is shutting down and does not reload")
	}
	o.noteChange(ctx, "console.reloaded", map[string]string{})
	report, checked, err := o.reload(ctx, engine.Change{All: true})
	var mistakes diag.List
	if err != nil && !errors.As(err, &mistakes) {
		return nil, fmt.Errorf("reload: %w", err)
	}
	row, problems, shown := reloadResult{OK: err == nil, Revision: report.Revision}, report.Problems, report.Shown()
	if checked != nil {
		ctx, cancel := context.WithTimeout(ctx, reloadPatience) // the client has given up then
		defer cancel()
		select {
		case <-checked:
		case <-ctx.Done():
			return nil, fmt.Errorf("reload: check the source of bundles: %w", context.Cause(ctx))
		}
	}
	status := o.front.Status()
	if b := o.bundleState(); b != nil { // the bundle in service may be another one now
		problems, shown = status.Problems, status.Shown()
		row.OK, row.Revision, row.BundleProblem = status.Synchronized && b.Problem == "", status.Revision, b.Problem
	}
	row.Problems, row.RestartNeeded, row.Status, row.Summary = encoded(problems), status.RestartNeeded, o.health(status), o.line()
	return answerOf(row, problems, shown, r)
}

// answerOf builds a response from the JSON row and the diagnostics.
func answerOf(row any, problems diag.List, shown map[string][]byte, r control.Request) (any, error) {
	said, err := json.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	var printed bytes.Buffer
	if err := (diag.Printer{Sources: shown, Color: r.Color}).Print(&printed, problems); err != nil {
		return nil, err
	}
	return controlAnswer{said, printed.String()}, nil
}

// encoded returns diagnostics as JSON.
func encoded(problems diag.List) json.RawMessage {
	list, err := json.Marshal(problems)
	if err != nil {
		return json.RawMessage("[]") // cannot happen: diagnostics are strings and numbers
	}
	return list
}

// controlClientFlags holds the flags of verbs that query a running server.
type controlClientFlags struct {
	files   projectFlags
	control controlFlag
	asJSON  bool
}

func (a *controlClientFlags) add(cmd *cobra.Command) {
	a.addServer(cmd)
	cmd.Flags().BoolVar(&a.asJSON, "json", false, "print the response as JSON")
}

// addServer adds the flags that select the server.
func (a *controlClientFlags) addServer(cmd *cobra.Command) {
	a.files.addPaths(cmd)
	cmd.Flags().StringVar(&a.files.dir, "bundle-dir", "", "connect to the server of the bundles in `DIR`")
	a.control.add(cmd, "connect to the server at the socket `PATH` (default the socket for these files)")
}

// ask sends a request to the server and decodes the response into row. It prints the
// JSON with --json, and otherwise the diagnostics of the files.
func (a *controlClientFlags) ask(ctx context.Context, e env, do control.Action, patience time.Duration, row any) error {
	return a.request(ctx, e, control.Request{Action: do}, patience, row)
}

// request is ask for a request with more than an action.
func (a *controlClientFlags) request(ctx context.Context, e env, r control.Request, patience time.Duration, row any) error {
	path := a.control.path(e, &a.files)
	if path == "" {
		return usageError("no default directory for the control socket; name the socket with --control PATH")
	}
	r.Color = e.color && !a.asJSON
	got, err := callControl(ctx, e.resolve(path), r, patience, row)
	if errors.Is(err, control.ErrNoServer) {
		return a.noServer(e, path)
	}
	if err != nil {
		return findingsError("%v", err)
	}
	if a.asJSON {
		return printJSON(e.stdout, got.JSON)
	}
	_, err = fmt.Fprint(e.stderr, sanitizeColored(got.Diagnostics))
	return err
}

// noServer returns the error for a socket at which no server answers.
func (a *controlClientFlags) noServer(e env, path string) error {
	switch {
	case a.control.value != "":
		return findingsError("no server answers at %s; start one with mcpd serve --control %s", sanitize(path), sanitize(path))
	case a.files.dir != "":
		return findingsError("no server of the bundles in %s answers at %s; start one with mcpd serve --bundle, or name its socket with --control", sanitize(e.resolve(a.files.dir)), sanitize(path))
	}
	tools, config := absolute(e, a.files.tools), absolute(e, a.files.config)
	if _, err := e.disk.stat(tools); errors.Is(err, fs.ErrNotExist) {
		return findingsError("directory %s not found; run this in the folder of the files of the server, or name its socket with --control", sanitize(tools))
	}
	return findingsError("no server for %s and %s answers at %s; start one with mcpd serve, run this in the folder of its files under the same path, or name its socket with --control", sanitize(tools), sanitize(config), sanitize(path))
}

// sanitizeColored is sanitize for the diagnostics of a server, which may have the colors of a
// [diag.Printer], tabs and line breaks.
func sanitizeColored(text string) string {
	var out strings.Builder
	for at := 0; at < len(text); {
		next := plainOrColor.FindStringIndex(text[at:])
		if next == nil {
			out.WriteString(sanitize(text[at:]))
			break
		}
		out.WriteString(sanitize(text[at : at+next[0]]))
		out.WriteString(text[at+next[0] : at+next[1]])
		at += next[1]
	}
	return out.String()
}

var plainOrColor = regexp.MustCompile(`\x1b\[(?:0|1|1;3[134])m|[\n\t]`)

// callControl sends a request to the server at a socket and decodes its JSON into row.
func callControl(ctx context.Context, path string, r control.Request, patience time.Duration, row any) (got controlAnswer, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no response within %s", patience))
	defer cancel()
	if err := control.Do(ctx, path, r, &got); err != nil {
		return got, err
	}
	if err := json.Unmarshal(got.JSON, row); err != nil {
		return got, fmt.Errorf("decode response of the server: %w", err)
	}
	return got, nil
}

// reloadPatience is the timeout of a reload, which may run tests.
const reloadPatience = 10 * time.Minute

// reloadResult is the JSON output of reload.
type reloadResult struct {
	OK       bool            `json:"ok"`
	Revision string          `json:"revision"`
	Status   string          `json:"status"`
	Summary  string          `json:"summary"`
	Problems json.RawMessage `json:"problems"`
	// BundleProblem says why the newest bundle is not in service, or what else is wrong with it.
	BundleProblem string `json:"bundle_problem,omitempty"`
	// RestartNeeded reports changes that take effect only after a restart.
	RestartNeeded bool `json:"restart_needed"`
}

func newReload(e env) *cobra.Command {
	var a controlClientFlags
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Make the running server reload all files",
		Long: `Reload makes the running server load all files and secrets again, as SIGHUP does. It
waits for the result and prints all errors and warnings. If there are errors, the
server keeps its current configuration and the exit code is 1.

A server with --bundle also checks the source of bundles. If it refuses the newest bundle,
cannot read it, or has one that has expired, reload prints why and the exit code is 1.`,
		Example: `  mcpd reload
  mcpd reload --control /run/mcpd/control.sock --json`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var row reloadResult
			if err := a.ask(cmd.Context(), e, control.Reload, reloadPatience, &row); err != nil {
				return err
			}
			return a.reloaded(e, row)
		},
	}
	a.add(cmd)
	return cmd
}

func (a *controlClientFlags) reloaded(e env, row reloadResult) error {
	switch {
	case row.OK && a.asJSON:
		return nil
	case row.OK:
		_, err := fmt.Fprintf(e.stdout, "ok: %s\n", sanitize(row.Summary))
		return err
	case a.asJSON:
		return &exitError{code: exitFindings} // the JSON was printed
	case row.BundleProblem != "":
		return findingsError("%s", row.Status)
	default:
		return findingsError("the files have errors, so nothing was changed; %s", row.Status)
	}
}
