package overlay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// errReadOnlyLock is the save error of a process that does not write the lock file.
var errReadOnlyLock = errors.New("only mcpd serve writes the lock file")

// lockState is the lock file and the changes to it that are not saved.
type lockState struct {
	federation.LockOptions
	Logger *slog.Logger

	fileText  []byte         // content at the last load; nil if there is no file
	fromFile  *lockfile.Lock // the lock in the file
	unsaved   *lockfile.Lock // pinned tools that are not in the file
	effective *lockfile.Lock // fromFile, unsaved, and the tools of vanished upstreams
	vanished  []string       // upstreams that the file no longer has
	// broken means that the file cannot be read or has an error.
	broken bool
	// listings are the accepted tools of upstreams, built from the lock listingsOf.
	listings   map[string]*upstream.Listing
	listingsOf *lockfile.Lock
	// saveErr says why the unsaved tools are not in the file.
	saveErr error
	// hashValue is the hash of the lock hashed.
	hashed    *lockfile.Lock
	hashValue [sha256.Size]byte
	// served is the lock that serves tools, nil before any are served. quarantined are the
	// tools that it does not accept.
	served      *lockfile.Lock
	quarantined map[lockfile.Change]bool
}

func newLockState(o federation.LockOptions, logger *slog.Logger) lockState {
	if o.Audit == nil {
		o.Audit = func(string, map[string]string) {}
	}
	none := new(lockfile.Lock)
	return lockState{LockOptions: o, Logger: logger, fromFile: none, unsaved: none, effective: none}
}

// load reads the current file. An invalid file changes nothing.
func (s *lockState) load(file catalog.LockFile) (problems diag.List) {
	if s.broken = file.Unreadable; s.broken {
		return nil // the reader of the file reports it
	}
	if bytes.Equal(file.Text, s.fileText) && (file.Text == nil) == (s.fileText == nil) {
		return nil
	}
	read := new(lockfile.Lock)
	if file.Text != nil {
		var err error
		if read, err = lockfile.Parse(file.Text); err != nil {
			s.broken = true
			return diag.List{lockDiagnostic(file, err)}
		}
	}
	s.fileText = file.Text
	s.set(read, s.unsaved)
	return nil
}

// set sets the lock to the content of the file plus the unsaved tools that it does not have.
func (s *lockState) set(read, unsaved *lockfile.Lock) {
	s.fromFile, s.unsaved, s.effective, s.vanished = read, new(lockfile.Lock), read, nil
	for _, upstream := range unsaved.Upstreams() {
		if !hasUpstream(read, upstream) {
			tools := unsaved.Tools(upstream)
			s.unsaved, s.effective = s.unsaved.WithTools(upstream, tools...), s.effective.WithTools(upstream, tools...)
		}
	}
}

// lockDiagnostic reports an error in a lock file.
func lockDiagnostic(file catalog.LockFile, err error) diag.Diagnostic {
	d := diag.Diagnostic{
		Code: "bad-lock", Summary: err.Error(), Range: diag.Range{File: file.Name},
		Detail: "restore the file, or remove the wrong blocks; mcpd lock accept adds missing blocks",
	}
	if wrong, ok := errors.AsType[*lockfile.ParseError](err); ok {
		d.Summary = wrong.Err.Error()
		if wrong.Line > 0 {
			begin := diag.Pos{Line: wrong.Line, Column: 1}
			for range wrong.Line - 1 {
				begin.Byte += bytes.IndexByte(file.Text[begin.Byte:], '\n') + 1
			}
			d.Range.Start, d.Range.End = begin, begin
		}
	}
	return d
}

// checkVanished reports upstreams that have disappeared from the lock file. A file that is
// briefly missing or half written must not pin tools anew. The tools that serve stay accepted.
func (s *lockState) checkVanished(blocks []definition.Upstream, name string) (problems diag.List) {
	var vanished []string
	for i := range blocks {
		u := &blocks[i]
		if _, pinned := s.mode(u); pinned && s.served != nil && hasUpstream(s.served, u.Name) && !hasUpstream(s.fromFile, u.Name) && !hasUpstream(s.unsaved, u.Name) {
			vanished = append(vanished, u.Name)
			problems = append(problems, diag.Diagnostic{
				Code: "lock-gone", Range: diag.Range{File: name},
				Summary: fmt.Sprintf("the file no longer contains the upstream %q; its accepted tools stay in effect", u.Name),
				Detail:  "restore the file, or run mcpd lock accept",
			})
		}
	}
	if !slices.Equal(vanished, s.vanished) {
		s.set(s.fromFile, s.unsaved)
		for _, upstream := range vanished {
			s.effective = s.effective.WithTools(upstream, s.served.Tools(upstream)...)
		}
		s.vanished = vanished
	}
	return problems
}

