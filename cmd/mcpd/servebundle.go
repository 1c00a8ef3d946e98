package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/bundle"
	"github.com/mcpd/mcpd/internal/ops/bundle/oci"
)

// bundleFlags hold the flags of serve for bundles, and the bundle in service.
type bundleFlags struct {
	source, trust string
	auth          registryAuth
	poll          time.Duration
	server        *engine.Server   // with the bundle in service
	follower      *bundle.Follower // nil if the server loads a directory
	files         bundle.Files     // guarded by runningServer.reloading once the server runs
	trial         decisionTrial
}

// bundleWait is how long a web server may wait for a new bundle before it answers.
const bundleWait = 50 * time.Second

func (b *bundleFlags) add(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(&b.source, "bundle", "", "serve the bundle at `SOURCE`, a path, an https URL or oci://registry/repository:tag, and each newer one")
	cmd.Flags().StringVar(&b.trust, "trust", "", "accept bundles that are signed by the public keys in `FILE`")
	cmd.Flags().StringVar(dir, "bundle-dir", "", "keep bundles, state and the control socket in `DIR`")
	b.auth.add(cmd)
	cmd.Flags().IntVar(&b.trial.most, "max-changed-decisions", -1, "refuse a bundle that decides more than `N` of the last audited calls differently; -1 is no limit")
	cmd.Flags().DurationVar(&b.poll, "bundle-poll", time.Minute, "look for a new bundle every `TIME`")
}

// checkBundle rejects invalid combinations of flags.
func (f *serveFlags) checkBundle() error {
	b := &f.bundle
	switch {
	case b.auth.file != "" && !strings.HasPrefix(b.source, oci.Scheme):
		return usageError("--registry-auth needs --bundle %s…", oci.Scheme)
	case b.source == "" && b.trial.most >= 0:
		return usageError("--max-changed-decisions needs --bundle")
	case b.trial.most < -1:
		return usageError("--max-changed-decisions takes a number of calls")
	case b.source == "" && (b.trust != "" || f.files.dir != ""):
		return usageError("--trust and --bundle-dir need --bundle")
	case b.source == "":
		return nil
	case b.trust == "" || f.files.dir == "":
		return usageError("--bundle needs --trust FILE and --bundle-dir DIR")
	case f.files.toolsGiven || f.files.configGiven:
		return usageError("--bundle replaces --tools and --config")
	case b.poll < time.Second/10:
		return usageError("--bundle-poll takes at least 100ms")
	}
	return nil
}

// openBundles makes the engine load bundles, if --bundle is set.
func (f *serveFlags) openBundles(e env, logger *slog.Logger, o *engine.Options) error {
	b := &f.bundle
	if b.source == "" {
		return nil
	}
	b.trial.logger = logger
	source, remote := b.source, bundle.Remote(nil)
	var err error
	switch {
	case strings.HasPrefix(source, oci.Scheme):
		if remote, err = b.auth.open(e, source); err != nil {
			return err
		}
	case !strings.Contains(source, "://"):
		source = e.resolve(source)
	}
	b.follower, err = bundle.New(bundle.Options{
		Source: source, Remote: remote, Trust: func() ([]byte, error) { return b.readTrust(e) }, Dir: e.resolve(f.files.dir),
		Poll: b.poll, Wait: bundleWait, Version: version(), Now: e.now, Logger: logger,
		ID: f.applianceID(e), Labels: func() map[string]string {
			return f.applianceLabels(b.server.Snapshot().Inside().Definitions().Config.Report)
		},
		Examine: func(ctx context.Context, files fs.FS) error { return b.trial.examine(ctx, e, &f.files, files) },
	})
	if err != nil {
		return usageError("%v", err)
	}
	return setBundle(o, &b.files)
}

// readTrust reads the trust file, which must belong to the operator alone.
func (b *bundleFlags) readTrust(e env) ([]byte, error) {
	name := e.resolve(b.trust)
	info, err := e.disk.stat(name)
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("%s is writable by every user", b.trust)
	}
	return e.disk.readFile(name)
}

// start loads the files for the first time: a directory, or the newest bundle.
func (f *serveFlags) start(ctx context.Context, e env, s *engine.Server) error {
	if f.dev != nil {
		return f.dev.load(ctx, e, s)
	}
	if f.bundle.follower == nil {
		return f.load(ctx, e, s)
	}
	err := f.bundle.follower.Start(ctx, func(ctx context.Context, files fs.FS) error {
		f.bundle.files.Use(files)
		err := f.load(ctx, e, s)
		if errors.Is(err, engine.ErrInUse) { // no error of the files, so another bundle is not tried
			return fmt.Errorf("%v: %w", err, engine.ErrInUse)
		}
		return err
	})
	if err == nil {
		f.bundle.trial.began(ctx, e, s)
		return nil
	}
	// Another bundle may be in order, so a service manager starts the server again.
	return &exitError{code: exitFindings, text: err.Error(), cause: err}
}

// activate puts the files of a bundle in service if they load and their tests pass. After an error
// nothing changes: the status and the lock file in effect belong to the files in service.
func (o *runningServer) activate(ctx context.Context, files fs.FS) error {
	o.reloading.Lock()
	defer o.reloading.Unlock()
	before := o.flags.bundle.files.Use(files)
	_, err := o.reloadLocked(ctx, engine.Change{All: true, Candidate: true})
	if err != nil {
		o.flags.bundle.files.Use(before)
	}
	return err
}

// bundleState is the JSON output of status for the bundle in service.
type bundleState struct {
	Name    string    `json:"name"`
	Serial  int64     `json:"serial"`
	Digest  string    `json:"digest"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	Source  string    `json:"source"`
	Checked time.Time `json:"checked,omitzero"`
	// Pending is the serial number of a newer bundle that is rolled out to other servers.
	Pending int64     `json:"pending,omitempty"`
	Problem string    `json:"problem,omitempty"`
	Code    string    `json:"problem_code,omitempty"`
	Files   diag.List `json:"-"`
}

func (b *bundleState) text() string {
	text := fmt.Sprintf("%s, serial %d", b.Name, b.Serial)
	if !b.Expires.IsZero() {
		text += ", expires " + b.Expires.Format(time.RFC3339)
	}
	if b.Pending > 0 {
		text += fmt.Sprintf("; serial %d is rolled out to others", b.Pending)
	}
	return text
}

// problems returns the problem of the bundle in service as a diagnostic.
func (b *bundleFlags) problems() diag.List {
	if b.follower == nil {
		return nil
	}
	status := b.follower.Status()
	if status.Problem == "" {
		return nil
	}
	return diag.List{{
		Severity: diag.Warning, Code: "bundle-problem", Summary: "the bundle in service may not be the newest: " + status.Problem,
		Detail: fmt.Sprintf("%s, serial %d, stays in service", status.Name, status.Serial),
	}}
}

// bundleState returns the state of the bundle, or nil if the server loads a directory.
func (o *runningServer) bundleState() *bundleState {
	if o.flags.bundle.follower == nil {
		return nil
	}
	row := bundleState(o.flags.bundle.follower.Status())
	return &row
}

// health returns the health of the server and of its bundle.
func (o *runningServer) health(s engine.Status) string {
	health := s.Health()
	row := o.bundleState()
	switch {
	case row == nil || row.Problem == "":
		return health
	case s.Healthy():
		return "bundle: " + row.Problem
	}
	return health + "; bundle: " + row.Problem
}
