package bundle

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/truncate"
)

// Options configure a [Follower]. One of Source and Remote is required, and all other fields except
// Examine, ID and Labels.
type Options struct {
	// Source is the path of a file, or an https URL. If Remote is set, bundles come from there.
	Source string
	Remote Remote
	// Trust returns the trust file. It is read at each check, so that keys can be replaced while
	// the server runs.
	Trust func() ([]byte, error)
	// Dir is the directory for the bundles. It is created if it is missing, and belongs to one
	// Follower.
	Dir string
	// Poll is the time between two checks of the source, and Wait the time that a web server may
	// wait before it answers that nothing has changed.
	Poll, Wait time.Duration
	// Examine may refuse a verified bundle that was never active, before it is activated: it returns
	// the error of [Refuse] then. A [diag.List] is an error of its files. Nil accepts every bundle.
	Examine func(ctx context.Context, files fs.FS) error
	// Version is the version of mcpd.
	Version string
	// ID and Labels identify the server for a [Rollout]. Labels may be nil for none. They are asked
	// for at each bundle with a rollout, while a bundle is in service.
	ID     string
	Labels func() map[string]string
	Now    func() time.Time
	Logger *slog.Logger
}

// Activate loads the files of a bundle, runs their tests and puts them in service. If it returns
// an error, the files that were in service before still are. A [diag.List] is an error of the
// files.
type Activate func(ctx context.Context, files fs.FS) error

// Follower keeps a server on the newest bundle of a source. A bundle is activated if its
// signatures, name, serial number, expiry and minimum version are accepted, its rollout includes the
// server, Examine accepts it, and its files load.
type Follower struct {
	// fixed at creation
	options Options
	folder  folder
	source  *source
	again   chan struct{} // receives a value for a check without delay

	// used by Start and Run, one after the other
	active  *Bundle // in service
	floor   record  // the highest activated bundle
	unsaved bool    // floor could not be written
	refused refusal
	behind  attempt
	pending pending

	// guarded by mu
	mu     sync.Mutex
	status Status
	asked  chan struct{} // see Check; nil if nothing waits for the next check
}

// refusal is the last bundle that was refused. For an hour it is not requested and loaded again;
// after that, the clock or another part of the machine may be in order again.
type refusal struct {
	at     time.Time
	trust  [sha256.Size]byte // of the trust file
	tag    string
	digest [sha256.Size]byte
	err    error
}

const refusalTime = time.Hour

// attempt is the last attempt to activate the stored bundles above the active one. It is repeated
// as for a [refusal], even if the source cannot be reached.
type attempt struct {
	at    time.Time
	trust [sha256.Size]byte // of the trust file
	err   error             // why the floor is not in service; nil if it is
}

// maxProblem bounds [Status].Problem, in bytes: the files of a bundle decide about its length.
const maxProblem = 1 << 10

// Status is the state of a [Follower] at one moment.
type Status struct {
	// The bundle in service.
	Name    string
	Serial  int64
	Digest  string
	Created time.Time
	Expires time.Time
	// Source is where bundles come from, and Checked the time of the last check that found
	// nothing wrong.
	Source  string
	Checked time.Time
	// Pending is the serial number of a newer bundle whose rollout does not include this server; 0
	// for none.
	Pending int64
	// Problem says why the newest bundle is not in service, or what else is wrong; "" for
	// nothing. Code classifies it, as [CodeFetch] does.
	Problem string
	Code    string
	// Files are the errors of the files of the newest bundle, if it cannot be loaded.
	Files diag.List
}

// New returns a follower. It creates the directory, and reads the trust file to report its errors
// early.
func New(o Options) (*Follower, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create directory of bundles: %w", err)
	}
	return newFollower(o, realDisk(o.Dir))
}

func newFollower(o Options, d disk) (*Follower, error) {
	f := &Follower{options: o, folder: folder{d}, again: make(chan struct{}, 1)}
	if _, err := f.trust(); err != nil {
		return nil, err
	}
	if f.source = (&source{remote: o.Remote}); o.Remote == nil {
		var err error
		if f.source, err = newSource(o.Source, f.folder, o.Wait); err != nil {
			return nil, err
		}
	}
	f.source.asked = func() bool { return len(f.again) > 0 }
	f.status.Source = f.source.String()
	return f, nil
}

