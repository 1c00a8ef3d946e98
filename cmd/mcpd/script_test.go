package main

import (
	"encoding/json"
	"errors"
	"flag"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/internal/process/cputest"
)

// commands are the programs that this binary acts as, by name.
var commands = map[string]func(){"mcpd": main, "curl": curl}

// slower is the slowdown factor of the race detector.
var slower = func() int {
	if cputest.Race() {
		return 5
	}
	return 1
}()

func TestMain(m *testing.M) {
	if program, ok := commands[filepath.Base(os.Args[0])]; ok {
		program()
		os.Exit(0)
	}
	time.Local = time.UTC // as in main
	if err := overlap(); err != nil {
		log.Fatal(err)
	}
	os.Exit(runTests(m))
}

// overlap sets -parallel to three times the number of processors, or twice with the
// race detector, unless it is set: most tests wait for processes and disks half of
// their time.
func overlap() error {
	flag.Parse()
	const name = "test.parallel"
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return nil
	}
	each := 3
	if slower > 1 {
		each = 2
	}
	return flag.Set(name, strconv.Itoa(each*runtime.GOMAXPROCS(0)))
}

// runTests runs all tests with the commands in PATH, and removes temporary files.
func runTests(m *testing.M) int {
	folder, err := installCommands()
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(folder)
	defer func() { _ = os.RemoveAll(built) }() // RemoveAll("") does nothing
	return m.Run()
}

// installCommands creates a directory with the commands and puts it first in PATH.
func installCommands() (folder string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if folder, err = os.MkdirTemp("", "mcpd-commands"); err != nil {
		return "", err
	}
	for name := range commands {
		if err := os.Symlink(self, filepath.Join(folder, name)); err != nil {
			return "", err
		}
	}
	return folder, os.Setenv("PATH", folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// TestScripts runs every scenario of testdata/script. Verbs run in this process; exec
// runs the same binary as a process. In addition to the commands of testscript there
// are
//
//	mcpd args...          runs a verb in this process; exec mcpd runs it as a process
//	code args...          the same, for any exit code: prints both streams, then code=N
//	serve [flags...]      starts mcpd serve on a free port; $URL is its address
//	dev [flags...]        starts mcpd dev instead; waitlog sees its lines, too
//	behind                keeps it running, at $BEHIND, when another one is started
//	waitlog 'pattern'...  waits for the next lines of its log that match, in any order
//	shutdown              sends SIGTERM and requires exit code 0, or 1 after !
//	term                  sends SIGTERM and does not wait
//	sigkill               sends SIGKILL and waits for the exit
//	hup                   sends SIGHUP
//	get PATH              prints the status and the body
//	post PATH FILE        the same for a POST of a JSON file
//	modern METHOD FILE [NAME]
//	                      sends params as a modern MCP request to /mcp and prints the response;
//	                      $NAME is set to the id of the task in it, and replaced in files
//	until ID STATUS       subscribes to a task until it has a status, and prints it
//	listen NAME modern FILE, listen NAME legacy URI...
//	                      opens a stream for a modern filter, or for subscriptions
//	heard NAME TEXT...    requires its next notifications to be these, in order
//	matches FILE WANT     compares like cmp, but * in WANT matches the rest of a value
//	audited PATH N        writes an audit log of N calls
//	manager INTERVAL      listens like systemd with this watchdog interval
//	told MESSAGE...       requires the next messages to it to be these, except watchdog ones
//	talk FILE [flags...]  plays a conversation with mcpd serve --stdio, and prints it
//	checkout DIR          replaces tools.d by DIR like git: file by file, under a lock
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, "../../testdata/script")
}

// TestSeeds runs every scenario of testdata/seeds: the examples of the documents that
// mcpd started from. Each names its document and section.
func TestSeeds(t *testing.T) {
	t.Parallel()
	runScripts(t, "../../testdata/seeds")
}