// mode returns how an upstream is compared with the lock, and whether it is at all.
func (s *lockState) mode(u *definition.Upstream) (mode lockfile.Mode, pinned bool) {
	switch {
	case !u.Offers(definition.OfferTools) || u.Pin == definition.PinOff:
		return 0, false
	case u.Pin == definition.PinStrict || s.Strict || s.isUnreliable():
		return lockfile.Strict, true
	}
	return lockfile.FirstUse, s.Path != ""
}

// isUnreliable reports whether the file is invalid or incomplete: then no tool is pinned, and
// nothing is written.
func (s *lockState) isUnreliable() bool { return s.broken || len(s.vanished) > 0 }

// isLazy reports whether an upstream is connected on its first call: its accepted tools are
// offered until then.
func (s *lockState) isLazy(u *definition.Upstream) bool {
	return u.Lazy && !s.Eager && hasUpstream(s.effective, u.Name)
}

// listing returns the accepted tools of an upstream as a listing, or nil if there are none. It
// returns the same listing until the lock changes.
func (s *lockState) listing(u *definition.Upstream) *upstream.Listing {
	if _, pinned := s.mode(u); !pinned || !hasUpstream(s.effective, u.Name) {
		return nil
	}
	if s.listingsOf != s.effective {
		s.listingsOf, s.listings = s.effective, map[string]*upstream.Listing{}
	}
	l := s.listings[u.Name]
	if l == nil {
		l = &upstream.Listing{}
		for _, t := range s.effective.Tools(u.Name) {
			l.Tools = append(l.Tools, t.Definition())
		}
		s.listings[u.Name] = l
	}
	return l
}

// toolNames returns the local names of the accepted tools of an upstream.
func (s *lockState) toolNames(u *definition.Upstream) (names []catalog.ToolName) {
	if _, pinned := s.mode(u); !pinned {
		return nil
	}
	for _, t := range s.effective.Tools(u.Name) {
		if u.Includes(t.Name()) {
			names = append(names, catalog.ToolName{Upstream: u.Name, Name: u.LocalName(t.Name())})
		}
	}
	return names
}

// hasUpstream reports whether a lock contains an upstream.
func hasUpstream(l *lockfile.Lock, upstream string) bool {
	_, known := slices.BinarySearch(l.Upstreams(), upstream)
	return known
}

// hash returns a hash of the accepted and the quarantined tools if offers are served. It is
// zero while there are none.
func (s *lockState) hash(offers []*offer) (sum [sha256.Size]byte) {
	lock, some := s.withFirstUse(offers), false
	if s.hashed != lock {
		s.hashed, s.hashValue = lock, lock.Hash()
	}
	h := sha256.New()
	h.Write(s.hashValue[:])
	for _, o := range offers {
		for _, c := range o.quarantined {
			some = true
			fmt.Fprintf(h, "\n%s %q %q %s", c.Kind, c.Upstream, c.Name, c.New.Hash())
		}
	}
	if some || len(lock.Upstreams()) > 0 {
		h.Sum(sum[:0])
	}
	return sum
}

// withFirstUse returns the lock with the tools that offers pin on first use.
func (s *lockState) withFirstUse(offers []*offer) *lockfile.Lock {
	lock := s.effective
	for _, o := range offers {
		if o.firstUse && !hasUpstream(lock, o.upstream) {
			lock = lock.WithTools(o.upstream, o.pinned...)
		}
	}
	return lock
}

// commit makes offers the served ones. It writes their pinned tools to the file first.
func (s *lockState) commit(offers []*offer) {
	s.logAccepted()
	var firstUses []*offer
	unsaved := s.unsaved
	for _, o := range offers {
		if o.firstUse && !hasUpstream(s.effective, o.upstream) {
			firstUses, unsaved = append(firstUses, o), unsaved.WithTools(o.upstream, o.pinned...)
		}
	}
	if len(unsaved.Upstreams()) > 0 && !s.isUnreliable() {
		s.save(unsaved, firstUses != nil)
	}
	sum := sha256.Sum256(s.fileText)
	for _, o := range firstUses {
		lock := ""
		if !hasUpstream(s.unsaved, o.upstream) {
			lock = hex.EncodeToString(sum[:])
		}
		if !s.ReadOnly {
			s.Logger.Info("pin upstream tools on first use", slog.String("upstream", o.upstream), slog.Int("tools", len(o.pinned)))
		}
		s.Audit("upstream.pinned", map[string]string{"upstream": o.upstream, "tools": strconv.Itoa(len(o.pinned)), "lock": lock})
	}
	s.served = s.effective
	s.logQuarantined(offers)
}