func (f *Follower) trust() (*Trust, error) {
	text, err := f.options.Trust()
	if err != nil {
		return nil, coded{CodeTrust, fmt.Errorf("read trust file: %w", err)}
	}
	trust, err := ParseTrust(text)
	return trust, coded{CodeTrust, err}.orNil()
}

// Start activates the newest bundle of the directory, or else the bundle of the source. It
// returns an error if neither can be activated. A bundle that expired since it was stored is
// activated: expiry reports that newer bundles are withheld, and must not stop a server that
// cannot reach its source.
func (f *Follower) Start(ctx context.Context, activate Activate) error {
	trust, err := f.trust()
	if err != nil {
		return err
	}
	if f.floor, err = f.folder.record(); err != nil {
		f.options.Logger.Warn("read bundle record", slog.String("error", err.Error()))
	}
	problem, err := f.activateStored(ctx, trust, activate)
	if err != nil {
		return err
	}
	if f.active == nil {
		if _, err := f.take(ctx, activate); err != nil {
			return fmt.Errorf("no bundle to serve: %w", err)
		}
		f.setProblem(nil)
	} else if problem != nil {
		f.setProblem(problem)
	}
	return nil
}

// activateStored activates the highest bundle of the directory that is above the active one and
// passes all checks. problem says why a higher one does not; err is an error of the server.
func (f *Follower) activateStored(ctx context.Context, trust *Trust, activate Activate) (problem, err error) {
	serials, err := f.folder.serials()
	if err != nil {
		return nil, err
	}
	f.behind = attempt{}
	for _, serial := range serials {
		if f.active != nil && serial <= f.active.Manifest.Serial {
			break
		}
		b, err := f.stored(serial, trust)
		if err == nil {
			err = f.try(ctx, b, activate)
			var files diag.List
			if err != nil && !errors.As(err, &files) {
				f.behind.err = fmt.Errorf("load bundle %d: %w", serial, err)
				return nil, err
			}
		}
		if err == nil {
			if serial < f.floor.Serial && b.Manifest.Name == f.floor.Name {
				problem = cmp.Or(problem, fmt.Errorf("bundle %d is missing in the directory", f.floor.Serial))
			}
			if b.Digest == f.floor.Digest {
				f.activated(b, f.floor.Tag, f.floor.Source)
			} else {
				f.activated(b, "", "")
			}
			break
		}
		problem = cmp.Or(problem, fmt.Errorf("bundle %d in the directory: %w", serial, err))
		f.options.Logger.Warn("skip stored bundle", slog.Int64("serial", serial), slog.String("error", err.Error()))
	}
	if f.active != nil && f.active.Manifest.Serial < f.floor.Serial {
		f.behind = attempt{f.options.Now(), trust.digest, problem}
	}
	return problem, nil
}

// stored reads and verifies a bundle of the directory.
func (f *Follower) stored(serial int64, trust *Trust) (*Bundle, error) {
	data, err := f.folder.disk.read(fileOf(serial))
	if err != nil {
		return nil, err
	}
	b, err := Read(data)
	if err != nil {
		return nil, err
	}
	if b.Manifest.Serial != serial {
		return nil, errors.New("the name of the file is not its serial number")
	}
	if err := trust.Verify(b); err != nil {
		return nil, err
	}
	if serial >= f.floor.Serial {
		if err := f.accepts(b, trust); err != nil {
			return nil, err
		}
	}
	return b, b.Manifest.Usable(f.options.Version, b.Manifest.Created) // it had not expired when it was stored
}

// accepts returns an error if a verified bundle must not follow the bundles that were active before.
// Another name begins a new sequence of serial numbers if the trust file requires that name: only
// who may write that file can change it.
func (f *Follower) accepts(b *Bundle, trust *Trust) error {
	m := &b.Manifest
	switch {
	case f.floor.Serial == 0: // the first bundle
	case m.Name != f.floor.Name && trust.name != "":
	case m.Name != f.floor.Name:
		return fmt.Errorf("its name is %s, and the active bundle is %s", m.Name, f.floor.Name)
	case m.Serial < f.floor.Serial:
		return fmt.Errorf("its serial number %d is lower than %d, which was active", m.Serial, f.floor.Serial)
	case m.Serial == f.floor.Serial && b.Digest != f.floor.Digest:
		return fmt.Errorf("another bundle with the serial number %d was active", m.Serial)
	}
	return nil
}

