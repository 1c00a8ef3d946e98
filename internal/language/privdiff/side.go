package privdiff

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// Side is one state of all files, which have been found to be sound.
type Side struct {
	Config *hclfile.Config
	Files  []*hclfile.Definitions
	// Tools and Operator are the folders of the tool files and of the operator's
	// file, absolute; empty when they are not on the disk.
	Tools, Operator string
	// Read are the hashes of the other files that definitions and bodies have read,
	// by their paths relative to the folder of the tools.
	Read map[string][32]byte
	// Find returns a path without the links that it passes, "" when that cannot be known.
	Find func(path string) (string, error)
}

// led returns where links lead a path to, "" when it passes none. What is written
// as a relative path is told from the folder of the tools, so that two copies of
// that folder compare.
func (s *Side) led(path string, relative bool) string {
	if !filepath.IsAbs(path) || s.Find == nil {
		return ""
	}
	real, _ := s.Find(path)
	if !relative || s.Tools == "" {
		return unless(real, path)
	}
	base, _ := s.Find(s.Tools)
	written, err := filepath.Rel(s.Tools, path)
	if err != nil {
		return unless(real, path)
	}
	to, err := filepath.Rel(base, real)
	if err != nil {
		return real
	}
	return unless(to, written)
}

// unless returns s when it is not other.
func unless(s, other string) string {
	if s == other {
		return ""
	}
	return s
}

// below returns a path from a folder when it lies in it, and as it is otherwise.
func below(path, folder string) string {
	if rest, ok := strings.CutPrefix(path, folder+string(filepath.Separator)); ok && folder != "" {
		return "./" + filepath.ToSlash(rest)
	}
	return filepath.ToSlash(path)
}

// accounts returns what all definitions say, by their kinds and names.
func (s *Side) accounts() []account {
	all := s.configured()
	for i := range s.Config.Policies {
		all = append(all, s.policy(&s.Config.Policies[i], true))
	}
	for i := range s.Config.RateLimits {
		all = append(all, limit(&s.Config.RateLimits[i], true))
	}
	for i := range s.Config.Hooks {
		all = append(all, s.hook(&s.Config.Hooks[i], true))
	}
	for _, f := range s.Files {
		all = append(all, s.defined(f)...)
	}
	for name, hash := range s.Read {
		a := account{kind: "file", name: name, sense: grant.Told}
		a.encoded(grant.Told, "", hash)
		all = append(all, a)
	}
	slices.SortStableFunc(all, byName)
	return all
}

func byName(a, b account) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

// defined returns what the definitions of a tool file say.
func (s *Side) defined(f *hclfile.Definitions) (all []account) {
	for i := range f.Tools {
		all = append(all, s.tool(&f.Tools[i]))
	}
	for i := range f.Resources {
		all = append(all, s.resource(&f.Resources[i]))
	}
	for i := range f.Folders {
		all = append(all, folder(&f.Folders[i]))
	}
	for i := range f.Templates {
		all = append(all, s.template(&f.Templates[i]))
	}
	for i := range f.Prompts {
		all = append(all, s.prompt(&f.Prompts[i]))
	}
	for i := range f.Policies {
		all = append(all, s.policy(&f.Policies[i], false))
	}
	for i := range f.Limits {
		all = append(all, limit(&f.Limits[i], false))
	}
	for i := range f.Hooks {
		all = append(all, s.hook(&f.Hooks[i], false))
	}
	return all
}

// call adds what a definition says of every call of it.
func (s *Side) call(a *account, c *hclfile.Call) {
	a.encoded(grant.Judged, "labels", c.Labels)
	a.bounds(c.Bounds, unknown)
	a.add(grant.TimeFact("", "ask_timeout", c.AskTimeout), a.where)
	a.grants(s, c.Grant, c.GrantRanges)
}