// logAccepted logs the changes of the lock since tools were last served.
func (s *lockState) logAccepted() {
	if s.served == nil || s.served == s.effective {
		return
	}
	for _, upstream := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.served.Upstreams(), s.effective.Upstreams())))) {
		for _, c := range s.served.Check(upstream, s.effective.Tools(upstream), lockfile.Strict).Changes {
			s.logAcceptedChange(c)
		}
		for _, c := range s.served.RawChanges(upstream, s.effective) {
			s.logAcceptedChange(c)
		}
	}
}

func (s *lockState) logAcceptedChange(c lockfile.Change) {
	attributes, texts := logAttributes(c), auditAttributes(c)
	if c.New.Raw() {
		attributes, texts["raw"] = append(attributes, slog.Bool("raw", true)), "true"
	}
	s.Logger.Info("upstream tool change accepted", attributes...)
	s.Audit("upstream.accepted", texts)
}

// auditAttributes returns a change as attributes of an audit event. Definitions are hashes, or
// "".
func auditAttributes(c lockfile.Change) map[string]string {
	return map[string]string{"upstream": c.Upstream, "tool": c.Name, "kind": c.Kind.String(), "old": definitionHash(c.Old), "new": definitionHash(c.New)}
}

// logAttributes returns a change as attributes of a log record.
func logAttributes(c lockfile.Change) []any {
	return []any{
		slog.String("upstream", c.Upstream), slog.String("tool", c.Name), slog.String("kind", c.Kind.String()),
		slog.String("old", definitionHash(c.Old)), slog.String("new", definitionHash(c.New)),
	}
}

func definitionHash(t lockfile.Tool) string {
	if t == (lockfile.Tool{}) {
		return ""
	}
	return t.Hash()
}

// errLockFull says that the lock file has no room for the tools of an upstream.
var errLockFull = errors.New("the lock file would be too long")

// save writes the unsaved tools to the file, and keeps them in memory if that fails. It does
// not overwrite a file that was changed in the meantime: the file is loaded again, and save is
// retried.
func (s *lockState) save(unsaved *lockfile.Lock, added bool) {
	before := s.saveErr
	if added {
		s.set(s.fromFile, unsaved)
	}
	s.saveErr = errReadOnlyLock
	if s.ReadOnly {
		return
	}
	if s.saveErr = s.write(); s.saveErr != nil && (added || before == nil || before.Error() != s.saveErr.Error()) {
		s.Logger.Warn("write lock file",
			slog.Any("upstreams", s.unsaved.Upstreams()), slog.String("error", s.saveErr.Error()))
	}
}

// write writes the unsaved tools to the file, and returns why some remain unsaved. If the file
// would be too long, it writes the tools that fit.
func (s *lockState) write() error {
	full := s.fromFile.WithMissing(s.unsaved)
	if full == s.fromFile {
		return errLockFull
	}
	switch onDisk, err := lockfile.Read(s.Path); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && onDisk.Hash() != s.fromFile.Hash() || err != nil && s.fileText != nil:
		return errors.New("the file has changed in the meantime")
	}
	if err := lockfile.Write(s.Path, full); err != nil {
		return err
	}
	s.fileText = full.Encode()
	if s.set(full, s.unsaved); len(s.unsaved.Upstreams()) > 0 {
		return errLockFull
	}
	return nil
}

// maxLogged bounds the newly quarantined tools that are logged one by one: a server may list
// thousands of new names each time.
const maxLogged = 20

// logQuarantined logs newly quarantined tools: for each upstream the first ones, and the number
// of the others.
func (s *lockState) logQuarantined(offers []*offer) {
	now := map[lockfile.Change]bool{}
	for _, o := range offers {
		logged := 0
		for _, c := range o.quarantined {
			if now[c] = true; s.quarantined[c] {
				continue
			}
			if logged++; logged <= maxLogged {
				s.Logger.Warn("quarantine upstream tool, see mcpd lock diff", logAttributes(c)...)
				s.Audit("upstream.quarantined", auditAttributes(c))
			}
		}
		if more := logged - maxLogged; more > 0 {
			s.Logger.Warn("quarantine more upstream tools, see mcpd lock diff", slog.String("upstream", o.upstream), slog.Int("tools", more))
			s.Audit("upstream.quarantined", map[string]string{"upstream": o.upstream, "tools": strconv.Itoa(more)})
		}
	}
	s.quarantined = now
}
