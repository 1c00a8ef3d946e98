package configcheck

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// reserved is a folder, or a file, that no root may hold.
type reserved struct {
	path, what string
	// below: nor may a root lie in it.
	below bool
	// written: that is so only for roots that may be written to.
	written bool
	// files: that is so only for a file, which a folder would not give by itself.
	files bool
}

// systemFolders are the folders of Unix that scripts have no business in. What
// programs are made of may be read.
var systemFolders = []reserved{
	{path: "/etc", below: true}, {path: "/proc", below: true}, {path: "/sys", below: true}, {path: "/dev", below: true},
	{path: "/root", below: true}, {path: "/boot", below: true}, {path: "/run", below: true},
	{path: "/usr", below: true, written: true}, {path: "/bin", below: true, written: true}, {path: "/sbin", below: true, written: true},
	{path: "/lib", below: true, written: true}, {path: "/lib64", below: true, written: true},
	{path: "/var"}, {path: "/var/lib"}, {path: "/var/spool", below: true}, {path: "/var/mail", below: true}, {path: "/var/backups", below: true},
	{path: "/var/lib/docker", below: true}, {path: "/var/lib/containerd", below: true}, {path: "/var/lib/kubelet", below: true},
	{path: "/var/log", written: true},
}

// homes are the folders in which systems keep the home folders of users.
var homes = []string{"/home", "/Users"}

// keyFolders are folders in which programs keep keys, whosever they are.
var keyFolders = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker"}

// gather notes what is reserved, by the paths as they are written and by those
// that they lead to.
func (c *machine) gather() {
	for _, r := range systemFolders {
		r.what = "the system's folder " + r.path
		c.reserve(r)
	}
	c.reserve(reserved{path: c.places.Tools, what: "the folder of the tools"})
	c.reserve(reserved{path: c.places.Tools, what: "the folder of the tools to write to", below: true, written: true})
	c.reserve(reserved{path: c.places.Config, what: "the folder of the operator's file"})
	c.reserve(reserved{path: c.places.State, what: "the folder of mcpd's state"})
	c.reserve(reserved{path: c.places.State, what: "a file of mcpd's state", below: true, files: true})
	c.reserve(reserved{path: c.places.Home, what: "the home folder"})
	for _, secret := range c.config.Secrets {
		c.reserve(reserved{path: secret.File, what: "the folder of a file that holds a secret"})
	}
	c.gatherAccess()
}

// gatherAccess notes the files by which callers are let in, and those of what they did.
func (c *machine) gatherAccess() {
	const door = "the folder of a file that lets callers in"
	for _, auth := range c.config.Auths {
		if auth.Keys != nil {
			c.reserve(reserved{path: c.besideConfig(auth.Keys.File), what: door})
		}
	}
	if tls := c.config.Listen.TLS; tls != nil {
		for _, file := range []string{tls.CertFile, tls.KeyFile, tls.ClientCAFile} {
			c.reserve(reserved{path: c.besideConfig(file), what: door})
		}
	}
	if audit := c.config.Audit; audit != nil {
		c.reserve(reserved{path: c.besideConfig(audit.Path), what: "the folder of the audit log"})
	}
}

// besideConfig returns a path that is relative to the folder of the operator's file as an
// absolute one; "" for none, and where that folder is not on the disk.
func (c *machine) besideConfig(path string) string {
	path = filepath.FromSlash(path)
	if path == "" || filepath.IsAbs(path) || c.places.Config == "" {
		return path
	}
	return filepath.Join(c.places.Config, path)
}

func (c *machine) reserve(r reserved) {
	if !filepath.IsAbs(r.path) {
		return
	}
	r.path = filepath.Clean(r.path)
	c.reserved = append(c.reserved, r)
	if real, _ := c.places.Find(r.path); real != "" && real != r.path {
		r.path = real
		c.reserved = append(c.reserved, r)
	}
}

// absurd says what a root gives that none should, as it is written or where it
// leads; "" when there is nothing to say.
func (c *machine) absurd(p place, real string) string {
	for _, path := range []string{p.path, real} {
		if !filepath.IsAbs(path) {
			continue
		}
		if path == filepath.Dir(path) {
			return "all files of the machine"
		}
		for _, r := range c.reserved {
			if (p.write || !r.written) && (p.file || !r.files) && (within(r.path, path) || r.below && within(path, r.path)) {
				return r.what
			}
		}
		if c.isHidden(path) {
			return "a hidden folder of the home folder"
		}
		if why := cmp.Or(c.ofPeople(path), ofKeys(path)); why != "" {
			return why
		}
	}
	return ""
}

// isHidden reports folders in which programs keep what is the user's alone,
// such as ~/.ssh.
func (c *machine) isHidden(path string) bool {
	if !filepath.IsAbs(c.places.Home) || len(c.places.Home) < 2 {
		return false
	}
	for _, home := range []string{filepath.Clean(c.places.Home), c.found(c.places.Home)} {
		if home != "" && strings.HasPrefix(path, home+string(filepath.Separator)+".") {
			return true
		}
	}
	return false
}

// ofPeople says what a root gives of the home folders of users, whoever runs the
// server; "" when there is nothing to say.
func (c *machine) ofPeople(path string) string {
	for _, written := range homes {
		for _, folder := range []string{written, c.found(written)} {
			switch {
			case folder == "":
			case within(folder, path):
				return "the home folders of all users"
			case within(path, folder):
				user, rest, _ := strings.Cut(strings.TrimPrefix(path[len(folder):], string(filepath.Separator)), string(filepath.Separator))
				if rest == "" {
					return "the home folder of " + user
				}
				if rest[0] == '.' {
					return "a hidden folder of the home folder of " + user
				}
			}
		}
	}
	return ""
}

// ofKeys says what a root gives of the folders in which programs keep keys, wherever
// these are; "" when there is nothing to say.
func ofKeys(path string) string {
	for element := range strings.SplitSeq(path, string(filepath.Separator)) {
		if slices.Contains(keyFolders, element) {
			return "a folder of keys, " + element
		}
	}
	return ""
}

func (c *machine) found(path string) string {
	real, _ := c.places.Find(path)
	return real
}

// within reports whether a path is a folder or lies below it, by its elements.
func within(path, folder string) bool {
	separator := string(filepath.Separator)
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, separator)+separator)
}
