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

// errFixed is why what is taken in is not in the file of a lock that is not written.
var errFixed = errors.New("mcpd serve writes the lock file, and this does not")

// pins are the lock, and what became of it.
type pins struct {
	federation.Pins
	Logger *slog.Logger

	file []byte         // what was read last; nil for no file
	read *lockfile.Lock // what it says
	kept *lockfile.Lock // what was taken in and is not in the file
	lock *lockfile.Lock // both, and what the gone upstreams are served by
	gone []string       // those that are forgotten
	// broken says that the file cannot be read, or has a mistake.
	broken bool
	// listings are what upstreams offer as far as the lock listed has it.
	listings map[string]*upstream.Listing
	listed   *lockfile.Lock
	// unkept is why the file does not have what is kept.
	unkept error
	// sum is that of the lock summed.
	summed *lockfile.Lock
	sum    [sha256.Size]byte
	// served is the lock by which tools are served, nil before any are, and quarantined are
	// those that are not for it.
	served      *lockfile.Lock
	quarantined map[lockfile.Change]bool
}

func newPins(p federation.Pins, logger *slog.Logger) pins {
	if p.Audit == nil {
		p.Audit = func(string, map[string]string) {}
	}
	none := new(lockfile.Lock)
	return pins{Pins: p, Logger: logger, read: none, kept: none, lock: none}
}

// load takes in the file as it is now. A mistake in it changes nothing.
func (p *pins) load(file catalog.LockFile) (problems diag.List) {
	if p.broken = file.Unreadable; p.broken {
		return nil // which who has read it tells
	}
	if bytes.Equal(file.Text, p.file) && (file.Text == nil) == (p.file == nil) {
		return nil
	}
	read := new(lockfile.Lock)
	if file.Text != nil {
		var err error
		if read, err = lockfile.Parse(file.Text); err != nil {
			p.broken = true
			return diag.List{broken(file, err)}
		}
	}
	p.file = file.Text
	p.set(read, p.kept)
	return nil
}

// set has the lock be what a file says, and of what is kept that which it does not say.
func (p *pins) set(read, kept *lockfile.Lock) {
	p.read, p.kept, p.lock, p.gone = read, new(lockfile.Lock), read, nil
	for _, upstream := range kept.Upstreams() {
		if !knows(read, upstream) {
			tools := kept.Tools(upstream)
			p.kept, p.lock = p.kept.Pin(upstream, tools...), p.lock.Pin(upstream, tools...)
		}
	}
}

