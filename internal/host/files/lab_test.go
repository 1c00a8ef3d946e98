//go:build unix

package files

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

const canary = "canary-7b1e"

// lab is the root of a grant, next to forbidden files.
type lab struct {
	*testing.T
	// top holds the root, and the forbidden files next to it.
	top, root string
	folder    *GrantedRoot
	broker    *Broker
}

func newLab(t *testing.T, change ...func(*grant.FS)) *lab {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{T: t, top: top, root: filepath.Join(top, "logs")}
	l.put("logs/app.log", "inside")
	l.put("logs/sub/deep.txt", "deep")
	l.put("secret.txt", canary)
	l.put("logs-evil/secret.txt", canary)
	l.put("logs-evil/app.log", canary)
	l.put("logs-evil/"+canary, canary)
	l.put("logs-evil/"+canary+"-folder/"+canary+".txt", canary)
	l.put(canary+"-folder/"+canary+".txt", canary)
	g := grant.FS{Name: "logs", Root: l.root, ResolvedPath: l.root, Write: true}
	for _, c := range change {
		c(&g)
	}
	l.folder = Open(g)
	l.broker = &Broker{Redact: func(b []byte) []byte { return b }, Logger: slog.New(slog.DiscardHandler)}
	return l
}

// put writes a file below top.
func (l *lab) put(name, content string) {
	l.Helper()
	file := filepath.Join(l.top, name)
	l.must(os.MkdirAll(filepath.Dir(file), 0o755))
	l.must(os.WriteFile(file, []byte(content), 0o644))
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// do carries out an operation, and returns the answer, or the error as "CODE: message".
func (l *lab) do(method, payload string) string {
	l.Helper()
	return l.outcome(l.broker.Do(l.Context(), l.folder, method, []byte(payload)))
}

func (l *lab) outcome(answer []byte, err error) string {
	l.Helper()
	var refused *scripting.HostError
	switch {
	case err == nil:
		return string(answer)
	case !errors.As(err, &refused):
		l.Fatalf("the error is a %T: %v", err, err)
	}
	return strings.ReplaceAll(refused.Error(), l.root, "ROOT")
}

// at returns the payload of an operation on a path, which reaches the broker byte for byte.
func at(path string, more ...string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\x00", `\u0000`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\x1b", `\u001b`).Replace(path)
	return `{"path":"` + quoted + `"` + strings.Join(append([]string{""}, more...), ",") + `}`
}

// outside hashes everything outside the root, and files everything.
func (l *lab) outside() string { return l.hash(l.root) }
func (l *lab) files() string   { return l.hash("") }

// hash hashes everything in the lab, except one directory.
func (l *lab) hash(without string) string {
	l.Helper()
	h := sha256.New()
	l.must(filepath.WalkDir(l.top, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == without {
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(h, path, info.Mode(), info.Size())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			h.Write(content)
			return err
		}
		return nil
	}))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// operations are all operations, with their payload in addition to the path.
var operations = map[string]string{
	"readText": `"x":0`, "readBytes": `"x":0`, "lines": `"x":0`, "list": `"x":0`, "stat": `"x":0`,
	"writeText": `"text":"gotcha"`, "writeBytes": `"data64":"Z290Y2hh"`, "remove": `"x":0`,
}