// Run checks the source until ctx ends, and activates new bundles.
func (f *Follower) Run(ctx context.Context, activate Activate) {
	checked := func() {}
	for {
		held, err := f.take(ctx, activate)
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, errAsked) {
			f.setProblem(err)
			checked()
			checked, f.source.prompt = func() {}, false
		}
		delay := f.options.Poll - f.options.Poll/10 + rand.N(f.options.Poll/5+1) // servers started together spread
		if held && err == nil {
			delay = min(delay, time.Second) // the server already waited
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		case <-f.again:
			f.refused, f.behind.at = refusal{}, time.Time{}
			f.clearPending()
			f.mu.Lock()
			asked := f.asked
			f.asked = nil
			f.mu.Unlock()
			earlier := checked
			checked, f.source.prompt = func() { earlier(); close(asked) }, true
		}
	}
}

// Check makes Run check the source now, or after a download that is under way, and try a refused bundle
// again. The returned channel is closed when [Follower.Status] has the result. It stays open if Run ends first.
func (f *Follower) Check() (checked <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked == nil {
		f.asked = make(chan struct{})
		f.again <- struct{}{} // has room: Run takes both
		f.source.interrupt()
	}
	return f.asked
}

// take makes one check: it requests the bundle, and activates it if it is new.
func (f *Follower) take(ctx context.Context, activate Activate) (held bool, err error) {
	if f.unsaved {
		f.save()
	}
	trust, err := f.trust()
	if err != nil {
		return false, err
	}
	if trust.digest != f.refused.trust {
		f.refused = refusal{}
	}
	if age := f.options.Now().Sub(f.refused.at); age.Abs() > refusalTime {
		f.refused = refusal{}
	}
	if age := f.options.Now().Sub(f.behind.at); f.behind.err != nil && (age.Abs() > refusalTime || trust.digest != f.behind.trust) {
		if _, err := f.activateStored(ctx, trust, activate); err != nil {
			return false, fmt.Errorf("load stored bundle: %w", err)
		}
	}
	got, err := f.source.fetch(ctx, f.tag())
	switch {
	case err != nil && f.behind.err != nil:
		return false, fmt.Errorf("%w; fetch bundle: %w", f.behind.err, err)
	case err != nil:
		return false, coded{CodeFetch, fmt.Errorf("fetch bundle: %w", err)}
	case got.Unchanged && f.refused.err == nil:
		return got.Held, coded{CodeSignature, trust.Verify(f.active)}.orNil() // the trust file may have changed
	case got.Unchanged:
		return got.Held, f.refused.err
	}
	sum := sha256.Sum256(got.Data)
	if f.refused.err != nil && sum == f.refused.digest {
		f.refused.tag = got.Tag
		return got.Held, f.refused.err
	}
	lasting, err := f.consider(ctx, got, trust, activate)
	f.refused = refusal{}
	switch {
	case err != nil:
		f.clearPending()
	case f.pending.serial != 0:
		err = coded{CodeSignature, trust.Verify(f.active)}.orNil() // the trust file may have changed
	}
	if lasting {
		f.refused = refusal{f.options.Now(), trust.digest, got.Tag, sum, err}
	}
	return got.Held, err
}

// tag returns the tag of the version at the source that needs no further look.
func (f *Follower) tag() string {
	switch {
	case f.refused.err != nil:
		return f.refused.tag
	case f.pending.serial != 0:
		return f.pending.tag
	case f.active != nil && f.active.Digest == f.floor.Digest && f.floor.Source == f.source.id():
		return f.floor.Tag
	}
	return ""
}

