package configcheck

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// reserved is a directory or file that no root may contain.
type reserved struct {
	path, what string
	// below: a root must not be inside of it, either.
	below bool
	// written: this applies only to writable roots.
	written bool
	// files: this applies only to a file, because a root that contains it may be safe.
	files bool
}

// systemFolders are the directories of Unix that scripts must not use. Directories of installed
// programs may be read.
var systemFolders = []reserved{
	{path: "/etc", below: true}, {path: "/proc", below: true}, {path: "/sys", below: true}, {path: "/dev", below: true},
	{path: "/root", below: true}, {path: "/boot", below: true}, {path: "/run", below: true},
	{path: "/usr", below: true, written: true}, {path: "/bin", below: true, written: true}, {path: "/sbin", below: true, written: true},
	{path: "/lib", below: true, written: true}, {path: "/lib64", below: true, written: true},
	{path: "/var"}, {path: "/var/lib"}, {path: "/var/spool", below: true}, {path: "/var/mail", below: true}, {path: "/var/backups", below: true},
	{path: "/var/lib/docker", below: true}, {path: "/var/lib/containerd", below: true}, {path: "/var/lib/kubelet", below: true},
	{path: "/var/log", written: true},
}

// homeParents are the directories that contain the home directories of users.
var homeParents = []string{"/home", "/Users"}

// keyFolders are directories of private keys of any user.
var keyFolders = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker"}

// gatherReserved collects the reserved paths, as written and with links resolved.
func (c *hostChecker) gatherReserved() {
	for _, r := range systemFolders {
		r.what = "the system directory " + r.path
		c.reserve(r)
	}
	c.reserve(reserved{path: c.paths.Tools, what: "the tools directory"})
	c.reserve(reserved{path: c.paths.Tools, what: "write access to the tools directory", below: true, written: true})
	c.reserve(reserved{path: c.paths.Config, what: "the directory of the config file"})
	c.reserve(reserved{path: c.paths.State, what: "the state directory of mcpd"})
	c.reserve(reserved{path: c.paths.State, what: "a state file of mcpd", below: true, files: true})
	c.reserve(reserved{path: c.paths.Home, what: "the home directory"})
	for _, secret := range c.config.Secrets {
		c.reserve(reserved{path: secret.File, what: "the directory of a secret file"})
	}
	c.gatherAccess()
}

// gatherAccess collects the files of authentication and of the audit.
func (c *hostChecker) gatherAccess() {
	const door = "the directory of an authentication file"
	for _, auth := range c.config.Auths {
		if auth.APIKeys != nil {
			c.reserve(reserved{path: c.besideConfig(auth.APIKeys.File), what: door})
		}
	}
	if tls := c.config.Listen.TLS; tls != nil {
		for _, file := range []string{tls.CertFile, tls.KeyFile, tls.ClientCAFile} {
			c.reserve(reserved{path: c.besideConfig(file), what: door})
		}
	}
	if audit := c.config.Audit; audit != nil {
		c.reserve(reserved{path: c.besideConfig(audit.Path), what: "the directory of the audit log"})
	}
}

// besideConfig makes a path absolute that is relative to the directory of the config file. It
// returns "" for an empty path, or if that directory is not on disk.
func (c *hostChecker) besideConfig(path string) string {
	path = filepath.FromSlash(path)
	if path == "" || filepath.IsAbs(path) || c.paths.Config == "" {
		return path
	}
	return filepath.Join(c.paths.Config, path)
}

func (c *hostChecker) reserve(r reserved) {
	if !filepath.IsAbs(r.path) {
		return
	}
	r.path = filepath.Clean(r.path)
	c.reserved = append(c.reserved, r)
	if real, _ := c.paths.Find(r.path); real != "" && real != r.path {
		r.path = real
		c.reserved = append(c.reserved, r)
	}
}

// unsafeRoot returns what an unsafe root gives access to, by its written and its resolved path,
// or "".
func (c *hostChecker) unsafeRoot(p grantedPath, real string) string {
	for _, path := range []string{p.path, real} {
		if !filepath.IsAbs(path) {
			continue
		}
		if path == filepath.Dir(path) {
			return "all files of the host"
		}
		for _, r := range c.reserved {
			if (p.write || !r.written) && (p.file || !r.files) && (within(r.path, path) || r.below && within(path, r.path)) {
				return r.what
			}
		}
		if c.isHidden(path) {
			return "a hidden directory of the home directory"
		}
		if why := cmp.Or(c.homeReason(path), keyReason(path)); why != "" {
			return why
		}
	}
	return ""
}

// isHidden reports hidden directories of the home directory, such as ~/.ssh, where programs
// store private data.
func (c *hostChecker) isHidden(path string) bool {
	if !filepath.IsAbs(c.paths.Home) || len(c.paths.Home) < 2 {
		return false
	}
	for _, home := range []string{filepath.Clean(c.paths.Home), c.resolved(c.paths.Home)} {
		if home != "" && strings.HasPrefix(path, home+string(filepath.Separator)+".") {
			return true
		}
	}
	return false
}

