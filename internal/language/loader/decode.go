package loader

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// decoded is what a unit defines, and all that it depends on beside its text.
type decoded struct {
	scope    Hash
	reads    map[string]Hash
	defined  definition.Definitions
	problems diag.List
}

// Definitions parses and evaluates every file whose text or surroundings have
// changed, and returns what all files define, in bytewise order of their paths,
// with all mistakes of the folder and its files.
func (t *Tree) Definitions(config *definition.Config) ([]*definition.Definitions, diag.List) {
	return t.definitions(config, func(u *toolFile) **decoded { return &u.decoded })
}

// Stage is like [Tree.Definitions] for a config with other values of variables, which
// name tells apart from others. What the files define without them stays as it is.
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

// KeepStages forgets what files define in all stages but those of these names.
func (t *Tree) KeepStages(wanted func(name string) bool) {
	for _, u := range t.files {
		maps.DeleteFunc(u.staged, func(name string, _ **decoded) bool { return !wanted(name) })
	}
}

// definitions is Definitions; slot returns where what a unit defines is kept.
func (t *Tree) definitions(config *definition.Config, slot func(*toolFile) **decoded) ([]*definition.Definitions, diag.List) {
	units := t.sorted()
	t.parse(units)
	incomplete := incompleteFolders(units, config)
	locals, problems := joinLocals(units, config, incomplete)
	problems = append(t.folderProblems(), problems...)
	secrets := make([]string, len(config.Secrets))
	for i, secret := range config.Secrets {
		secrets[i] = secret.Name
	}
	vars := variablesKey(config)
	Parallel(len(units), func(i int) {
		u := units[i]
		if u.file == nil {
			return
		}
		folder := folderOf(u.path)
		scope := hclfile.Scope{Vars: config.Variables, Locals: locals[folder], Secrets: secrets, Incomplete: incomplete[folder]}
		key := scopeKey(scope, vars)
		if kept := slot(u); *kept == nil || (*kept).scope != key || !t.Unchanged((*kept).reads) {
			*kept = t.evaluate(u.file, scope, key)
		}
	})
	var defined []*definition.Definitions
	for _, u := range units {
		problems = append(problems, u.parsed...)
		if d := *slot(u); d != nil {
			problems = append(problems, d.problems...)
			defined = append(defined, &d.defined)
		}
	}
	return defined, problems
}

// Incomplete reports whether a file may define more than [Tree.Definitions]
// returns, since it could not be parsed as a whole.
func (t *Tree) Incomplete() bool {
	for _, u := range t.files {
		if u.incomplete() {
			return true
		}
	}
	return false
}

// parse parses the files that are new.
func (t *Tree) parse(units []*toolFile) {
	Parallel(len(units), func(i int) {
		u := units[i]
		if u.file != nil || u.parsed.HasErrors() {
			return
		}
		u.file, u.parsed = hclfile.Parse(hclfile.Source{Path: t.display(u.path), RelDir: folderOf(u.path), AbsDir: t.folder(u.path), Bytes: u.bytes}, hclfile.ToolsKind)
	})
}

func (t *Tree) evaluate(file *hclfile.File, scope hclfile.Scope, key Hash) *decoded {
	d := &decoded{scope: key, reads: map[string]Hash{}}
	scope.ReadFile = func(name string) ([]byte, error) {
		content, hash, err := t.Open(name)
		d.reads[name] = hash
		return content, err
	}
	d.defined, d.problems = file.Decode(scope)
	return d
}

// Unchanged reports whether files that were read still have the hashes they
// had. If so they count as read by this load. It is safe for concurrent use.
func (t *Tree) Unchanged(reads map[string]Hash) bool {
	for name, hash := range reads {
		if t.open(name).hash != hash {
			return false
		}
	}
	t.markUsed(slices.Collect(maps.Keys(reads))...)
	return true
}

// Hash is a hash of all files of the folder, and of all that this load has
// read for them: it is the same for the same files, whatever was read before.
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

// Used returns the hashes of the files that definitions and bodies have read in
// this load, by their paths relative to the folder.
func (t *Tree) ReferencedFiles() map[string]Hash {
	hashes := map[string]Hash{}
	for _, name := range t.usedNames() {
		hashes[name] = t.refs[name].hash
	}
	return hashes
}

// AddSources adds the files to sources, by the names that diagnostics use.
func (t *Tree) AddSources(sources map[string][]byte) {
	for _, u := range t.files {
		sources[t.display(u.path)] = u.bytes
	}
	for _, name := range t.usedNames() {
		if r := t.refs[name]; r.err == nil {
			sources[t.display(name)] = r.bytes
		}
	}
}

// incompleteFolders returns the folders whose files may refer to variables,
// secrets or locals that are not known, since a file could not be parsed.
func incompleteFolders(units []*toolFile, config *definition.Config) map[string]bool {
	folders := map[string]bool{}
	for _, u := range units {
		if config.Incomplete || u.incomplete() {
			folders[folderOf(u.path)] = true
		}
	}
	return folders
}

// joinLocals evaluates the locals of each folder that declares some.
func joinLocals(units []*toolFile, config *definition.Config, incomplete map[string]bool) (map[string]*hclfile.Locals, diag.List) {
	folders := map[string][]*hclfile.File{}
	for _, u := range units {
		if folder := folderOf(u.path); u.file != nil {
			folders[folder] = append(folders[folder], u.file)
		}
	}
	var problems diag.List
	locals := make(map[string]*hclfile.Locals, len(folders))
	for folder, files := range folders {
		if !slices.ContainsFunc(files, func(f *hclfile.File) bool { return len(f.Locals()) > 0 }) {
			continue
		}
		joined, more := hclfile.JoinLocals(files, config.Variables, incomplete[folder])
		problems = append(problems, more...)
		locals[folder] = joined
	}
	return locals, problems
}

// declared tells everything that files depend on of the variables: their values, their
// types and which of them are sensitive.
func variablesKey(config *definition.Config) []byte {
	told := append(config.VarsJSON(), config.VarsSchema()...)
	for _, name := range slices.Sorted(maps.Keys(config.Variables)) {
		if config.Variables[name].Sensitive {
			told = append(append(told, name...), 0)
		}
	}
	return told
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

// folderOf returns the folder of a path, empty for the tools folder itself.
func folderOf(name string) string {
	if folder := path.Dir(name); folder != "." {
		return folder
	}
	return ""
}

// Parallel runs do for 0 up to n-1 on all cores and waits for all of them.
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
	for range workers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	group.Wait()
}