// broken is the mistake that keeps a lock file from being read.
func broken(file catalog.LockFile, err error) diag.Diagnostic {
	d := diag.Diagnostic{
		Code: "bad-lock", Summary: err.Error(), Range: diag.Range{File: file.Name},
		Detail: "put the file back as it was, or remove what is wrong block by block; mcpd lock accept adds the blocks that are missing",
	}
	if wrong, ok := errors.AsType[*lockfile.MistakeError](err); ok {
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

// forgotten reports the upstreams of which the lock says nothing any more: a file that is
// gone, or half written, for the moment must not have anything taken in anew. By what they
// were served they are held on.
func (p *pins) forgotten(blocks []definition.Upstream, name string) (problems diag.List) {
	var gone []string
	for i := range blocks {
		u := &blocks[i]
		if _, pinned := p.mode(u); pinned && p.served != nil && knows(p.served, u.Name) && !knows(p.read, u.Name) && !knows(p.kept, u.Name) {
			gone = append(gone, u.Name)
			problems = append(problems, diag.Diagnostic{
				Code: "lock-gone", Range: diag.Range{File: name},
				Summary: fmt.Sprintf("the file no longer knows the upstream %q, and what was accepted of it still holds", u.Name),
				Detail:  "put back what the file said, or run mcpd lock accept",
			})
		}
	}
	if !slices.Equal(gone, p.gone) {
		p.set(p.read, p.kept)
		for _, upstream := range gone {
			p.lock = p.lock.Pin(upstream, p.served.Tools(upstream)...)
		}
		p.gone = gone
	}
	return problems
}

// mode returns by what an upstream is held to the lock, and whether it is at all.
func (p *pins) mode(u *definition.Upstream) (mode lockfile.Mode, pinned bool) {
	switch {
	case !u.Offers(definition.OfferTools) || u.Pin == definition.PinOff:
		return 0, false
	case u.Pin == definition.PinStrict || p.doubtful():
		return lockfile.Strict, true
	}
	return lockfile.FirstUse, p.Path != ""
}

// doubtful reports whether the file is not what it should be: then nothing is taken in, and
// nothing is written.
func (p *pins) doubtful() bool { return p.broken || len(p.gone) > 0 }

// lazy reports whether an upstream is reached when it is called first: something was
// accepted of it, which is what it offers until then.
func (p *pins) lazy(u *definition.Upstream) bool {
	return u.Lazy && !p.Eager && knows(p.lock, u.Name)
}

// listing is what an upstream offers as far as it was accepted, the same as long as the lock
// is; nil where that is nothing.
func (p *pins) listing(u *definition.Upstream) *upstream.Listing {
	if _, pinned := p.mode(u); !pinned || !knows(p.lock, u.Name) {
		return nil
	}
	if p.listed != p.lock {
		p.listed, p.listings = p.lock, map[string]*upstream.Listing{}
	}
	l := p.listings[u.Name]
	if l == nil {
		l = &upstream.Listing{}
		for _, t := range p.lock.Tools(u.Name) {
			l.Tools = append(l.Tools, t.Definition())
		}
		p.listings[u.Name] = l
	}
	return l
}

// known returns the tools that were accepted of an upstream, as callers call them.
func (p *pins) known(u *definition.Upstream) (names []catalog.ToolName) {
	if _, pinned := p.mode(u); !pinned {
		return nil
	}
	for _, t := range p.lock.Tools(u.Name) {
		if u.Includes(t.Name()) {
			names = append(names, catalog.ToolName{Upstream: u.Name, Name: u.LocalName(t.Name())})
		}
	}
	return names
}

// knows reports whether a lock knows an upstream.
func knows(l *lockfile.Lock, upstream string) bool {
	_, known := slices.BinarySearch(l.Upstreams(), upstream)
	return known
}

// hash returns that of what was accepted and of what was not, if offers are served; it is
// zero as long as there is nothing of either.
func (p *pins) hash(offers []*offer) (sum [sha256.Size]byte) {
	lock, some := p.with(offers), false
	if p.summed != lock {
		p.summed, p.sum = lock, lock.Sum()
	}
	h := sha256.New()
	h.Write(p.sum[:])
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

// with returns the lock with what is taken in of offers.
func (p *pins) with(offers []*offer) *lockfile.Lock {
	lock := p.lock
	for _, o := range offers {
		if o.first && !knows(lock, o.upstream) {
			lock = lock.Pin(o.upstream, o.pinned...)
		}
	}
	return lock
}

// serve has offers be served: what they take in is written to the file first.
func (p *pins) serve(offers []*offer) {
	p.tellAccepted()
	var firsts []*offer
	kept := p.kept
	for _, o := range offers {
		if o.first && !knows(p.lock, o.upstream) {
			firsts, kept = append(firsts, o), kept.Pin(o.upstream, o.pinned...)
		}
	}
	if len(kept.Upstreams()) > 0 && !p.doubtful() {
		p.keep(kept, firsts != nil)
	}
	sum := sha256.Sum256(p.file)
	for _, o := range firsts {
		lock := ""
		if !knows(p.kept, o.upstream) {
			lock = hex.EncodeToString(sum[:])
		}
		if !p.Fixed {
			p.Logger.Info("the tools of an upstream are pinned as it lists them now", slog.String("upstream", o.upstream), slog.Int("tools", len(o.pinned)))
		}
		p.Audit("upstream.pinned", map[string]string{"upstream": o.upstream, "tools": strconv.Itoa(len(o.pinned)), "lock": lock})
	}
	p.served = p.lock
	p.tellQuarantined(offers)
}

// tellAccepted tells what the lock says otherwise than that by which tools were served.
func (p *pins) tellAccepted() {
	if p.served == nil || p.served == p.lock {
		return
	}
	for _, upstream := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.served.Upstreams(), p.lock.Upstreams())))) {
		for _, c := range p.served.Check(upstream, p.lock.Tools(upstream), lockfile.Strict).Changes {
			p.tellAcceptedOne(c)
		}
		for _, c := range p.served.Exposed(upstream, p.lock) {
			p.tellAcceptedOne(c)
		}
	}
}

