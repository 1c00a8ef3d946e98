package hclfile

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// Locals is the evaluated namespace of one directory. It is immutable.
type Locals struct {
	values map[string]localValue
	hash   definition.Hash
}

// localValue is one evaluated local. If it is not ok, it has been reported.
type localValue struct {
	value     cty.Value
	ok        bool
	sensitive bool
	hash      definition.Hash
}

// Hash identifies the values of all locals.
func (l *Locals) Hash() definition.Hash { return l.hash }

// findLocals returns the declared locals of a file, in order.
func (f *File) findLocals() []Local {
	var l []Local
	for _, b := range f.body.Blocks {
		if b.Type != "locals" || f.kind != ToolsKind {
			continue
		}
		for name, attr := range b.Body.Attributes {
			l = append(l, Local{Name: name, Range: f.rng(attr.NameRange), expr: attr.Expr})
		}
	}
	slices.SortFunc(l, func(a, b Local) int { return cmp.Compare(a.Range.Start.Byte, b.Range.Start.Byte) })
	return l
}

// localNode is a local in the dependency graph.
type localNode struct {
	Local
	file *File
	// needs are the locals that it refers to.
	needs []string
	// unresolved counts the needs without a value.
	unresolved int
}

// JoinLocals evaluates the locals of all files of one directory, which share one namespace.
// Duplicate names and cycles are reported with all positions. Expressions may use var.x and
// local.x, but not file(), which belongs to the definition that uses the file. incomplete means
// that more may be declared; then unknown names are not reported. A panic is reported at the
// file of the local.
func JoinLocals(files []*File, vars map[string]definition.Variable, incomplete bool) (joined *Locals, problems diag.List) {
	joined = &Locals{values: map[string]localValue{}}
	if len(files) > 0 {
		defer files[0].reportPanic(&problems)
	}
	order, byName := declare(files, &problems)
	for _, l := range order {
		joined.values[l.Name] = localValue{}
	}
	evaluators := make(map[*File]*evaluator, len(files))
	for _, f := range files {
		evaluators[f] = newEvaluator(f, Scope{Vars: vars, Locals: joined, Incomplete: incomplete}, &problems)
		evaluators[f].allowSensitive = true // a local is as sensitive as its value
	}
	ready := sortByNeed(order, byName)
	for _, l := range ready {
		joined.values[l.Name] = evaluators[l.file].localValue(l.expr)
	}
	reportCycles(order, byName, &problems)
	joined.hash = joined.sum(order)
	return joined, problems.Sort()
}

// declare collects the locals of all files and their needs.
func declare(files []*File, problems *diag.List) ([]*localNode, map[string]*localNode) {
	var order []*localNode
	byName := map[string]*localNode{}
	for _, f := range files {
		for _, l := range f.locals {
			if first, again := byName[l.Name]; again {
				*problems = append(*problems, diag.Diagnostic{
					Code: "duplicate", Range: l.Range, Summary: fmt.Sprintf("the local value %q is declared twice", l.Name),
					Detail: "rename one of them: the files of a directory share one namespace",
					Notes:  []diag.Note{{Range: first.Range, Message: "it is first declared here"}},
				})
				continue
			}
			n := &localNode{Local: l, file: f}
			byName[l.Name] = n
			order = append(order, n)
			n.findNeeds(problems)
		}
	}
	return order, byName
}

// findNeeds sets the needs of n. After a panic, n has no needs.
func (n *localNode) findNeeds(problems *diag.List) {
	defer n.file.reportPanic(problems)
	n.needs = needsOf(n.expr)
}

// needsOf returns the distinct names of the locals that x refers to.
func needsOf(x hclsyntax.Expression) []string {
	var names []string
	for _, t := range x.Variables() {
		if t.RootName() != "local" || len(t) < 2 {
			continue
		}
		switch step := t[1].(type) {
		case hcl.TraverseAttr:
			names = append(names, step.Name)
		case hcl.TraverseIndex:
			if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
				names = append(names, step.Key.AsString())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sortByNeed sorts the locals so that each follows its needs. Locals that are in a cycle, or
// need one, are missing and keep unresolved > 0.
func sortByNeed(order []*localNode, byName map[string]*localNode) []*localNode {
	users := map[string][]*localNode{}
	ready := make([]*localNode, 0, len(order))
	for _, l := range order {
		for _, name := range l.needs {
			if byName[name] != nil {
				users[name] = append(users[name], l)
				l.unresolved++
			}
		}
		if l.unresolved == 0 {
			ready = append(ready, l)
		}
	}
	for i := 0; i < len(ready); i++ {
		for _, user := range users[ready[i].Name] {
			if user.unresolved--; user.unresolved == 0 {
				ready = append(ready, user)
			}
		}
	}
	return ready
}

// reportCycles reports each cycle once, at its first member.
func reportCycles(order []*localNode, byName map[string]*localNode, problems *diag.List) {
	seen := map[*localNode]bool{}
	for _, l := range order {
		if l.unresolved == 0 || seen[l] {
			continue
		}
		path, at := []*localNode{}, map[*localNode]int{}
		for next := l; next != nil && !seen[next]; next = firstUnresolved(next, byName) {
			seen[next] = true
			at[next] = len(path)
			path = append(path, next)
		}
		if len(path) == 0 {
			continue
		}
		if start, ok := at[firstUnresolved(path[len(path)-1], byName)]; ok {
			*problems = append(*problems, cycle(path[start:]))
		}
	}
}

// firstUnresolved returns the first needed local without a value.
func firstUnresolved(n *localNode, byName map[string]*localNode) *localNode {
	for _, name := range n.needs {
		if need := byName[name]; need != nil && need.unresolved > 0 {
			return need
		}
	}
	return nil
}

// maxCycleNotes bounds the members of a cycle in a diagnostic.
const maxCycleNotes = 8

func cycle(members []*localNode) diag.Diagnostic {
	first := 0
	for i, m := range members {
		if m.Range.File < members[first].Range.File ||
			m.Range.File == members[first].Range.File && m.Range.Start.Byte < members[first].Range.Start.Byte {
			first = i
		}
	}
	members = append(members[first:len(members):len(members)], members[:first]...)
	d := diag.Diagnostic{
		Code: "cycle", Range: members[0].Range,
		Summary: fmt.Sprintf("the local value %q depends on itself", members[0].Name),
		Detail:  "remove one of the references",
	}
	for i, m := range members {
		if i == maxCycleNotes {
			break
		}
		d.Notes = append(d.Notes, diag.Note{
			Range: m.file.rng(m.expr.Range()), Message: fmt.Sprintf("%s refers to local.%s", m.Name, members[(i+1)%len(members)].Name),
		})
	}
	return d
}

// localValue evaluates the expression of a local. If the value is not ok, such as after a
// panic, it has been reported.
func (e *evaluator) localValue(x hclsyntax.Expression) (_ localValue) {
	defer e.f.reportPanic(e.problems)
	e.sensitive = false
	v, ok := e.value(x)
	if ok {
		_, ok = e.measure(v, x.Range())
	}
	if !ok {
		return localValue{}
	}
	return localValue{value: v, ok: true, sensitive: e.sensitive, hash: sha256.Sum256(appendJSON(nil, v))}
}

func (l *Locals) sum(order []*localNode) definition.Hash {
	h := sha256.New()
	for _, d := range order {
		definition.WriteField(h, d.Name)
		hash := l.values[d.Name].hash
		h.Write(hash[:])
	}
	return definition.Hash(h.Sum(nil))
}