// consider activates a bundle of the source if all checks pass. lasting means that the error
// comes from the content, so that another try makes no difference.
func (f *Follower) consider(ctx context.Context, got Fetched, trust *Trust, activate Activate) (lasting bool, err error) {
	b, err := Read(got.Data)
	err = coded{CodeFormat, err}.orNil()
	if err == nil {
		err = coded{CodeSignature, trust.Verify(b)}.orNil()
	}
	if err != nil {
		return got.Exact, err // else the transfer may be the cause
	}
	if err := f.accepts(b, trust); err != nil {
		return true, coded{CodeOrder, fmt.Errorf("refuse bundle: %w", err)}
	}
	m := &b.Manifest
	known, now := f.active != nil && f.active.Digest == b.Digest, f.options.Now()
	if b.Digest == f.floor.Digest { // it was active, and may only be damaged in the directory
		now = m.Created
	}
	// A rollout holds back updates only: a server without an active bundle takes any.
	if f.active != nil && b.Digest != f.floor.Digest && !m.Selects(f.options.ID, f.labels()) {
		f.setPending(m, got.Tag)
		return false, nil
	}
	if err := m.Usable(f.options.Version, now); err != nil {
		return true, coded{CodeUnusable, fmt.Errorf("refuse bundle %d: %w", m.Serial, err)}
	}
	if b, err = f.store(b, got.Data, trust); err != nil {
		return false, coded{CodeStore, fmt.Errorf("store bundle %d: %w", m.Serial, err)}
	}
	if !known {
		if err := f.try(ctx, b, activate); err != nil {
			var files diag.List
			lasting = errors.As(err, &files)
			if err = fmt.Errorf("load bundle %d: %w", m.Serial, err); codeOf(err) != CodeDecisions {
				err = coded{CodeLoad, err}
			}
			if m.Serial > f.floor.Serial || m.Name != f.floor.Name {
				err = errors.Join(err, f.folder.disk.remove(fileOf(m.Serial)))
			}
			return lasting, err
		}
	}
	f.activated(b, got.Tag, f.source.id())
	return false, nil
}

// try activates a bundle. One that was never active is examined first.
func (f *Follower) try(ctx context.Context, b *Bundle, activate Activate) error {
	m := &b.Manifest
	if f.options.Examine != nil && (m.Serial > f.floor.Serial || m.Name != f.floor.Name) {
		if err := f.options.Examine(ctx, b.Files()); err != nil {
			return err
		}
	}
	return activate(ctx, b.Files())
}

// store writes a verified bundle to the directory, unless that has it. The signatures that it has
// there stay: a source may add others, and cannot take any away. store returns the stored bundle.
func (f *Follower) store(b *Bundle, data []byte, trust *Trust) (*Bundle, error) {
	name := fileOf(b.Manifest.Serial)
	before, err := f.folder.disk.read(name)
	if err == nil && bytes.Equal(before, data) {
		return b, nil
	}
	if stored, err := Read(before); err == nil && stored.Digest == b.Digest {
		merged := trust.merge(stored, b)
		if merged == stored {
			return stored, nil
		}
		text, err := merged.encode()
		if err != nil { // it would be too large
			return stored, trust.Verify(stored)
		}
		b, data = merged, text
	}
	return b, f.folder.disk.replace(name, data)
}

// activated records that a bundle is in service, and the tag that it has at a source.
func (f *Follower) activated(b *Bundle, tag, source string) {
	m := &b.Manifest
	if f.active == nil || f.active.Digest != b.Digest {
		f.options.Logger.Info("bundle activated", slog.String("name", m.Name), slog.Int64("serial", m.Serial), slog.String("digest", b.Digest))
	}
	f.active = b
	f.clearPending()
	if now := (record{m.Name, m.Serial, b.Digest, tag, source}); (m.Serial >= f.floor.Serial || m.Name != f.floor.Name) && now != f.floor {
		f.floor, f.unsaved = now, true
	}
	if m.Serial >= f.floor.Serial {
		f.behind = attempt{}
	}
	f.save()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Name, f.status.Serial, f.status.Digest, f.status.Created, f.status.Expires = m.Name, m.Serial, b.Digest, m.Created, m.Expires
}