func (p *pins) tellAcceptedOne(c lockfile.Change) {
	attributes, texts := attributesOf(c), textsOf(c)
	if c.New.Raw() {
		attributes, texts["raw"] = append(attributes, slog.Bool("raw", true)), "true"
	}
	p.Logger.Info("a change of a tool of an upstream is accepted", attributes...)
	p.Audit("upstream.accepted", texts)
}

// textsOf returns a change for records: definitions are their hashes, "" for none.
func textsOf(c lockfile.Change) map[string]string {
	return map[string]string{"upstream": c.Upstream, "tool": c.Name, "kind": c.Kind.String(), "old": hashOf(c.Old), "new": hashOf(c.New)}
}

// attributesOf returns a change for the log.
func attributesOf(c lockfile.Change) []any {
	return []any{
		slog.String("upstream", c.Upstream), slog.String("tool", c.Name), slog.String("kind", c.Kind.String()),
		slog.String("old", hashOf(c.Old)), slog.String("new", hashOf(c.New)),
	}
}

func hashOf(t lockfile.Tool) string {
	if t == (lockfile.Tool{}) {
		return ""
	}
	return t.Hash()
}

// errRoom is why what an upstream lists is not in a file that has no room for it.
var errRoom = errors.New("the lock file would be too long with it")

// keep writes what the file does not have to it, or keeps it in memory where that cannot
// be. Somebody who has changed the file meanwhile is not overwritten: the file is read
// again then, and this is tried again.
func (p *pins) keep(kept *lockfile.Lock, fresh bool) {
	before := p.unkept
	if fresh {
		p.set(p.read, kept)
	}
	p.unkept = errFixed
	if p.Fixed {
		return
	}
	if p.unkept = p.write(); p.unkept != nil && (fresh || before == nil || before.Error() != p.unkept.Error()) {
		p.Logger.Warn("what upstreams offer is pinned in memory only, and anew at the next start",
			slog.Any("upstreams", p.kept.Upstreams()), slog.String("error", p.unkept.Error()))
	}
}

// write writes what is kept to the file, and returns why something of it still is: for want
// of room that is what would make the file too long, and the rest is written.
func (p *pins) write() error {
	full := p.read.Fill(p.kept)
	if full == p.read {
		return errRoom
	}
	switch now, err := lockfile.Read(p.Path); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && now.Sum() != p.read.Sum() || err != nil && p.file != nil:
		return errors.New("the file has changed meanwhile")
	}
	if err := lockfile.Write(p.Path, full); err != nil {
		return err
	}
	p.file = full.Encode()
	if p.set(full, p.kept); len(p.kept.Upstreams()) > 0 {
		return errRoom
	}
	return nil
}

// maxQuarantined bounds how many tools that come into quarantine at once are told one by
// one: a server may list thousands of new names each time that it is asked.
const maxQuarantined = 20

// tellQuarantined tells which tools are in quarantine that were not: of each upstream the
// first, and how many more there are.
func (p *pins) tellQuarantined(offers []*offer) {
	now := map[lockfile.Change]bool{}
	for _, o := range offers {
		told := 0
		for _, c := range o.quarantined {
			if now[c] = true; p.quarantined[c] {
				continue
			}
			if told++; told <= maxQuarantined {
				p.Logger.Warn("a tool of an upstream is in quarantine until it is accepted; mcpd lock diff shows the change", attributesOf(c)...)
				p.Audit("upstream.quarantined", textsOf(c))
			}
		}
		if more := told - maxQuarantined; more > 0 {
			p.Logger.Warn("more tools of an upstream are in quarantine until they are accepted; mcpd lock diff shows them", slog.String("upstream", o.upstream), slog.Int("tools", more))
			p.Audit("upstream.quarantined", map[string]string{"upstream": o.upstream, "tools": strconv.Itoa(more)})
		}
	}
	p.quarantined = now
}
