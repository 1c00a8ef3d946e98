package crossref

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/grant"
)

// interpreters are programs that run code which they are told, and pass what
// stands behind it on to that, by their names without a version.
var interpreters = []string{
	"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "rc", "nu", "pwsh", "powershell", "cmd", "python", "pypy", "perl", "ruby",
	"irb", "node", "nodejs", "php", "lua", "luajit", "tclsh", "wish", "expect", "awk", "gawk", "mawk", "nawk", "sed", "osascript",
	"java", "groovy", "scala", "erl", "elixir", "guile", "sbcl", "racket", "R", "Rscript", "julia", "jq", "xsltproc",
}

// launchers are programs of which any argument may be another program, or code.
var launchers = []string{
	"env", "xargs", "find", "sudo", "doas", "su", "runuser", "setpriv", "pkexec", "nohup", "nice", "ionice", "timeout", "time", "setsid", "stdbuf", "script",
	"strace", "ltrace", "watch", "parallel", "busybox", "toybox", "chroot", "unshare", "nsenter", "systemd-run", "at", "batch", "ssh", "rsh", "flock",
	"start-stop-daemon", "entr", "npx", "npm", "xvfb-run", "valgrind", "taskset", "chrt", "linux64", "setarch", "docker", "podman", "kubectl",
	"gdb", "lldb", "vi", "vim", "vim.basic", "nvim", "emacs", "ed", "ex", "psql", "sqlite", "mysql", "mariadb", "m4", "make", "gmake", "bc", "dc", "go",
	"deno", "bun", "socat", "nc", "nc.openbsd", "nc.traditional", "ncat", "netcat", "tmux", "screen", "tar", "bsdtar", "cpio", "rsync", "tsx", "ts-node", "pnpm", "yarn",
	"pip", "pipx", "uv", "uvx", "crontab", "run-parts",
}

// valueOptions are options of interpreters behind which something else stands than
// their code, which is still to come.
var valueOptions = map[string][]string{
	"awk": {"-F", "-v"}, "gawk": {"-F", "-v", "-i", "-l"}, "mawk": {"-F", "-v"}, "nawk": {"-F", "-v"},
	"python": {"-W", "-X"}, "pypy": {"-W", "-X"}, "perl": {"-I"}, "ruby": {"-I", "-C", "-r"}, "lua": {"-l"}, "luajit": {"-l"}, "php": {"-c", "-d", "-z"},
	"sh": {"-o", "+o"}, "dash": {"-o", "+o"}, "ash": {"-o", "+o"}, "zsh": {"-o", "+o"}, "ksh": {"-o", "+o"}, "mksh": {"-o", "+o"},
	"bash": {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"},
	"node": {"-r", "--require", "--import", "-C", "--conditions", "--loader"}, "nodejs": {"-r", "--require", "--import", "-C", "--conditions", "--loader"},
	"java": {"-cp", "-classpath", "--class-path", "-p", "--module-path"}, "osascript": {"-l"}, "jq": {"-L", "--indent"},
}

// codeOptions are options of interpreters behind which code stands.
var codeOptions = []string{"-c", "-e", "-E", "-r", "-p", "-x", "-ne", "-pe", "-f", "--eval", "--exec", "--execute", "--command", "--expression", "--print", "--require", "--file", "-Command", "/c", "/C"}

// coded returns the first argument of a program by which a script could say what
// code is run, and why; -1 when there is none.
func coded(g grant.Exec, real string) (argument int, why string) {
	for _, path := range []string{g.Path, real} {
		name := programName(path)
		i := -1
		switch {
		case slices.Contains(launchers, name) || strings.HasPrefix(name, "ld-linux"):
			i = slices.IndexFunc(g.Argv, passes)
		case slices.Contains(interpreters, name):
			i = codeArgument(g.Argv, valueOptions[name])
		}
		if i >= 0 {
			return i, fmt.Sprintf("%s runs what it is told, and here a script would have a say in it", name)
		}
	}
	return -1, ""
}

// codeArgument returns the first argument that a script has a say in and that an
// interpreter may take for code, for the name of a file with code, or for an
// option. What stands behind code that is written out is data; what stands behind
// one of the options that take a value is no code.
func codeArgument(argv, valued []string) int {
	written := false
	for i, argument := range argv {
		behind := i > 0 && slices.Contains(codeOptions, argv[i-1])
		switch {
		case passes(argument) && (!written || behind || strings.HasPrefix(argument, "-")):
			return i
		case !strings.HasPrefix(argument, "-") && (i == 0 || !slices.Contains(valued, argv[i-1])) && !slices.Contains(valued, argument):
			written = true
		}
	}
	return -1
}

// passes reports whether a script has a say in an argument.
func passes(argument string) bool {
	return slices.ContainsFunc(grant.Pieces(argument), func(p grant.Piece) bool { return p.Param != "" })
}

// programName returns the name of a program without its version and its
// extension, as in python for python3.12.
func programName(path string) string {
	if path == "" {
		return ""
	}
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	return strings.TrimRight(strings.TrimRight(name, "0123456789."), "-")
}