// homeReason returns which home directories of users a root gives access to, or "". It does not
// depend on the user of mcpd.
func (c *hostChecker) homeReason(path string) string {
	for _, written := range homeParents {
		for _, folder := range []string{written, c.resolved(written)} {
			switch {
			case folder == "":
			case within(folder, path):
				return "the home directories of all users"
			case within(path, folder):
				user, rest, _ := strings.Cut(strings.TrimPrefix(path[len(folder):], string(filepath.Separator)), string(filepath.Separator))
				if rest == "" {
					return "the home directory of " + user
				}
				if rest[0] == '.' {
					return "a hidden directory of the home directory of " + user
				}
			}
		}
	}
	return ""
}

// keyReason returns which directory of private keys a path is in, at any place, or "".
func keyReason(path string) string {
	for element := range strings.SplitSeq(path, string(filepath.Separator)) {
		if slices.Contains(keyFolders, element) {
			return "a directory of keys, " + element
		}
	}
	return ""
}

func (c *hostChecker) resolved(path string) string {
	real, _ := c.paths.Find(path)
	return real
}

// within reports whether a path is a directory or below it, by path elements.
func within(path, folder string) bool {
	separator := string(filepath.Separator)
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, separator)+separator)
}

// checkProgram checks the program of one grant.
func (c *hostChecker) checkProgram(what string, g grant.Exec, where diag.Range, ranges map[string]diag.Range, bounded bool) {
	real, err := c.paths.Program(g.Path)
	if !c.isNamedProgram(g.Path) {
		if why := c.writableFolder(g.Path, real); why != "" {
			c.fail("bad-grant", where, fmt.Sprintf("%s runs a program in %s", what, why),
				"users who may write there decide what runs; use another directory, or ask the operator to add it to ceiling.exec_paths")
			return
		}
		if ceiling := c.config.Ceiling; bounded && ceiling != nil && ceiling.ExecPaths != nil && !c.coversProgram(g.Path, real) {
			c.fail("over-ceiling", where, what+" runs a program that the ceiling does not allow",
				"use a program of ceiling.exec_paths, or ask the operator to add this one", diag.Note{Range: ceiling.Range, Message: "the ceiling"})
			return
		}
		if i, why := codeFromScript(g, real); i >= 0 {
			c.fail("bad-grant", ranges[fmt.Sprintf("exec.%s.argv.%d", g.Name, i)], why,
				"run another program, write the code before the parameters, or ask the operator to add it to ceiling.exec_paths")
			return
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		c.warn("missing-program", where, "the program does not exist yet", "install it, or correct the path")
	default:
		c.fail("bad-grant", where, "this program cannot be granted: "+err.Error(),
			"name an executable file that only its owner and group can write")
	}
}

// isNamedProgram reports whether the ceiling names exactly this program.
func (c *hostChecker) isNamedProgram(path string) bool {
	return c.ceilingUnknown() || c.config.Ceiling != nil && slices.ContainsFunc(c.config.Ceiling.ExecPaths, func(n definition.Name) bool { return n.Text == path })
}

// coversProgram reports whether the ceiling covers a program, by its written and its resolved
// path.
func (c *hostChecker) coversProgram(path, real string) bool {
	covered := func(path string) bool {
		return slices.ContainsFunc(c.config.Ceiling.ExecPaths, func(n definition.Name) bool { return n.Matches(path) })
	}
	return real != "" && covered(path) && covered(real)
}

// gatherWritten collects the directories that scripts may write to.
func (c *hostChecker) gatherWritten(files []*definition.Definitions) {
	add := func(_, _ string, granted *grant.Set, _ map[string]diag.Range) {
		for _, g := range granted.FS {
			if real, _ := c.paths.Find(g.Root); g.Write && real != "" {
				c.written = append(c.written, g.Root, real)
			}
		}
	}
	eachHookGrant(c.config.Hooks, add)
	for _, f := range files {
		eachGrant(f, add)
	}
}

// writableFolder returns the directory of a program where a script or a tool author could
// replace it, or "".
func (c *hostChecker) writableFolder(path, real string) string {
	for _, path := range []string{path, real} {
		if path == "" {
			continue
		}
		for _, folder := range []string{c.paths.Tools, c.resolved(c.paths.Tools)} {
			if folder != "" && within(path, folder) {
				return "the tools directory"
			}
		}
		if c.paths.State != "" && within(path, c.paths.State) {
			return "the state directory of mcpd"
		}
		if slices.ContainsFunc(c.written, func(root string) bool { return within(path, root) }) {
			return "a directory that scripts may write to"
		}
	}
	return ""
}

// interpreters are programs that run code from their arguments and pass further arguments to
// it, by name without version.
var interpreters = []string{
	"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "rc", "nu", "pwsh", "powershell", "cmd", "python", "pypy", "perl", "ruby",
	"irb", "node", "nodejs", "php", "lua", "luajit", "tclsh", "wish", "expect", "awk", "gawk", "mawk", "nawk", "sed", "osascript",
	"java", "groovy", "scala", "erl", "elixir", "guile", "sbcl", "racket", "R", "Rscript", "julia", "jq", "xsltproc",
}

// launchers are programs that may run any argument as a program or code.
var launchers = []string{
	"env", "xargs", "find", "sudo", "doas", "su", "runuser", "setpriv", "pkexec", "nohup", "nice", "ionice", "timeout", "time", "setsid", "stdbuf", "script",
	"strace", "ltrace", "watch", "parallel", "busybox", "toybox", "chroot", "unshare", "nsenter", "systemd-run", "at", "batch", "ssh", "rsh", "flock",
	"start-stop-daemon", "entr", "npx", "npm", "xvfb-run", "valgrind", "taskset", "chrt", "linux64", "setarch", "docker", "podman", "kubectl",
	"gdb", "lldb", "vi", "vim", "vim.basic", "nvim", "emacs", "ed", "ex", "psql", "sqlite", "mysql", "mariadb", "m4", "make", "gmake", "bc", "dc", "go",
	"deno", "bun", "socat", "nc", "nc.openbsd", "nc.traditional", "ncat", "netcat", "tmux", "screen", "tar", "bsdtar", "cpio", "rsync", "tsx", "ts-node", "pnpm", "yarn",
	"pip", "pipx", "uv", "uvx", "crontab", "run-parts",
}

// valueOptions are options of interpreters with a value that is not code. The code follows
// them.
var valueOptions = map[string][]string{
	"awk": {"-F", "-v"}, "gawk": {"-F", "-v", "-i", "-l"}, "mawk": {"-F", "-v"}, "nawk": {"-F", "-v"},
	"python": {"-W", "-X"}, "pypy": {"-W", "-X"}, "perl": {"-I"}, "ruby": {"-I", "-C", "-r"}, "lua": {"-l"}, "luajit": {"-l"}, "php": {"-c", "-d", "-z"},
	"sh": {"-o", "+o"}, "dash": {"-o", "+o"}, "ash": {"-o", "+o"}, "zsh": {"-o", "+o"}, "ksh": {"-o", "+o"}, "mksh": {"-o", "+o"},
	"bash": {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"},
	"node": {"-r", "--require", "--import", "-C", "--conditions", "--loader"}, "nodejs": {"-r", "--require", "--import", "-C", "--conditions", "--loader"},
	"java": {"-cp", "-classpath", "--class-path", "-p", "--module-path"}, "osascript": {"-l"}, "jq": {"-L", "--indent"},
}

// codeOptions are options of interpreters with code as value.
var codeOptions = []string{"-c", "-e", "-E", "-r", "-p", "-x", "-ne", "-pe", "-f", "--eval", "--exec", "--execute", "--command", "--expression", "--print", "--require", "--file", "-Command", "/c", "/C"}

// codeFromScript returns the first argument that lets a script choose the code that runs,
// and why; -1 if there is none.
func codeFromScript(g grant.Exec, real string) (argument int, why string) {
	for _, path := range []string{g.Path, real} {
		name := programName(path)
		i := -1
		switch {
		case slices.Contains(launchers, name) || strings.HasPrefix(name, "ld-linux"):
			i = slices.IndexFunc(g.Argv, hasParam)
		case slices.Contains(interpreters, name):
			i = codeArgument(g.Argv, valueOptions[name])
		}
		if i >= 0 {
			return i, fmt.Sprintf("%s runs code from its arguments, and a script could choose it", name)
		}
	}
	return -1, ""
}

// codeArgument returns the first argument with a parameter that an interpreter may take for
// code, for a file with code, or for an option. Arguments after literal code are data; values
// of the options in valued are not code.
func codeArgument(argv, valued []string) int {
	written := false
	for i, argument := range argv {
		afterOption := i > 0 && slices.Contains(codeOptions, argv[i-1])
		switch {
		case hasParam(argument) && (!written || afterOption || strings.HasPrefix(argument, "-")):
			return i
		case !strings.HasPrefix(argument, "-") && (i == 0 || !slices.Contains(valued, argv[i-1])) && !slices.Contains(valued, argument):
			written = true
		}
	}
	return -1
}

// hasParam reports whether an argument contains a parameter.
func hasParam(argument string) bool {
	return slices.ContainsFunc(grant.ParseArgument(argument), func(p grant.ArgumentPart) bool { return p.Param != "" })
}

// programName returns the name of a program without version and extension, such as python for
// python3.12.
func programName(path string) string {
	if path == "" {
		return ""
	}
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	return strings.TrimRight(strings.TrimRight(name, "0123456789."), "-")
}
