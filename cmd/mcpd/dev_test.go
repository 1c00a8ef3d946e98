package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/recent"
)

// devTool is a tool with a test.
const devTool = `tool "%[1]s" {
  timeout = "30s"
  input "n" { type = number }
  run = "log.info('called'); return input.n + %[2]d;"
}
test "of %[1]s" {
  tool  = "%[1]s"
  input = { n = 1 }
  expect { output = 2 }
}
`

// devDir returns a directory with a tools directory, and a function that saves a file below it.
func devDir(t *testing.T) (dir string, save func(name, format string, args ...any)) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tools.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, func(name, format string, args ...any) {
		t.Helper()
		whole := filepath.Join(dir, "whole")
		if err := os.WriteFile(whole, fmt.Appendf(nil, format, args...), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(whole, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDev_plain(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: a process cannot be interrupted")
	}
	dir, save := devDir(t)
	save("tools.d/a.hcl", devTool+"oops", "a", 1)
	variables := append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	w := startStdio(t, buildDaemon(t), dir, variables, "dev", "--listen", "127.0.0.1:0")
	w.hear(t, "broken  tools.d/a.hcl:11:") // before anything is served
	save("tools.d/a.hcl", devTool, "a", 1)
	url := regexp.MustCompile("http://[^/]+").FindString(w.hear(t, "live    1 tool on http://127.0.0.1:"))
	w.hear(t, "types   wrote .mcpd/types.d.ts")
	w.hear(t, "tests   1 passed, 0 failed")
	save("tools.d/b.hcl", devTool, "b", 2)
	w.hear(t, "live    2 tools on "+url)
	w.hear(t, "test    FAIL  b: of b")
	w.hear(t, "tests   0 passed, 1 failed (of all 2: 1 passed, 1 failed)")
	types, err := os.ReadFile(filepath.Join(dir, ".mcpd", "types.d.ts"))
	if err != nil || !strings.Contains(string(types), "b") {
		t.Errorf("%v, the types are\n%s", err, types)
	}
	save("tools.d/b.hcl", "%s", "tool")
	w.hear(t, "broken  tools.d/b.hcl:1:")
	if code, stdout, stderr := inProcess(t, dir, variables, "reload"); code != exitFindings || !strings.Contains(stderr, "tools.d/b.hcl:1:") {
		t.Errorf("mcpd reload: exit code %d: %s%s", code, stdout, stderr)
	}
	code, stdout, stderr := inProcess(t, dir, nil, "call", "a", "n=41", "--url", url)
	if code != exitOK || stdout != "42\n" { // the last good files serve
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	until := func(line string) (events string) { // the first words of the lines before it
		t.Helper()
		for w.lines.Scan() && !strings.HasPrefix(w.lines.Text(), line) {
			if event, _, _ := strings.Cut(w.lines.Text(), " "); event != "" {
				events += event + " "
			}
		}
		return events
	}
	if events := until("call    a ok "); events != "" || strings.Contains(w.lines.Text(), "41") {
		t.Errorf("after a reload of the same files, the events are %s; the call is %s", events, w.lines.Text())
	}
	save("tools.d/b.hcl", devTool, "b", 1)
	w.hear(t, "tests   1 passed, 0 failed (of all 2: 2 passed, 0 failed)")
	if code, stdout, stderr := inProcess(t, dir, variables, "reload"); code != exitOK {
		t.Errorf("mcpd reload: exit code %d: %s%s", code, stdout, stderr)
	}
	save("mcpd.hcl", "server { name = \"desk\" }\n")
	if events := until("tests   2 passed, 0 failed"); events != "live " { // mcpd.hcl runs all
		t.Errorf("the events are %s", events)
	}
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	w.end(t)
	if log := w.log.String(); !strings.Contains(log, "msg=called tool=a") || strings.Contains(log, "msg=loaded") {
		t.Errorf("the log is\n%s", log)
	}
}

// Without a view, dev prints the address of the console, which needs no control socket.
func TestDev_plainConsole(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: a process cannot be interrupted")
	}
	dir, save := devDir(t)
	save("tools.d/a.hcl", devTool, "a", 1)
	variables := append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	w := startStdio(t, buildDaemon(t), dir, variables, "dev", "--console", "--control", "off", "--listen", "127.0.0.1:0")
	_, address, _ := strings.Cut(w.hear(t, "console http://127.0.0.1:"), " ")
	b := newConsoleBrowser(t, address)
	if status, text := b.get("/"); status != http.StatusOK || !strings.Contains(text, "1 tool") {
		t.Errorf("the overview: %d %s", status, text)
	}
	_, page := b.get("/item?kind=tool&address=a")
	token := csrfField.FindStringSubmatch(page)
	if token == nil {
		t.Fatalf("the page of the tool: %s", page)
	}
	form := url.Values{"csrf": {token[1]}, "mode": {"json"}, "json": {`{"n": 41}`}}
	if status, text := b.post("/item/try?kind=tool&address=a", form); status != http.StatusOK {
		t.Fatalf("try the tool: %d %s", status, text)
	}
	user, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if line := w.hear(t, "call    a ok "); !strings.HasSuffix(line, " by "+user.Username) {
		t.Errorf("the caller is not %s: %s", user.Username, line)
	}
	if status, _ := newConsoleBrowser(t, address).get("/"); status != http.StatusUnauthorized {
		t.Errorf("the address works again: %d", status)
	}
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	w.end(t)
}

// newConsoleBrowser opens the address that a console shows.
func newConsoleBrowser(t *testing.T, address string) *signedIn {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	base, first, _ := strings.Cut(address, "/?")
	b := &signedIn{t, base, &http.Client{Jar: jar, Timeout: patience}, ""}
	t.Cleanup(b.http.CloseIdleConnections)
	b.get("/?" + first)
	return b
}

// Two tests with one name do not hide the failure of one.
func TestDevSession_equalTestNames(t *testing.T) {
	t.Parallel()
	var d devSession
	result := func(target, name string, failures ...string) engine.TestResult {
		return engine.TestResult{Target: target, Name: name, Failures: failures}
	}
	check := func(tests, failed int) {
		t.Helper()
		if d.state.Tests != tests || d.state.Failed != failed {
			t.Errorf("%d tests, %d failed; want %d and %d", d.state.Tests, d.state.Failed, tests, failed)
		}
	}
	d.record([]engine.TestResult{result("a", "works", "wrong"), result("a", "works"), result("b", "works")})
	check(2, 1)
	d.record([]engine.TestResult{result("b", "works", "wrong")})
	check(2, 2)
	d.record([]engine.TestResult{result("a", "works"), result("a", "works"), result("b", "works")})
	check(2, 0)
}

func TestDev_refusesOtherAddresses(t *testing.T) {
	t.Parallel()
	dir, _ := devDir(t)
	code, _, stderr := inProcess(t, dir, nil, "dev", "--listen", "0.0.0.0:0")
	if code != exitUsage || !strings.Contains(stderr, "--listen takes a loopback address") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestDev_withoutTools(t *testing.T) {
	t.Parallel()
	code, _, stderr := inProcess(t, t.TempDir(), nil, "dev", "--listen", "127.0.0.1:0")
	if code != exitUsage || !strings.Contains(stderr, "create it with mcpd init") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Text from files, callers and scripts must not control the terminal, and the view must fit on it.
func TestDevView_hostileText(t *testing.T) {
	t.Parallel()
	hostile := []string{"\x1b[2J\x1b]0;title\a", "\u202egnirts", "a\r\nb\tc", strings.Repeat("wide 漢字 ", 2000), "\x00\x9b31m", "\xff\xfe"}
	state := devState{URL: "http://127.0.0.1:8080/mcp\x1b[H", Console: hostile, Status: engine.Status{Revision: strings.Repeat("0", 32), Tools: 1}, Broken: true, Errors: 3, Tests: 2, Failed: 1, Types: hostile[0]}
	for _, text := range hostile {
		state.Problems, state.Failures, state.Log = append(state.Problems, text), append(state.Failures, text), append(state.Log, text)
		state.Calls = append(state.Calls, recent.Call{Name: text, Principal: text, Outcome: "ok", DeniedBy: text, Depth: 1 << 20})
	}
	style := regexp.MustCompile(`\x1b\[[0-9]*m`)
	for _, color := range []bool{false, true} {
		for _, width := range []int{1, 2, 20, 80, 300} {
			for _, height := range []int{1, 5, 24, 100} {
				v := devView{state, time.Now(), color}
				rows := v.rows(width, height, false)
				for i, r := range rows {
					line, plain := r.text, r.text
					if color {
						plain = style.ReplaceAllString(line, "")
					}
					if r.goesOn && (len(plain) != width || i == len(rows)-1) {
						t.Fatalf("%dx%d: %q goes on", width, height, line)
					}
					if strings.ContainsFunc(plain, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) || utf8.RuneCountInString(plain) > width {
						t.Fatalf("%dx%d: %q", width, height, line)
					}
				}
			}
		}
	}
}

// shownRows returns the lines that a terminal of a width shows after it has drawn rows over other text,
// as VT100 and xterm show them. The lines that the terminal wraps are marked with a backslash.
func shownRows(width int, rows []row) string {
	screen, wraps := make([][]rune, len(rows)), make([]bool, len(rows))
	for i := range screen {
		screen[i] = []rune(strings.Repeat("#", width))
	}
	x, y, atEdge, wrap := 0, 0, false, false
	for rest := frameOf(rows, width); rest != ""; {
		sequence := ""
		for _, known := range []string{topLeft, clearLine, newLine, wrapOn, wrapOff} {
			if strings.HasPrefix(rest, known) {
				sequence = known
			}
		}
		switch rest = rest[len(sequence):]; sequence {
		case topLeft:
			x, y, atEdge = 0, 0, false
		case clearLine:
			copy(screen[y][x:], []rune(strings.Repeat(" ", width)))
		case newLine:
			x, y, atEdge = 0, y+1, false
		case wrapOn, wrapOff:
			wrap = sequence == wrapOn
		default:
			r, n := utf8.DecodeRuneInString(rest)
			rest = rest[n:]
			if atEdge && wrap {
				wraps[y], x, y, atEdge = true, 0, y+1, false
			}
			screen[y][x] = r
			if x++; x == width {
				x, atEdge = width-1, true
			}
		}
	}
	var shown []string
	for i, line := range screen {
		text := strings.TrimRight(string(line), " ")
		if wraps[i] {
			text += "\\"
		}
		shown = append(shown, text)
	}
	return strings.Join(shown, "\n")
}

// On a narrow terminal, the address of the console can be read and copied, and errors are wrapped.
func TestDevView_narrow(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:40321/aaaaaaaaaaaaaaaaaaaaaa/?token=bbbbbbbbbbbbbbbbbbbbbb"
	state := devState{URL: "http://127.0.0.1:8080/mcp", Console: []string{address, "It works once."}, Log: []string{"an old line", "level=WARN msg=\"read secret of grant\" error=\"TOKEN is not set\""}}
	for width := 20; width <= 90; width++ {
		got := shownRows(width, devView{state, time.Now(), false}.rows(width, 30, false))
		unwrapped := strings.ReplaceAll(got, "\\\n", "")
		if !strings.Contains(unwrapped, "\n"+address+"\n") || strings.Contains(got, "#") {
			t.Errorf("at width %d the view is\n%s", width, got)
		}
		if text := strings.Join(strings.Fields(got), " "); width > 30 && !strings.Contains(text, `an old line level=WARN msg="read secret of grant" error="TOKEN is not set"`) {
			t.Errorf("at width %d the log is\n%s", width, got)
		}
	}
	if got := shownRows(12, []row{{text: "123456789012"}, {text: "x"}}); got != "123456789012\nx" {
		t.Errorf("a full line shows as\n%s", got)
	}
}

func TestDevView_lines(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	state := devState{
		URL: "http://127.0.0.1:8080/mcp", Status: engine.Status{Revision: "6d153f1ae0961234", Since: now.Add(-130 * time.Second), Tools: 3},
		Broken: true, Errors: 1, Problems: []string{"tools.d/a.hcl:1:1: error: wrong", "  1 | x", "    | ^"},
		Tests: 5, Failed: 1, Ran: 2, Took: 12 * time.Millisecond, Failures: []string{"a: of a", "  tools.d/a.hcl:5:6"},
		Calls: []recent.Call{{Time: now.Add(-3 * time.Second), Name: "refund", Outcome: "POLICY_DENIED", Duration: time.Millisecond, Principal: "ada", DeniedBy: "large"}},
		Log:   []string{"level=INFO msg=called"},
	}
	got := shownRows(80, devView{state, now, false}.rows(80, 24, false))
	const want = `mcpd dev  http://127.0.0.1:8080/mcp
live   3 tools, revision 6d153f1ae096, for 2m
files  1 error; the last good files are live
tests  4 passed, 1 failed; 2 ran after the last change, in 12.0ms

problems
  tools.d/a.hcl:1:1: error: wrong
    1 | x
      | ^

failed tests
  a: of a
    tools.d/a.hcl:5:6

calls
     3s  POLICY_DENIED     1.0ms  refund by ada, denied by large

log
  level=INFO msg=called




? help   r rerun tests   c call a tool   l full text   o console   q quit`
	if got != want {
		t.Errorf("the view is\n%s\nwant\n%s", got, want)
	}
	help := shownRows(80, devView{state, now, false}.rows(80, 24, true))
	if !strings.Contains(help, "r   run all tests again") || strings.Contains(help, "refund") {
		t.Errorf("the help is\n%s", help)
	}
}

// A sequence counts as one key, whose parameters are no keys.
func TestNextKey_sequences(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{"q": "q", "\x1b": "\x1b", "\x1b[Aq": "\x00q", "\x1b[1;5Cq": "\x00q", "\x1bOPq": "\x00q", "\x1bcq": "\x00q", "\x1b[5": "\x00", "r\x1b": "r\x1b"} {
		var got []byte
		for rest := []byte(typed); len(rest) > 0; {
			var key byte
			key, rest = nextKey(rest)
			got = append(got, key)
		}
		if string(got) != want {
			t.Errorf("%q has the keys %q, want %q", typed, got, want)
		}
	}
}

// The marks of a paste may be split between reads at any place. A paste without an end does not swallow
// Ctrl-C, and one that is too long is refused, not cut.
func TestPasteSplitter_reads(t *testing.T) {
	t.Parallel()
	const text = "a\x1b[Ab" + pasteStart + "p\x1b[A\x03q" + pasteEnd + pasteStart + pasteEnd + "c"
	const want = `keys "a\x1b[Ab", begins, paste "p\x1b[A\x03q", begins, paste "", keys "c", `
	for size := 1; size <= len(text); size++ {
		var split pasteSplitter
		var keys, got string
		flush := func() {
			if keys != "" {
				got += fmt.Sprintf("keys %q, ", keys)
			}
			keys = ""
		}
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			for _, one := range split.next(rest[:n], n == size) {
				switch one.kind {
				case typedKeys:
					keys += string(one.text)
				case pasteBegins:
					flush()
					got += "begins, "
				case pasteEnds:
					got += fmt.Sprintf("paste %q, ", one.text)
				}
			}
			rest = rest[n:]
		}
		if flush(); got != want && size > 1 { // in a read of one byte, Ctrl-C ends a paste
			t.Errorf("reads of %d bytes: %s, want %s", size, got, want)
		}
	}
	var split pasteSplitter
	if esc := split.next([]byte{escape}, false); len(esc) != 1 || string(esc[0].text) != "\x1b" {
		t.Errorf("Esc is %v", esc)
	}
	split.next([]byte(pasteStart+"lost"), false)
	if left := split.next([]byte{ctrlC}, false); len(left) != 1 || left[0].kind != typedKeys || string(left[0].text) != "\x03" {
		t.Errorf("Ctrl-C in a paste without an end is %v", left)
	}
	split.next([]byte(pasteStart), false)
	for range 5 {
		split.next(make([]byte, maxTyped), false)
	}
	long := split.next([]byte(pasteEnd+"k"), false)
	if len(long) != 2 || long[0].kind != pasteEnds || len(long[0].text) <= maxTyped || len(long[0].text) > 4*maxTyped || string(long[1].text) != "k" {
		t.Errorf("a paste that is too long has %d parts", len(long))
	}
	if _, err := pasteLine(long[0].text); err == nil {
		t.Error("a paste that is too long is accepted")
	}
}

// An editor shows a paste in one line, and its reader gets the text back.
func TestPasteLine_roundTrip(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "größe 漢字": "größe 漢字", "a\r\nb\rc\n\n\td": "a\nb\nc\n\n\td"} {
		line, err := pasteLine([]byte(text))
		if err != nil || strings.ContainsAny(line, "\r\n\t") || pastedLine(line) != want {
			t.Errorf("%q shows as %q: %v", text, line, err)
		}
	}
	for _, text := range []string{"\x00", "\x1b[201", "\x7f", "\u009b", "\xff", "\ufffd", shownNewline, shownTab, strings.Repeat("x", maxTyped+1)} {
		if _, err := pasteLine([]byte(text)); err == nil {
			t.Errorf("%.10q is accepted", text)
		}
	}
}

// A paste that began before a question does not answer it.
func TestTypedInput_drop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	in := newTypedInput(ctx)
	add := func(kind typedKind, text string) error { return in.add(typed{kind, []byte(text)}) }
	read := func() string {
		t.Helper()
		p := make([]byte, 256)
		n, err := in.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(p[:n])
	}
	if err := add(typedKeys, "one\r\ntwo\r"); err != nil || read() != "one\r\n" {
		t.Fatalf("%v, a read returns more than one line", err)
	}
	if err := add(pasteBegins, ""); err != nil {
		t.Fatal(err)
	}
	in.drop()
	if err := add(pasteEnds, "y\n"); err == nil {
		t.Error("a paste answers a later question")
	}
	if err := cmp.Or(add(pasteBegins, ""), add(pasteEnds, "y\n"), add(typedKeys, "\r")); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != pasteStart+"y"+shownNewline+pasteEnd+"\r" {
		t.Errorf("the editor reads %q", got)
	}
	if err := add(typedKeys, strings.Repeat("k", 2*maxTyped+1)); err != nil || !in.isLost() {
		t.Errorf("%v, too many keys were kept", err)
	}
	_ = add(typedKeys, "more")
	cancel()
	if _, err := in.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

func TestCompleted_names(t *testing.T) {
	t.Parallel()
	names := []string{"order_cancel", "order_status", "ship", "größe", "gräser"}
	for typed, want := range map[string]string{"": "", "o": "order_", "order_s": "order_status", "ship": "ship", "x": "x", "g": "gr", "grö": "größe"} {
		if got := completed(typed, names); got != want {
			t.Errorf("%q completes to %q, want %q", typed, got, want)
		}
	}
}

// A large server lists the first tools, and those whose name has a text.
func TestAskTool_manyTools(t *testing.T) {
	t.Parallel()
	e, err := scenarioEnv(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var tools []engine.Metadata
	for i := range 100 {
		description := fmt.Sprintf("Does %d.\u001b[2J\n\nMore.", i)
		tools = append(tools, engine.Metadata{Name: fmt.Sprintf("tool_%02d", i), Description: &description})
	}
	var out lockedBuffer
	e.stdin, e.stderr = strings.NewReader("L_9\n\u202enone of these\ntool_42\n\n"), &out
	talk := newDialog(e)
	tool, err := askTool(talk, tools)
	if err != nil || tool.Name != "tool_42" {
		t.Errorf("%v, %q", err, tool.Name)
	}
	for _, want := range []string{"  tool_00  Does 0.", "  tool_19  ", "and 80 more", "  tool_90  ", "  tool_99  "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the dialog lacks %q", want)
		}
	}
	if text := out.String(); strings.Contains(text, "tool_20") || strings.ContainsAny(text, "\x1b\u202e") || strings.Contains(text, "More.") {
		t.Errorf("the dialog is\n%s", text)
	}
	if _, err := askTool(talk, tools); err == nil {
		t.Error("an empty line names a tool")
	}
}

// The schema is checked when a value is typed. Other properties of the object have no part in it.
func TestAskArguments_invalid(t *testing.T) {
	t.Parallel()
	e, err := scenarioEnv(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out lockedBuffer
	e.stdin, e.stderr = strings.NewReader("7\nn\n3\n\nn\n\ny\n{\"x\":[true]}\ny\n"), &out
	input := `{"type":"object","$defs":{"s":{"type":"number","maximum":5}},"required":["c","a/b"],"properties":{"a/b":{"$ref":"#/$defs/s"},"c":{"type":"string"},"d":{"properties":{"x":{"items":{"type":"string"}}}}}}`
	arguments, err := askArguments(newDialog(e), json.RawMessage(input))
	const want = `{"a/b":3,"d":{"x":[true]}}`
	if err != nil || string(arguments) != want {
		t.Errorf("%v, %s, want %s", err, arguments, want)
	}
	for _, said := range []string{"/a~1b must be at most 5", "it is required", "/d/x/0 must be a string"} {
		if !strings.Contains(out.String(), said) {
			t.Errorf("the dialog lacks %s:\n%s", said, out.String())
		}
	}
}

// A prompt says how to type a value, and what Enter does.
func TestAskArguments_hints(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"string"}`:                            `(string, optional: Enter skips it)`,
		`{"type":"integer","default":5}`:               `(integer, optional: Enter takes the default 5)`,
		`{"type":["string","null"],"enum":["a",null]}`: `(string or null, optional: Enter skips it; one of a, null)`,
		`{"type":"array","items":{"type":"string"}}`:   `(array, optional: Enter skips it; type JSON, such as ["a", "b"])`,
		`{"type":"array","items":{"type":"integer"}}`:  `type JSON, such as [1, 2])`,
		`{"type":"array","items":true}`:                `type JSON, such as ["a", "b"])`,
		`{"type":"object"}`:                            `type JSON, such as {"name": "a"})`,
		`{"type":["object","null"],"properties":{"q\"":{"type":"array","items":{"type":"array"}}}}`: `type JSON, such as {"q\"": [[], []]})`,
		`{"default":"` + strings.Repeat("x", maxAbout) + `"}`:                                       `(optional: Enter takes the default)`,
		`true`: `(optional: Enter skips it)`,
	} {
		e, err := scenarioEnv(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var out lockedBuffer
		e.stdin, e.stderr = strings.NewReader("\n"), &out
		arguments, err := askArguments(newDialog(e), json.RawMessage(`{"properties":{"p":`+schema+`}}`))
		if err != nil || string(arguments) != "{}" || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, %s\n%s\nwant %s", schema, err, arguments, out.String(), want)
		}
	}
	e, err := scenarioEnv(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out lockedBuffer
	e.stdin, e.stderr = strings.NewReader("a,b\nn\n[\"a\"]\n"), &out
	arguments, err := askArguments(newDialog(e), json.RawMessage(`{"required":["p"],"properties":{"p":{"type":"array"}}}`))
	if err != nil || string(arguments) != `{"p":["a"]}` || !strings.Contains(out.String(), `must be an array, not a string; type JSON, such as ["a", "b"]. Keep this answer?`) {
		t.Errorf("%v, %s\n%s", err, arguments, out.String())
	}
}

// The names of properties are only names, whatever characters they have.
func TestAskArguments_schema(t *testing.T) {
	t.Parallel()
	e, err := scenarioEnv(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out lockedBuffer
	e.stdin, e.stderr = strings.NewReader("1.5\n\nO-7\nx=y\n2\n[1\n[1]\n"), &out
	schema := `{"properties":{"kilos":{"type":"number","description":"Weight\u001b[2J"},"express":true,"order":{"type":["string","null"]},
		"a=b":{"type":"string"},"\"q\"\u001b[2J\n":{"type":"integer"},"--list":{"type":"array"}}}`
	arguments, err := askArguments(newDialog(e), json.RawMessage(schema))
	const want = `{"\"q\"\u001b[2J\n":2,"--list":[1],"a=b":"x=y","kilos":1.5,"order":"O-7"}`
	if err != nil || string(arguments) != want || strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "kilos (number, optional: Enter skips it): Weight") {
		t.Errorf("%v, %s\n%s", err, arguments, out.String())
	}
}