// hostilePaths are paths that leave a root named logs, and never lead into it.
func (l *lab) hostilePaths() []string {
	var paths []string
	targets := []string{"secret.txt", "logs-evil/secret.txt", "logs-evil/app.log", "logs-evil"}
	ups := []string{
		"..", ".%2e", "%2e%2e", "%252e%252e", "..;", "...", "....", ".. ", "..\t", "..\x00", "..\n", ". .",
		"\u2025", "\uff0e\uff0e", "\u2024\u2024", ".\u200b.", "\u202e..", "\xc0\xae\xc0\xae", "\xe0\x80\xae.", "..\xff", "~", "$PWD/..", "..%00", "..%c0%af",
	}
	slashes := []string{"/", `\`, "//", "/./", "%2f", "%5c", "\u2215", "\uff0f", "\xc0\xaf"}
	for _, target := range targets {
		for _, up := range ups {
			for _, slash := range slashes {
				paths = append(paths, up+slash+target)
			}
			paths = append(paths, "sub/"+up+"/"+up+"/"+target, "./"+up+"/"+target)
		}
		abs := filepath.Join(l.top, target)
		paths = append(paths,
			abs, "/"+abs, "//"+abs, l.root+"/../"+target, l.root+"/sub/../../"+target, l.root+"-evil/"+target,
			"file://"+abs, "C:"+abs, `C:\`+target, `\\?\C:\`+target, `\\server\share\`+target, "/proc/self/cwd/"+abs, "/proc/self/root"+abs, abs+"\x00.txt",
			l.root+"%2f..%2f"+target, strings.ToUpper(l.root)+"/../"+target, "/dev/fd/../.."+abs,
			"link-up/"+target, "link-top/"+target, "sub/link-top/"+target, "link-to-link/"+target, "./link-up//"+target,
			l.root+"/link-top/"+target,
		)
	}
	return append(paths,
		"", ".", "..", "/", "//", "/etc/passwd", "/etc/hosts", "/dev/null", "/dev/zero", "/proc/self/environ", "link-secret", "link-passwd", "link-evil", "sub/link-secret",
		"hard", "link-loop", "link-loop/x", "link-nowhere", "pipe", "socket", "app.log/../../secret.txt", "app.log.", "app.log ", "app.log\n", "app.log\x00", "app.log:stream",
		"app.log::$DATA", "a:b", "CON", "NUL.txt", strings.Repeat("a", 256), strings.Repeat("a/", 3000)+"b", strings.Repeat("../", 100)+"secret.txt", strings.Repeat("d/", 70)+"x",
		"\u202egol.ppa", "\ufeffapp.log", "app\u00adlog", "\xff", "\xed\xa0\x80", "a\x1b[31m",
	)
}

// plant creates links, pipes and similar files in the root.
func (l *lab) plant() {
	l.Helper()
	for name, to := range map[string]string{
		"link-up": "..", "link-top": l.top, "sub/link-top": l.top, "link-secret": "../secret.txt", "sub/link-secret": filepath.Join(l.top, "secret.txt"),
		"link-passwd": "/etc/passwd", "link-evil": "../logs-evil", "link-loop": "link-loop", "link-nowhere": "../new.txt", "link-to-link": "link-up",
	} {
		l.must(os.Symlink(to, filepath.Join(l.root, name)))
	}
	l.must(os.Link(filepath.Join(l.top, "secret.txt"), filepath.Join(l.root, "hard")))
	l.must(syscall.Mkfifo(filepath.Join(l.root, "pipe"), 0o600))
	// The file alone behaves like a socket with a listener.
	if err := syscall.Mknod(filepath.Join(l.root, "socket"), syscall.S_IFSOCK|0o600, 0); err != nil {
		l.Logf("NO SOCKET IS TRIED: none can be made here: %v", err)
	}
}

func TestErrors(t *testing.T) {
	l := newLab(t)
	l.plant()
	for path, want := range map[string]string{
		"":                        "INVALID: the path is empty",
		"../secret.txt":           "OUTSIDE_ROOT: ../secret.txt: a path must not contain ..",
		"sub/../app.log":          "OUTSIDE_ROOT: sub/../app.log: a path must not contain ..",
		"/etc/passwd":             "OUTSIDE_ROOT: /etc/passwd: the path is outside the root",
		l.root + "-evil/app.log":  "OUTSIDE_ROOT: ROOT-evil/app.log: the path is outside the root",
		`sub\deep.txt`:            `INVALID: sub\deep.txt: a path needs forward slashes, without a drive`,
		"C:/x":                    "INVALID: C:/x: a path needs forward slashes, without a drive",
		"app.log\n":               "INVALID: app.log\n: a path must not contain control characters or invalid UTF-8",
		"a./b":                    "INVALID: a./b: a name in a path must not end with a dot or a space",
		strings.Repeat("a", 256):  "INVALID: a path of 256 bytes: a name in a path has at most 255 bytes",
		strings.Repeat("a/", 65):  "INVALID: " + strings.Repeat("a/", 65) + ": the path has more than 64 elements",
		".mcpd-x.tmp":             "INVALID: .mcpd-x.tmp: names like .mcpd-*.tmp are of files that are being written",
		"none":                    "NOT_FOUND: none: the file or directory does not exist",
		"app.log/x":               "NOT_FOUND: app.log/x: the directory does not exist",
		"sub":                     "DENIED: sub: it is a folder",
		".":                       "DENIED: .: it is a folder",
		"link-secret":             "DENIED: link-secret: it is a link, and links are not followed",
		"link-up/secret.txt":      "DENIED: link-up/secret.txt: the path contains a link, and links are not followed",
		"hard":                    "DENIED: hard: the file has a second hard link",
		"\uff0e\uff0e/secret.txt": "NOT_FOUND: \uff0e\uff0e/secret.txt: the file or directory does not exist",
	} {
		if got := l.do("readText", at(path)); got != want {
			t.Errorf("%q: got %s, want %s", path, got, want)
		}
	}
}

func TestParsePath_insideRoot(t *testing.T) {
	l := newLab(t)
	l.put("logs/sub/...dots/a b", "dots")
	l.put("logs/-rf", "dash")
	l.put("logs/~", "tilde")
	l.put("logs/%2e%2e", "percent")
	l.put("logs/日本\u3000語.log", "wide")
	for path, want := range map[string]string{
		"app.log": "inside", "./app.log": "inside", "sub/deep.txt": "deep", "sub//deep.txt": "deep", "sub/./deep.txt": "deep", l.root + "/app.log": "inside",
		l.root + "//sub/deep.txt": "deep", "sub/...dots/a b": "dots", "-rf": "dash", "~": "tilde", "%2e%2e": "percent", "日本\u3000語.log": "wide",
	} {
		if got := l.do("readText", at(path)); got != `{"text":"`+want+`"}` {
			t.Errorf("%q: got %s, want %s", path, got, want)
		}
	}
}

// answerOf decodes an answer.
func answerOf[T any](l *lab, text string) (answer T) {
	l.Helper()
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		l.Fatalf("%s: %v", text, err)
	}
	return answer
}
