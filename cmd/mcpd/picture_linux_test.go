package main

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// pictureFile is the tool of the session in README's picture.
const pictureFile = `tool "refund" {
  description = "Pays money back for an order."
  input "order" { type = string }
  input "euros" { type = number }
  run = "return 'Paid back ' + input.euros + ' EUR for ' + input.order;"
}

policy "large_refunds_need_a_lead" {
  tools  = ["refund"]
  deny   = "args.euros > 50"
  reason = "Refunds above 50 EUR need a team lead"
}
`

const pictureServe = "mcpd serve --log-level warn &"

// pictureSession lists the commands of the picture. They run in order, at a terminal.
var pictureSession = []string{
	"cat tools.d/refund.hcl",
	pictureServe,
	"mcpd call refund order=O-7 euros=20 --url http://127.0.0.1:8080",
	"mcpd call refund order=O-7 euros=80 --url http://127.0.0.1:8080",
	"sed -i 's/args.euros/args.euro/' tools.d/refund.hcl   # save a typo",
	"mcpd check",
	"mcpd call refund order=O-7 euros=20 --url http://127.0.0.1:8080   # the last good version still serves",
}

// TestPicture_showsARealSession runs the session and compares the picture of it with
// docs/assets/terminal.svg, which -update rewrites.
func TestPicture_showsARealSession(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED with -short: the session is that of a program without the race detector")
	}
	program, dir := buildDaemon(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tools.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tools.d", "refund.hcl"), []byte(pictureFile), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &reader{dir: dir, program: program}
	r.env = append(os.Environ(), "TERM=xterm", "XDG_STATE_HOME="+t.TempDir(), "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Cleanup(func() { r.daemon.kill() })
	p := picture{}
	for _, command := range pictureSession {
		p.addCommand(command)
		p.addOutput(r.public(atTerminal(t, r, command)))
	}
	const name = "../../docs/assets/terminal.svg"
	if *update {
		if err := os.WriteFile(name, []byte(p.svg()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	shown, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(shown), p.svg()); diff != "" {
		t.Errorf("%s is not what happens (-picture +happens); run with -update and review\n%s", name, diff)
	}
}

// atTerminal runs a command with a pseudo-terminal as its output and returns the output.
func atTerminal(t *testing.T, r *reader, command string) string {
	t.Helper()
	if command == pictureServe {
		var err error
		if r.daemon, err = startDaemon(r.program, r.dir, r.env, []string{"--log-level", "warn"}); err != nil {
			t.Fatal(err)
		}
		return r.daemon.serving + "\n"
	}
	if r.daemon != nil {
		command = strings.ReplaceAll(command, readmePort, strings.TrimPrefix(r.daemon.url, "http://"))
	}
	terminal, name := openTerminal(t)
	screen, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("sh", "-c", command)
	shell.Dir, shell.Env, shell.Stdout, shell.Stderr = r.dir, r.env, screen, screen
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	screen.Close()
	var out bytes.Buffer
	_, _ = io.Copy(&out, terminal) // ends with an error once no process has the screen
	_ = shell.Wait()               // a check with findings exits with 1
	if strings.HasPrefix(command, "sed") {
		if _, err := r.daemon.waitFor(regexp.MustCompile("reload failed")); err != nil {
			t.Fatal(err)
		}
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

// picture draws lines of a terminal as SVG. Its lines appear one after the other; viewers
// without animations show all of them.
type picture struct {
	lines   []pictureLine
	seconds float64
	columns int
}

type pictureLine struct {
	delay float64
	spans string // of SVG
	width int
}

const (
	pictureColumn = 7.8
	pictureRow    = 19
)

func (p *picture) addCommand(command string) {
	text, comment, _ := strings.Cut(command, "   #")
	spans := `<tspan class="p">$ </tspan><tspan class="b">` + html.EscapeString(text) + `</tspan>`
	if comment != "" {
		comment = "   #" + comment
		spans += `<tspan class="c">` + html.EscapeString(comment) + `</tspan>`
	}
	p.seconds += 0.9
	p.add(spans, 2+utf8.RuneCountInString(text+comment))
	p.seconds += 0.4
}

var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// pictureColors are the classes of the colors that mcpd uses.
var pictureColors = map[string]string{"1": "b", "1;31": "r", "1;33": "y", "1;34": "l"}

func (p *picture) addOutput(output string) {
	class := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		spans, width, last := "", 0, 0
		span := func(text string) {
			width += utf8.RuneCountInString(text)
			if text == "" {
				return
			}
			spans += fmt.Sprintf(`<tspan class="%s">%s</tspan>`, class, html.EscapeString(text))
		}
		for _, at := range sgr.FindAllStringSubmatchIndex(line, -1) {
			span(line[last:at[0]])
			class, last = pictureColors[line[at[2]:at[3]]], at[1]
		}
		span(line[last:])
		p.add(spans, width)
	}
}

func (p *picture) add(spans string, width int) {
	p.lines = append(p.lines, pictureLine{delay: p.seconds, spans: spans, width: width})
	p.columns = max(p.columns, width)
}

func (p *picture) svg() string {
	var b strings.Builder
	width, height := int(float64(p.columns)*pictureColumn)+40, len(p.lines)*pictureRow+62
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="A session of mcpd at a terminal">
<style>
.w{fill:#f6f8fa;stroke:#d0d7de}text{fill:#1f2328;font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;white-space:pre}
.b{font-weight:600}.p{fill:#1a7f37;font-weight:600}.c{fill:#656d76}.r{fill:#cf222e;font-weight:600}.y{fill:#9a6700;font-weight:600}.l{fill:#0969da;font-weight:600}
@media (prefers-color-scheme:dark){.w{fill:#161b22;stroke:#30363d}text{fill:#e6edf3}.p{fill:#3fb950}.c{fill:#8d96a0}.r{fill:#ff7b72}.y{fill:#d29922}.l{fill:#58a6ff}}
.a{animation:show .01s linear backwards}@keyframes show{from{opacity:0}}
@media (prefers-reduced-motion:reduce){.a{animation:none}}
</style>
<rect class="w" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>
<circle cx="20" cy="19" r="6" fill="#ff5f57"/><circle cx="40" cy="19" r="6" fill="#febc2e"/><circle cx="60" cy="19" r="6" fill="#28c840"/>
`, width, height, width, height, width-1, height-1)
	for i, line := range p.lines {
		if line.width == 0 {
			continue
		}
		fmt.Fprintf(&b, `<text class="a" style="animation-delay:%.1fs" x="20" y="%d" textLength="%.1f" xml:space="preserve">%s</text>`+"\n", line.delay, i*pictureRow+56, float64(line.width)*pictureColumn, line.spans)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
