package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the outputs in README.md and the pages of docs that are run")

// TestPagesShowWhatHappens does what README.md and the pages of docs with commands say, in order,
// in an empty folder: an hcl block is written to the file that its first line
// names, a console block is run, and what its commands print must be what the
// block shows. A file that is written while mcpd serves is waited for. A text dev
// block shows what mcpd dev prints about the last change. The default port is
// replaced by a free one.
func TestPagesShowWhatHappens(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED with -short: what the pages run is built without the race detector")
	}
	program := buildDaemon(t)
	for _, page := range pagesWithCommands(t) {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			r := &reader{dir: t.TempDir(), program: program}
			r.env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
			t.Cleanup(func() { r.daemon.kill() })
			r.read(t, filepath.Join("../..", page))
		})
	}
}

// pagesWithCommands returns README.md and the pages of docs, without docs/project, that have a console block.
func pagesWithCommands(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md"}
	err := filepath.WalkDir("../../docs", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "project" {
			return filepath.SkipDir
		}
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".md" {
			return err
		}
		text, err := os.ReadFile(name)
		if bytes.Contains(text, []byte("\n```console\n")) {
			found = append(found, filepath.ToSlash(strings.TrimPrefix(name, filepath.FromSlash("../../"))))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 8 {
		t.Fatalf("only %d pages have commands", len(found))
	}
	return found
}

func (r *reader) read(t *testing.T, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for _, block := range splitBlocks(string(text)) {
		switch {
		case strings.HasPrefix(block, "```hcl"):
			if err := r.save(block); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(block, "```console\n"):
			if block, err = r.run(block); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(block, "```text dev\n"):
			block = "```text dev\n" + r.public(r.printed) + "```"
		}
		got.WriteString(block)
	}
	if *update {
		if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), got.String()); diff != "" {
		t.Errorf("%s is not what happens (-page +happens); run with -update and review\n%s", name, diff)
	}
}

// A tool is typed, tested, live and tried after at most 8 commands of the tutorial.
func TestTutorial_commands(t *testing.T) {
	page, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	loop, _, found := strings.Cut(string(page), "\n## Call an API with a secret\n")
	if n := strings.Count(loop, "\n$ mcpd "); !found || n == 0 || n > 8 {
		t.Errorf("the loop has %d commands", n)
	}
}

// TestThePageOfTheCommandLineNamesEveryVerbAndFlag keeps docs/reference/cli.md complete.
func TestThePageOfTheCommandLineNamesEveryVerbAndFlag(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	root := newRoot(env{streams: streams{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}})
	root.InitDefaultCompletionCmd()
	for _, verb := range root.Commands() {
		if !strings.Contains(string(page), "| `"+verb.Name()) {
			t.Errorf("the page does not name the verb %s", verb.Name())
		}
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(verb.Flags().FlagUsages(), -1) {
			if !strings.Contains(string(page), "`"+flag) {
				t.Errorf("the page does not name the flag %s of %s", flag, verb.Name())
			}
		}
	}
}

// splitBlocks cuts a page into fenced blocks and the text between them.
func splitBlocks(page string) []string {
	fence := regexp.MustCompile("(?ms)^```[a-z].*?^```$")
	var blocks []string
	last := 0
	for _, at := range fence.FindAllStringIndex(page, -1) {
		blocks = append(blocks, page[last:at[0]], page[at[0]:at[1]])
		last = at[1]
	}
	return append(blocks, page[last:])
}

// reader follows the instructions of a page.
type reader struct {
	dir, program string
	env          []string
	daemon       *daemon
	dev          bool   // the daemon is mcpd dev
	printed      string // by mcpd dev, about the last change
}

func (r *reader) save(block string) error {
	_, text, _ := strings.Cut(strings.TrimSuffix(block, "```"), "\n")
	first, _, _ := strings.Cut(text, "\n")
	name, ok := strings.CutPrefix(first, "# ")
	if !ok {
		return fmt.Errorf("an hcl block names no file: %s", first)
	}
	target := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	before := r.lines()
	whole := r.dir + ".whole" // the server never sees a half of it
	if err := os.WriteFile(whole, []byte(text), 0o644); err != nil {
		return err
	}
	if err := os.Rename(whole, target); err != nil {
		return err
	}
	switch {
	case r.daemon == nil:
		return nil
	case r.dev:
		return r.awaitDev(before)
	}
	_, err := r.daemon.waitFor(regexp.MustCompile("msg=reloaded|reload failed"))
	return err
}

// lines counts the lines of the daemon.
func (r *reader) lines() int {
	if r.daemon == nil {
		return 0
	}
	r.daemon.mu.Lock()
	defer r.daemon.mu.Unlock()
	return len(r.daemon.lines)
}

// awaitDev waits until mcpd dev has printed the result of a change after a line, and keeps what it
// printed, without calls and the log.
func (r *reader) awaitDev(after int) error {
	d := r.daemon
	if _, err := d.waitFor(regexp.MustCompile("^(tests|broken) ")); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r.printed = ""
	for _, line := range d.lines[after:d.next] {
		if !strings.HasPrefix(line, "call ") && !strings.HasPrefix(line, "level=") {
			r.printed += line + "\n"
		}
	}
	return nil
}

// run runs the commands of a block and returns the block with what they print.
func (r *reader) run(block string) (string, error) {
	var b strings.Builder
	b.WriteString("```console\n")
	lines := strings.Split(block, "\n")
	for i := 0; i < len(lines); i++ {
		command, ok := strings.CutPrefix(lines[i], "$ ")
		if !ok {
			continue
		}
		for ; unfinished(command) && i+1 < len(lines); i++ {
			command += "\n" + lines[i+1]
		}
		output, err := r.command(command)
		if err != nil {
			return "", fmt.Errorf("%s: %w", command, err)
		}
		fmt.Fprintf(&b, "$ %s\n%s", command, output)
		if output != "" && !strings.HasSuffix(output, "\n") {
			b.WriteByte('\n') // a terminal would show the prompt there
		}
	}
	return b.String() + "```", nil
}

// unfinished reports whether the shell waits for another line of a command.
func unfinished(command string) bool {
	return strings.HasSuffix(command, `\`) || strings.Count(command, "'")%2 == 1
}

const readmePort = "127.0.0.1:8080"

func (r *reader) command(line string) (string, error) {
	if serve, ok := strings.CutPrefix(line, "mcpd serve"); ok && strings.HasSuffix(line, " &") {
		var err error
		if r.daemon, err = startDaemon(r.program, r.dir, r.env, strings.Fields(strings.TrimSuffix(serve, "&"))); err != nil {
			return "", err
		}
		return r.public(r.daemon.serving) + "\n", nil
	}
	if line == "mcpd dev --plain" {
		var err error
		r.dev = true
		if r.daemon, err = startServing(r.program, r.dir, append(slices.Clip(r.env), slackMark+"=1"), []string{"dev", "--plain", "--listen", "127.0.0.1:0"}); err != nil {
			return "", err
		}
		err = r.awaitDev(0)
		return r.public(r.printed), err
	}
	if r.daemon != nil {
		line = strings.ReplaceAll(line, readmePort, strings.TrimPrefix(r.daemon.url, "http://"))
	}
	shell := exec.Command("sh", "-c", line)
	shell.Dir = r.dir
	shell.Env = r.env
	output, err := shell.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}
	return r.public(string(output)), nil
}

// varying are the parts of an output that no page can show as they are.
var varying = []struct {
	pattern *regexp.Regexp
	shown   string
}{
	{regexp.MustCompile(`"took_ms": [0-9.e-]+`), `"took_ms": 0.25`},
	{regexp.MustCompile(`("version": ?)"[^"]+"`), `${1}"0.1.0-dev"`},
	{regexp.MustCompile(`"go": "[^"]+"`), `"go": "go1.26.8"`},
	{regexp.MustCompile(`"platform": "[^"]+"`), `"platform": "linux/amd64"`},
	{regexp.MustCompile(`"(since|started)": "[^"]+"`), `"${1}": "2026-01-02T03:04:05Z"`},
	{regexp.MustCompile(`"(age|uptime)_seconds": [0-9.e-]+`), `"${1}_seconds": 130.5`},
	{regexp.MustCompile(`"pid": [0-9]+`), `"pid": 4711`},
	{regexp.MustCompile(`(?s)"confined_by": \[.*?\]`), "\"confined_by\": [\n      {\n        \"name\": \"seccomp\",\n        \"on\": true\n      }\n    ]"},
	{regexp.MustCompile(`, for [0-9hms]+, since [-0-9T:]+Z`), `, for 2m10s, since 2026-01-02T03:04:05Z`},
	{regexp.MustCompile(`(?m)^(process +)[0-9]+, mcpd .+, up [0-9hms]+$`), `${1}4711, mcpd 0.1.0-dev, up 2m10s`},
	{regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT[0-9:]+Z  `), "2026-01-02T03:04:05Z  "},
	{regexp.MustCompile(`(?m)^(2026-01-02T03:04:05Z  .*?)\b[0-9a-z]{6,}-([0-9]+)(  |$)`), "${1}4a6r01t9-${2}${3}"},
	{regexp.MustCompile(`(?m)^(2026-01-02T03:04:05Z  .*?  )[0-9.]+ms`), "${1}0.25ms"},
	{regexp.MustCompile(`confined by .+`), `confined by rlimits, descriptors, no_new_privs, undumpable, seccomp, landlock 6`},
}

func (r *reader) public(text string) string {
	if r.daemon != nil {
		text = strings.ReplaceAll(text, strings.TrimPrefix(r.daemon.url, "http://"), readmePort)
	}
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.shown)
	}
	return text
}