// save removes bundles that are no longer needed and writes the record. If that fails, the next
// check tries it again: until then, a start finds the active bundle by its name.
func (f *Follower) save() {
	if err := f.folder.prune(f.active.Manifest.Serial, f.floor.Serial); err != nil {
		f.options.Logger.Warn("remove old bundle", slog.String("error", err.Error()))
	}
	if !f.unsaved {
		return
	}
	if err := f.folder.setRecord(f.floor); err != nil {
		f.options.Logger.Warn("write bundle record", slog.String("error", err.Error()))
		return
	}
	f.unsaved = false
}

// setProblem publishes the error of a check, or nil, and logs it when it is new.
func (f *Follower) setProblem(err error) {
	f.mu.Lock()
	before, now := f.status.Problem, ""
	if err != nil {
		now = truncate.Start(err.Error(), maxProblem)
	} else {
		f.status.Checked = f.options.Now()
	}
	f.status.Problem, f.status.Code, f.status.Files = now, codeOf(err), nil
	_ = errors.As(err, &f.status.Files)
	f.mu.Unlock()
	switch {
	case now == before:
	case now == "":
		f.options.Logger.Info("bundle source in order again")
	default:
		f.options.Logger.Warn("keep active bundle", slog.String("problem", now))
	}
}

// The values of [Status].Code.
const (
	// CodeTrust: the trust file cannot be used.
	CodeTrust = "trust"
	// CodeFetch: the source cannot be read.
	CodeFetch = "fetch"
	// CodeFormat: the source has no valid bundle.
	CodeFormat = "format"
	// CodeSignature: too few trusted keys signed the bundle, or its name is not the trusted one.
	CodeSignature = "signature"
	// CodeOrder: its serial number is too low, or its name another one.
	CodeOrder = "order"
	// CodeUnusable: it expired, or needs a newer mcpd.
	CodeUnusable = "unusable"
	// CodeStore: it cannot be written to the directory.
	CodeStore = "store"
	// CodeLoad: its files have errors, or a test fails.
	CodeLoad = "load"
	// CodeDecisions: Examine refused it because of what its policies decide.
	CodeDecisions = "decisions"
	// CodeDirectory: a bundle of the directory cannot be served.
	CodeDirectory = "directory"
	// CodeExpired: the bundle in service expired, and nothing else is wrong.
	CodeExpired = "expired"
)

// coded is an error with its [Status].Code.
type coded struct {
	code string
	error
}

func (c coded) Unwrap() error { return c.error }

// Refuse returns an error of [Options].Examine: the bundle changes decisions that must not change.
func Refuse(reason error) error { return coded{CodeDecisions, reason} }

// orNil returns nil if there is no error.
func (c coded) orNil() error {
	if c.error == nil {
		return nil
	}
	return c
}

// codeOf returns the code of the error of a check; "" for nil.
func codeOf(err error) string {
	var c coded
	switch {
	case err == nil:
		return ""
	case errors.As(err, &c):
		return c.code
	}
	return CodeDirectory
}

// labels returns the labels of this server.
func (f *Follower) labels() map[string]string {
	if f.options.Labels == nil {
		return nil
	}
	return f.options.Labels()
}

// Status returns the state.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.status
	if !s.Expires.IsZero() && !f.options.Now().Before(s.Expires) {
		expired := "the active bundle expired at " + s.Expires.Format(time.RFC3339)
		if s.Problem != "" {
			expired += "; " + s.Problem
		}
		s.Problem = expired
		s.Code = cmp.Or(s.Code, CodeExpired)
	}
	return s
}

// Files are the files of the bundle that an engine loads. [Files.Use] replaces all of them at
// once. An engine reads files only while it loads; the caller must not call Use during a load.
type Files struct {
	mu      sync.Mutex
	current fs.FS
}

// Use replaces the files and returns the files before; nil the first time.
func (f *Files) Use(files fs.FS) (before fs.FS) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, f.current = f.current, files
	return before
}

// Manifest returns the manifest of the current files, or nil if there are none.
func (f *Files) Manifest() *Manifest {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, ok := f.current.(packed); ok {
		return p.manifest
	}
	return nil
}

// Open opens a file of the current bundle.
func (f *Files) Open(name string) (fs.File, error) {
	f.mu.Lock()
	current := f.current
	f.mu.Unlock()
	if current == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return current.Open(name)
}