func runScripts(t *testing.T, dir string) {
	shipped, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts(t, dir),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			variables, err := variablesOf(filepath.Join(dir, filepath.Base(e.WorkDir)[len("script-"):]+".txtar"))
			if err != nil {
				return err
			}
			h := &holder{variables: variables}
			e.Values[holderKey{}] = h
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, ".state"))
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Setenv("SHIPPED", shipped) // directory of the shipped tools and examples
			e.Defer(func() { h.daemon.kill(); h.behind.kill() })
			return verbs(e)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"mcpd":     cmdMcpd,
			"code":     cmdCode,
			"audited":  cmdAudited,
			"serve":    cmdServe,
			"dev":      cmdDev,
			"behind":   cmdBehind,
			"waitlog":  cmdWaitLog,
			"shutdown": cmdShutdown,
			"term":     cmdTerm,
			"sigkill":  cmdKill,
			"hup":      cmdHup,
			"get":      cmdGet,
			"post":     cmdPost,
			"modern":   cmdModern,
			"until":    cmdUntil,
			"listen":   cmdListen,
			"heard":    cmdHeard,
			"matches":  cmdMatches,
			"checkout": cmdCheckout,
			"manager":  cmdManager,
			"told":     cmdTold,
			"talk":     cmdTalk,
		},
	})
}

// scripts returns the scenarios of a directory. With the race detector and -short it
// skips those without a server: a verb is one goroutine.
func scripts(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	if slower == 1 || !testing.Short() {
		return files
	}
	return slices.DeleteFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return !startsServer.Match(text)
	})
}

var startsServer = regexp.MustCompile(`(?m)^(! )?(exec mcpd )?(serve|dev|talk)\b`)

// verbs makes scripts execute the mcpd of [verbProgram], except for the serve command.
func verbs(e *testscript.Env) error {
	program, err := verbProgram("")
	if program != "" {
		e.Setenv("PATH", filepath.Dir(program)+string(filepath.ListSeparator)+e.Getenv("PATH"))
	}
	return err
}

// cmdMatches compares output that varies between runs or machines.
func cmdMatches(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: matches file want")
	}
	got, want := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), `\*`, `[^",\n]+`)
	if !regexp.MustCompile(`\A` + pattern + `\z`).MatchString(got) {
		ts.Fatalf("%s does not match %s:\n%s\nwant:\n%s", args[0], args[1], got, want)
	}
}

// cmdCheckout replaces tools.d by another directory, file by file and under a lock,
// like git.
func cmdCheckout(ts *testscript.TestScript, _ bool, args []string) {
	lock := ts.MkAbs(".git/index.lock")
	ts.Check(os.MkdirAll(filepath.Dir(lock), 0o755))
	ts.Check(os.WriteFile(lock, nil, 0o644))
	ts.Check(checkout(ts.MkAbs(args[0]), ts.MkAbs("tools.d")))
	ts.Check(os.Remove(lock))
}

func checkout(from, to string) error {
	wanted, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	present, err := os.ReadDir(to)
	if err != nil {
		return err
	}
	for _, entry := range present {
		if _, err := os.Stat(filepath.Join(from, entry.Name())); errors.Is(err, os.ErrNotExist) {
			if err := os.Remove(filepath.Join(to, entry.Name())); err != nil {
				return err
			}
		}
	}
	// Reads come first, so that the writes follow each other quickly.
	contents := make([][]byte, len(wanted))
	for i, entry := range wanted {
		if contents[i], err = os.ReadFile(filepath.Join(from, entry.Name())); err != nil {
			return err
		}
	}
	for i, entry := range wanted {
		if err := os.WriteFile(filepath.Join(to, entry.Name()), contents[i], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// cmdAudited writes an audit log of N calls, one per minute from 9:30 on.
func cmdAudited(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: audited path number")
	}
	number, err := strconv.Atoi(args[1])
	ts.Check(err)
	now := time.Date(2026, 7, 28, 9, 30, 0, 0, time.UTC)
	l, err := audit.Open(audit.Options{Path: ts.MkAbs(args[0]), Mode: audit.Strict, Now: func() time.Time { return now }})
	ts.Check(err)
	for i := range number {
		err = errors.Join(err, l.Outcome(&audit.Record{
			Call: "c-" + strconv.Itoa(i), Via: "client", Kind: "tool", Name: "refund", Method: "tools/call",
			Caller:    identity.Caller{Principal: identity.Principal{ID: "alice", Kind: identity.KindLocal}},
			Arguments: json.RawMessage(`{"amount":` + strconv.Itoa(i) + `}`),
			Outcome:   "POLICY_DENIED", DeniedBy: "small_refunds_only", Message: "not \u202eyou", Duration: time.Millisecond,
		}))
		now = now.Add(time.Minute)
	}
	ts.Check(errors.Join(err, l.Close()))
}
