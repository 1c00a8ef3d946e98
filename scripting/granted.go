package scripting

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

// grantingGlobals are the globals whose members are what is granted.
func grantingGlobals() []string {
	return []string{"http", "fs", "env", "secrets", "kv", "exec", "sql", "tools", "modules"}
}

// isGranting reports whether the members of a global are what is granted.
func isGranting(global string) bool {
	return slices.Contains(grantingGlobals(), global)
}

// grantsOf returns the globals of this sort that objects make.
func grantsOf(objects []Object) []string {
	var names []string
	for _, global := range grantingGlobals() {
		if slices.ContainsFunc(objects, func(o Object) bool { return o.Kind == global }) {
			names = append(names, global)
		}
	}
	return names
}

// grantAdvice says how to make a member of such a global work. A name that is a
// method shows that the grant was left out.
func (c *compilation) grantAdvice(global, name string) string {
	grants := c.granted(global)
	switch {
	case global == "env":
		return fmt.Sprintf("add it to the allow block: env { names = [%q] }", name)
	case global == "secrets":
		return fmt.Sprintf("add it to the allow block: secrets { names = [%q] }, of a secret that the operator reveals", name)
	case global == "exec":
		return fmt.Sprintf("add exec %q { path = \"/…\" } to the allow block", name)
	case global == "kv":
		return c.kvAdvice(name)
	case global == "modules":
		return fmt.Sprintf("add module %q {} to the allow block", name)
	case global == "sql":
		return c.sqlAdvice(name)
	case global == "http" && slices.Contains(httpMethods(), name) && len(grants) > 0:
		return fmt.Sprintf("requests are made through a grant: write http.%s.%s(...); granted is %s", grants[0], name, strings.Join(grants, ", "))
	case global == "fs" && slices.Contains(slices.Concat(fileReaders(), fileWriters()), name) && len(grants) > 0:
		return fmt.Sprintf("files are reached through a grant: write fs.%s.%s(...); granted is %s", grants[0], name, strings.Join(grants, ", "))
	case global == "fs":
		return fmt.Sprintf("add fs %q { root = \"…\" } to the allow block", name)
	}
	return fmt.Sprintf("add http %q { hosts = [...] } to the allow block", name)
}

// fileReaders are the methods of fs.NAME, and fileWriters those that there are
// where the grant lets files be written.
func fileReaders() []string { return []string{"readText", "lines", "readBytes", "list", "stat"} }

func fileWriters() []string { return []string{"writeText", "writeBytes", "remove"} }

// fileMethods returns the methods of an object, and false when it is no folder.
func (c *compilation) fileMethods(object string) (names []string, ok bool) {
	name, ok := strings.CutPrefix(object, "fs.")
	if !ok || !slices.Contains(c.granted("fs"), name) {
		return nil, false
	}
	if slices.Contains(c.granted("fs.write"), name) {
		return slices.Concat(fileReaders(), fileWriters()), true
	}
	return fileReaders(), true
}

// checkWriting tells a method that a folder lacks because nothing may be written
// there, and reports whether it is one.
func (c *compilation) checkWriting(m member) bool {
	names, ok := c.fileMethods(m.object)
	if !ok || slices.Contains(names, m.name) || !slices.Contains(fileWriters(), m.name) {
		return false
	}
	c.report(diag.Diagnostic{
		Severity: diag.Error, Code: "unknown-grant", Summary: fmt.Sprintf("%s may not be written to, so it has no %s", m.object, m.name),
		Detail: `add mode = "rw" to its block`,
	}, m.start, m.end)
	return true
}
