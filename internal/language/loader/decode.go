package loader

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// decoded is the definitions of a tool file, and the inputs they depend on besides its text.
type decoded struct {
	scope    Hash
	reads    map[string]Hash
	defined  definition.Definitions
	problems diag.List
}

// Definitions parses and evaluates every changed tool file, and those with changed inputs. It
// returns the definitions of all files in bytewise order of their paths, and all diagnostics of
// the directory and its files.
func (t *Tree) Definitions(config *definition.Config) ([]*definition.Definitions, diag.List) {
	return t.definitions(config, func(u *toolFile) **decoded { return &u.decoded })
}

// Stage is like [Tree.Definitions] for a config with other values of variables, identified by
// name. It does not change the result of Definitions.
func (t *Tree) Stage(name string, config *definition.Config) ([]*definition.Definitions, diag.List) {
	for _, u := range t.files {
		if u.staged == nil {
			u.staged = map[string]**decoded{}
		}
		if u.staged[name] == nil {
			u.staged[name] = new(*decoded)
		}
	}
	return t.definitions(config, func(u *toolFile) **decoded { return u.staged[name] })
}

// KeepStages removes all stages except the wanted ones.
func (t *Tree) KeepStages(wanted func(name string) bool) {
	for _, u := range t.files {
		maps.DeleteFunc(u.staged, func(name string, _ **decoded) bool { return !wanted(name) })
	}
}

// folderScope is the scope of the files of one directory, and its hash.
type folderScope struct {
	scope hclfile.Scope
	key   Hash
}

// definitions implements Definitions; slot returns where to store the result of a file.
func (t *Tree) definitions(config *definition.Config, slot func(*toolFile) **decoded) ([]*definition.Definitions, diag.List) {
	units := t.sorted()
	secrets := make([]string, len(config.Secrets))
	for i, secret := range config.Secrets {
		secrets[i] = secret.Name
	}
	vars := variablesKey(config)
	scopeOf := func(locals *hclfile.Locals, incomplete bool) folderScope {
		scope := hclfile.Scope{Vars: config.Variables, Locals: locals, Secrets: secrets, Incomplete: incomplete}
		return folderScope{scope, scopeKey(scope, vars)}
	}
	evaluate := func(u *toolFile, in folderScope) {
		if kept := slot(u); *kept == nil || (*kept).scope != in.key || !t.Unchanged((*kept).reads) {
			*kept = t.evaluate(u, in.scope, in.key)
		}
		if !u.hasLocals() {
			u.tree = nil
		}
	}
	t.parse(units, scopeOf(nil, config.Incomplete), evaluate)
	incomplete := incompleteFolders(units, config)
	locals, problems := joinLocals(units, config, incomplete)
	problems = append(t.folderProblems(), problems...)
	scopes := map[string]folderScope{}
	for _, u := range units {
		folder := folderOf(u.path)
		if _, known := scopes[folder]; !known {
			scopes[folder] = scopeOf(locals[folder], incomplete[folder])
		}
	}
	Parallel(len(units), func(i int) {
		if u := units[i]; u.hasTree {
			evaluate(u, scopes[folderOf(u.path)])
		}
	})
	var defined []*definition.Definitions
	for _, u := range units {
		problems = append(problems, u.problems...)
		if d := *slot(u); d != nil {
			problems = append(problems, d.problems...)
			defined = append(defined, &d.defined)
		}
	}
	return defined, problems
}

// Incomplete reports whether a file may define more than [Tree.Definitions] returns, because a
// part of it could not be parsed.
func (t *Tree) Incomplete() bool {
	for _, u := range t.files {
		if u.incomplete {
			return true
		}
	}
	return false
}

// parse parses the new files. It evaluates a new file at once, in the likely scope of its directory,
// if no file there may declare locals: the trees of all files would take much more memory than
// their definitions.
func (t *Tree) parse(units []*toolFile, likely folderScope, evaluate func(*toolFile, folderScope)) {
	withLocals := map[string]bool{}
	for _, u := range units {
		if u.hasLocals() || !u.parsed && bytes.Contains(u.bytes, []byte("locals")) {
			withLocals[folderOf(u.path)] = true
		}
	}
	Parallel(len(units), func(i int) {
		u := units[i]
		if u.parsed {
			return
		}
		u.syntax = parse(t.source(u))
		if u.hasTree && !u.incomplete && !withLocals[folderOf(u.path)] {
			evaluate(u, likely)
		}
	})
}

func (t *Tree) source(u *toolFile) hclfile.Source {
	return hclfile.Source{Path: t.display(u.path), RelDir: folderOf(u.path), AbsDir: t.folder(u.path), Bytes: u.bytes}
}

// evaluate evaluates a file. It parses the file again if its tree was dropped.
func (t *Tree) evaluate(u *toolFile, scope hclfile.Scope, key Hash) *decoded {
	d := &decoded{scope: key, reads: map[string]Hash{}}
	scope.ReadFile = func(name string) ([]byte, error) {
		content, hash, err := t.Open(name)
		d.reads[name] = hash
		return content, err
	}
	tree := u.tree
	if tree == nil {
		tree = parse(t.source(u)).tree
	}
	d.defined, d.problems = tree.Decode(scope)
	return d
}

