package scripting

import (
	"crypto/sha256"
	"path"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/diag"
)

// What is compiled again to find mistakes behind others, in bytes: the body and
// what it imports, and for each time what starting a compiler is worth.
const (
	maxAgain   = 64 << 10
	perAgain   = 6 << 10
	perLowered = 2 << 10  // where another compiler comes first
	perLate    = 12 << 10 // where all of it could be parsed
)

// recovery finds all mistakes of a body: it leaves out what is around the
// mistakes of syntax that it knows, and compiles the rest again.
type recovery struct {
	src Source
	// removed is what was left out of code, and text the code without it.
	removed *leftOut
	text    string
	patches patches
	told    diag.List
	left    int
	// readable is the body without what could not be cut into tokens, once
	// all else could be, and hidden are the patches of that time.
	readable string
	hidden   patches
}

// remembering returns the source with a trial that is made once, and imports
// that are read once.
func remembering(src Source) Source {
	given := src
	if src.Trial != nil {
		tried := sync.OnceValue(func() error { return given.Trial(given) })
		src.Trial = func(Source) error { return tried() }
	}
	if src.Import != nil {
		type answer struct {
			data []byte
			err  error
		}
		known := map[string]answer{}
		src.Import = func(name string) ([]byte, error) {
			a, ok := known[name]
			if !ok {
				a.data, a.err = given.Import(name)
				known[name] = a
			}
			return a.data, a.err
		}
	}
	return src
}

func (r *recovery) run() *Program {
	first, program := r.compile()
	if r.removed != nil {
		first, program = r.typed(first, program)
	}
	typed := r.src.Kind != Code && first.suggestTypeScript()
	if r.told = first.list; r.removed != nil {
		r.told = append(r.told, r.removed.tellRemoved(r.src.Text)...)
	}
	if typed {
		r.src.Language = TS
		if typed, ok := r.again(first); ok {
			r.told = append(r.told, typed.list...)
			first = typed
		}
	}
	switch {
	case len(first.spots) > 0:
		r.all(first)
	case first.stopped:
		r.unchecked(spot{})
	}
	return program
}

// compile compiles what is not left out.
func (r *recovery) compile() (*compilation, *Program) {
	c := &compilation{src: r.src, text: r.text, removed: r.removed, digest: sha256.New(), meant: sha256.New(), patches: r.patches}
	program := c.run()
	if c.cut && r.readable == "" {
		r.readable, r.hidden = c.body(), r.patches.clone()
	}
	return c, program
}

// typed compiles code once more as TypeScript where it is no JavaScript, unless it
// is neither. What an agent writes does not say which of the two it is.
func (r *recovery) typed(first *compilation, program *Program) (*compilation, *Program) {
	if program != nil || r.src.Language != JS || len(first.spots) == 0 || len(r.text) > MaxBody {
		return first, program
	}
	r.src.Language = TS
	if typed, program := r.compile(); len(typed.spots) == 0 {
		return typed, program
	}
	r.src.Language = JS
	return first, nil
}

// again compiles once more what was compiled, as far as there is leave to do so.
func (r *recovery) again(last *compilation) (*compilation, bool) {
	cost := last.read
	if !last.cut {
		cost /= 4 // it was not parsed
	}
	if last.src.Language == TS || len(last.files) > 0 {
		cost += perLowered
	}
	if last.late {
		cost += cost + perLate
	}
	if r.left -= cost + perAgain; r.left < 0 {
		return nil, false
	}
	c, _ := r.compile()
	return c, true
}

// all tells what else there is, once what is around the first mistakes is left out.
func (r *recovery) all(last *compilation) {
	for len(last.spots) > 0 {
		if len(r.told) >= maxReports {
			r.unchecked(last.spots[0])
			return
		}
		if slices.ContainsFunc(last.spots, spot.bound) || !r.leaveOut(last) {
			break
		}
		next, ok := r.again(last)
		if !ok {
			r.unchecked(last.spots[0])
			break
		}
		if last = next; !r.follows(last.spots) {
			r.told = append(r.told, last.list...)
		}
	}
	if last.stopped {
		r.unchecked(spot{})
	}
	r.names()
}

// follows reports whether one of the mistakes may come of what was left out.
func (r *recovery) follows(spots []spot) bool {
	for _, s := range spots {
		if p := r.patches[s.file]; p != nil && p.near(s) >= 0 {
			return true
		}
	}
	return false
}

// leaveOut leaves out what is around the mistakes of a compilation or, where
// some may come of what is left out already, more around that. It reports
// whether there was anything to leave out.
func (r *recovery) leaveOut(c *compilation) bool {
	if r.patches == nil {
		r.patches = patches{}
	}
	more, follows := false, r.follows(c.spots)
	cut := map[string]*cutter{}
	for _, s := range c.spots {
		p := r.patch(c, s.file)
		if cut[s.file] == nil {
			cut[s.file] = cutUp(p.text, p.language)
		}
		i := p.near(s)
		switch {
		case i >= 0 && follows:
			more = p.widen(i, s) || more
		case i < 0 && !follows:
			p.leaveOut(s, cut[s.file])
			more = true
		}
	}
	return more
}

func (r *recovery) patch(c *compilation, file string) *patch {
	if p := r.patches[file]; p != nil {
		return p
	}
	p := &patch{text: c.written(), language: c.src.Language}
	if file != "" {
		_, language, _ := loaderOf(file)
		p.text, p.language, p.data = c.files[file].Body(), language, path.Ext(file) == ".json"
	}
	r.patches[file] = p
	return p
}

// names tells what the tokens say of names in what was left out because of a
// parser.
func (r *recovery) names() {
	if r.readable == "" {
		return
	}
	c := &compilation{src: r.src, text: r.text, removed: r.removed, patches: r.hidden}
	if s := c.scan(r.readable); s != nil {
		c.checkMembers(s.found)
		c.checkNames(s.found)
	}
	for _, d := range c.list {
		if d.Severity == diag.Error {
			r.told = append(r.told, d)
		}
	}
}

// unchecked says that there may be more mistakes.
func (r *recovery) unchecked(s spot) {
	text := r.src.Text
	if s.file != "" {
		s.at = 0
	}
	r.told = append(r.told, diag.Diagnostic{
		Severity: diag.Warning, Code: "script-unchecked", Range: text.Range(s.at, wordEnd(text.Body(), s.at)),
		Summary: "what else is wrong is not shown", Detail: "correct what is told of this body and of what it imports, and check again",
	})
}

// withoutEchoes drops the warnings of names that are not defined from lines
// with mistakes of syntax, of which they mostly come, and what is said of the end of a
// body that has such a mistake.
func withoutEchoes(list diag.List) diag.List {
	type line struct {
		file string
		line int
	}
	wrong := map[line]bool{}
	for _, d := range list {
		if d.Code == "script-syntax" {
			wrong[line{d.Range.File, d.Range.Start.Line}] = true
		}
	}
	return slices.DeleteFunc(list, func(d diag.Diagnostic) bool {
		return d.Code == noReturn && len(wrong) > 0 || d.Code == "undefined-name" && d.Severity == diag.Warning && wrong[line{d.Range.File, d.Range.Start.Line}]
	})
}