// Unchanged reports whether the files still have these hashes. If so, it marks them as read by
// this load. It is safe for concurrent use.
func (t *Tree) Unchanged(reads map[string]Hash) bool {
	if len(reads) == 0 {
		return true
	}
	for name, hash := range reads {
		if t.open(name).hash != hash {
			return false
		}
	}
	t.markUsed(slices.Collect(maps.Keys(reads))...)
	return true
}

// Hash is a hash of all tool files and of all files that this load has read for them. It
// depends only on these files, not on earlier loads.
func (t *Tree) Hash() Hash {
	h := sha256.New()
	for _, u := range t.sorted() {
		h.Write([]byte(u.path + "\x00"))
		h.Write(u.hash[:])
	}
	for _, name := range t.usedNames() {
		h.Write([]byte(name + "\x00"))
		h.Write(t.refs[name].hash[:])
	}
	return Hash(h.Sum(nil))
}

// ReferencedFiles returns the hashes of the files that definitions and scripts have read in
// this load, by path relative to the directory.
func (t *Tree) ReferencedFiles() map[string]Hash {
	hashes := map[string]Hash{}
	for _, name := range t.usedNames() {
		hashes[name] = t.refs[name].hash
	}
	return hashes
}

// Sources are the files of a load. They do not change with the tree.
type Sources struct {
	root  string
	files []*toolFile // in bytewise order of their paths
	refs  map[string][]byte
}

// Sources returns the files of this load.
func (t *Tree) Sources() Sources {
	s := Sources{t.root, slices.Clone(t.sorted()), map[string][]byte{}}
	for _, name := range t.usedNames() {
		if r := t.refs[name]; r.err == nil {
			s.refs[name] = r.bytes
		}
	}
	return s
}

// Content returns the content of a file, by its name in diagnostics.
func (s Sources) Content(shown string) (content []byte, ok bool) {
	name := relative(s.root, shown)
	if i, found := slices.BinarySearchFunc(s.files, name, func(f *toolFile, name string) int { return strings.Compare(f.path, name) }); found {
		return s.files[i].bytes, true
	}
	content, ok = s.refs[name]
	return content, ok
}

// All returns the contents of all files, by path relative to the directory.
func (s Sources) All() map[string][]byte {
	all := maps.Clone(s.refs)
	if all == nil {
		all = map[string][]byte{}
	}
	for _, f := range s.files {
		all[f.path] = f.bytes
	}
	return all
}

// incompleteFolders returns the directories with files that may refer to unknown variables,
// secrets or locals, because a file could not be parsed.
func incompleteFolders(units []*toolFile, config *definition.Config) map[string]bool {
	folders := map[string]bool{}
	for _, u := range units {
		if config.Incomplete || u.incomplete {
			folders[folderOf(u.path)] = true
		}
	}
	return folders
}

// joinLocals evaluates the locals of each directory that declares any.
func joinLocals(units []*toolFile, config *definition.Config, incomplete map[string]bool) (map[string]*hclfile.Locals, diag.List) {
	folders := map[string][]*hclfile.File{}
	for _, u := range units {
		if folder := folderOf(u.path); u.hasLocals() {
			folders[folder] = append(folders[folder], u.tree)
		}
	}
	var problems diag.List
	locals := make(map[string]*hclfile.Locals, len(folders))
	for folder, files := range folders {
		joined, more := hclfile.JoinLocals(files, config.Variables, incomplete[folder])
		problems = append(problems, more...)
		locals[folder] = joined
	}
	return locals, problems
}

// variablesKey encodes everything about the variables that files depend on: values, types and
// sensitivity.
func variablesKey(config *definition.Config) []byte {
	key := append(config.VarsJSON(), config.VarsSchema()...)
	for _, name := range slices.Sorted(maps.Keys(config.Variables)) {
		if config.Variables[name].Sensitive {
			key = append(append(key, name...), 0)
		}
	}
	return key
}

func scopeKey(scope hclfile.Scope, vars []byte) Hash {
	h := sha256.New()
	h.Write(vars)
	if scope.Locals != nil {
		hash := scope.Locals.Hash()
		h.Write(hash[:])
	}
	fmt.Fprintf(h, "\x00%t\x00%s", scope.Incomplete, strings.Join(scope.Secrets, "\x00"))
	return Hash(h.Sum(nil))
}

// folderOf returns the directory of a path. It is empty for the tools directory.
func folderOf(name string) string {
	if folder := path.Dir(name); folder != "." {
		return folder
	}
	return ""
}

// WorkerPanic is the value that [Parallel] panics with after a function has panicked in another
// goroutine. If calls of Parallel are nested, it describes the panic of the innermost function.
type WorkerPanic struct {
	Value any
	Stack []byte // of the function
}

// Parallel calls do for 0 to n-1 on all cores and waits for all calls. If do panics in another
// goroutine, the first panic reaches the caller, as a *[WorkerPanic], after all workers have ended.
func Parallel(n int, do func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	var failed atomic.Pointer[WorkerPanic]
	for range workers {
		group.Go(func() {
			defer func() {
				cause := recover()
				if cause == nil {
					return
				}
				inner, nested := cause.(*WorkerPanic) // of a Parallel that do calls
				if !nested {
					inner = &WorkerPanic{cause, debug.Stack()}
				}
				failed.CompareAndSwap(nil, inner)
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	group.Wait()
	if cause := failed.Load(); cause != nil {
		panic(cause)
	}
}
