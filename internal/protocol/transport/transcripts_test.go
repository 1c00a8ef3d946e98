// Package transport_test plays the transcripts in testdata/wire over every transport.
package transport_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

var update = flag.Bool("update", false, "write the server's messages into the transcripts")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTranscripts(t *testing.T) {
	for _, transport := range []struct {
		name, kind string
		dial       func(*testing.T, *mcp.Server) link
	}{
		{"streamable", "http", dialHTTP},
		{"sse", "stream", dialSSE},
		{"websocket", "stream", dialWebSocket},
		{"stdio", "stream", dialStdio},
	} {
		t.Run(transport.name, func(t *testing.T) { play(t, transport.kind, transport.dial) })
	}
}

// link is a client's end of a transport.
type link interface {
	// Send sends one text. Transports without headers ignore them.
	Send(header http.Header, text string)
	// Lines returns the messages of the server. Before the response to a request
	// that HTTP rejected, it returns the line "HTTP" and the status.
	Lines() <-chan string
	// Close ends the link and closes Lines.
	Close()
}

const (
	// patience is the timeout for a line of the server.
	timeout = 10 * time.Second
	// silence is the idle time after which an update considers the server's
	// messages complete.
	idleTimeout = 300 * time.Millisecond
)

// play plays all transcripts for the kind of transport, "http" or "stream",
// each against a new server. With -update it writes the server's messages into
// the files instead of comparing them: for a transcript of both kinds, with
// kind "http".
func play(t *testing.T, kind string, dial func(*testing.T, *mcp.Server) link) {
	for _, script := range load(t, "../../../testdata/wire", kind) {
		name := strings.TrimSuffix(filepath.Base(script.path), ".txtar")
		t.Run(name, func(t *testing.T) {
			p := player{t: t, kind: kind, backend: mcptest.New(mcptest.Tools()...)}
			p.backend.SetItems(mcptest.Items()...)
			p.server = mcp.New(p.serve(script), mcp.Options{Debounce: time.Millisecond, PageSize: 5})
			p.link = dial(t, p.server)
			p.update = *update && (kind == "http" || script.over == kind)
			got := p.play(script)
			if err := p.server.Drain(t.Context()); err != nil {
				t.Errorf("drain: %v", err)
			}
			if p.update {
				if err := os.WriteFile(script.path, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

type player struct {
	t       *testing.T
	kind    string
	backend *mcptest.Backend
	tasks   *taskBackend // nil without tasks
	server  *mcp.Server
	link    link
	update  bool
	ids     ids
}

// serve returns the backend for the transcript.
func (p *player) serve(script transcript) mcp.Backend {
	if !strings.Contains(script.prose, "\nWith: tasks\n") {
		return p.backend
	}
	p.tasks = newTaskBackend(p.backend)
	return p.tasks
}

// play returns the played transcript.
func (p *player) play(script transcript) transcript {
	got := script
	got.turns = slices.Clone(script.turns)
	for i, turn := range script.turns {
		verb, name, _ := strings.Cut(turn.who, " ")
		switch {
		case verb == "publish":
			p.publish(name)
		case verb == "touch":
			p.backend.ChangeResources(name)
		case verb == "finish":
			p.tasks.finish(name, mcptest.Text("done"))
		case verb == "break":
			p.tasks.finish(name, call.Result{Err: &call.Error{Code: call.ExecutionError, Message: "it broke"}})
		case verb == "lose":
			p.tasks.finish(name, call.Result{Err: &call.Error{RPC: &call.RPCError{Code: -32603, Message: "the server was restarted"}}})
		case turn.who == "drain":
			draining := make(chan error, 1)
			go func() { draining <- p.server.Drain(p.t.Context()) }()
			defer func() { <-draining }()
		case turn.who == "client":
			texts, headers := turn.messages()
			for j, text := range texts {
				p.link.Send(headers[j], p.ids.real(text))
			}
		case p.update:
			got.turns[i].lines = p.readMessages()
		default:
			p.expect(turn.lines)
		}
	}
	p.link.Close()
	for line := range p.link.Lines() {
		p.t.Errorf("unexpected message\n%s", line)
	}
	return got
}

// readMessages returns the server's messages until it is idle.
func (p *player) readMessages() (lines []string) {
	for {
		select {
		case line, ok := <-p.link.Lines():
			if !ok {
				return lines
			}
			lines = append(lines, p.ids.named(line))
		case <-time.After(idleTimeout):
			return lines
		}
	}
}

// expect compares the server's messages with the lines of the transcript.
func (p *player) expect(want []string) {
	for _, line := range want {
		if strings.HasPrefix(line, "HTTP ") && p.kind != "http" {
			continue
		}
		select {
		case output, ok := <-p.link.Lines():
			if !ok {
				p.t.Fatalf("the link was closed; want\n%s", line)
			}
			if output = p.ids.named(output); output != line {
				p.t.Errorf("got\n%s\nwant\n%s", output, line)
			}
		case <-time.After(timeout):
			p.t.Fatalf("timeout; want\n%s", line)
		}
	}
}

// publish publishes a named set: "fewer" tools, tools that are "asking",
// "blocks", "same" without a change, or "no resources", "no templates" and "no
// prompts".
func (p *player) publish(name string) {
	switch name {
	case "fewer":
		p.backend.Publish(mcptest.Tools()[:2]...)
	case "asking":
		p.backend.Publish(append(mcptest.Tools(), mcptest.InputTools()...)...)
		p.backend.PublishItems(append(mcptest.Items(), mcptest.InputItems()...)...)
	case "blocks":
		p.backend.Publish(append(mcptest.Tools(), blockTools()...)...)
		p.backend.PublishItems(append(mcptest.Items(), blockPrompt(p.t))...)
	case "same":
		p.backend.Publish(mcptest.Tools()...)
	case "no resources":
		p.backend.PublishItems(without(call.Resources)...)
	case "no templates":
		p.backend.PublishItems(without(call.Templates)...)
	case "no prompts":
		p.backend.PublishItems(without(call.Prompts)...)
	default:
		p.t.Fatalf("unknown set %q", name)
	}
}

// without returns the items of the other kinds.
func without(k call.Kind) []mcptest.Item {
	return slices.DeleteFunc(mcptest.Items(), func(i mcptest.Item) bool { return i.Kind == k })
}

// transcript is one file of testdata/wire: prose, followed by the messages of
// client and server in turn.
//
// A line of a "client" section is a message, or "Name: value", a header of the
// next message on transports with headers. $META is replaced by the _meta
// members of a modern request, $ABLE by those of a client with all input
// capabilities, $TASKS by those of a client with tasks. $ASK1, $ASK2 are the
// generated ids of the server's requests, in order.
//
// "publish NAME" sections publish other tools and items, "touch URI" sections
// change a resource, "finish ID", "break ID" and "lose ID" end a task. The
// prose may restrict the transports, as "Over: http" or "Over: stream". Tasks
// need "With: tasks".
type transcript struct {
	path  string
	prose string
	over  string
	turns []turn
}

// turn holds the consecutive messages of one side.
type turn struct {
	who   string // "client", "server", "drain", or an event such as "publish NAME"
	lines []string
}

const (
	clientMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"tester","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":`
	modernMeta = clientMeta + "{}"
	ableMeta   = clientMeta + `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`
	tasksMeta  = clientMeta + `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

var (
	overLine   = regexp.MustCompile(`(?m)^Over: (http|stream)$`)
	headerLine = regexp.MustCompile(`^([A-Za-z-]+): (.*)$`)
)

// load reads the transcripts for the kind of transport: "http" or "stream".
func load(t *testing.T, dir, kind string) []transcript {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in %s: %v", dir, err)
	}
	var found []transcript
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := parseTranscript(path, string(source))
		if s.over == "" || s.over == kind {
			found = append(found, s)
		}
	}
	return found
}

func parseTranscript(path, source string) transcript {
	s := transcript{path: path}
	for line := range strings.Lines(source) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(name, " --") {
			s.turns = append(s.turns, turn{who: strings.TrimSuffix(name, " --")})
			continue
		}
		if len(s.turns) == 0 {
			s.prose += line + "\n"
			continue
		}
		if line != "" {
			last := &s.turns[len(s.turns)-1]
			last.lines = append(last.lines, line)
		}
	}
	if over := overLine.FindStringSubmatch(s.prose); over != nil {
		s.over = over[1]
	}
	return s
}

// String returns the transcript as a file.
func (t transcript) String() string {
	var b strings.Builder
	b.WriteString(t.prose)
	for _, turn := range t.turns {
		fmt.Fprintf(&b, "-- %s --\n", turn.who)
		for _, line := range turn.lines {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// messages returns the client's messages, each with the headers before it.
func (t turn) messages() (texts []string, headers []http.Header) {
	header := http.Header{}
	for _, line := range t.lines {
		if m := headerLine.FindStringSubmatch(line); m != nil {
			header.Add(m[1], m[2])
			continue
		}
		texts = append(texts, strings.NewReplacer("$META", modernMeta, "$ABLE", ableMeta, "$TASKS", tasksMeta).Replace(line))
		headers = append(headers, header)
		header = http.Header{}
	}
	return texts, headers
}

// ids are the generated ids of a server, in order.
type ids struct{ told []string }

var (
	madeUp = regexp.MustCompile(`"(id|requestId|elicitationId)":"([A-Z2-7]{26})"`)
	// ofRequest matches the generated request_id of a request without one.
	ofRequest = regexp.MustCompile(`"request_id":"[0-9a-v]{16,26}"`)
)

// named returns a line of the server with generated ids replaced by names.
func (i *ids) named(line string) string {
	line = ofRequest.ReplaceAllLiteralString(line, `"request_id":"$REQUEST"`)
	return madeUp.ReplaceAllStringFunc(line, func(member string) string {
		parts := madeUp.FindStringSubmatch(member)
		at := slices.Index(i.told, parts[2])
		if at < 0 {
			at = len(i.told)
			i.told = append(i.told, parts[2])
		}
		return fmt.Sprintf(`"%s":"$ASK%d"`, parts[1], at+1)
	})
}

// real returns a line of the client with names replaced by ids.
func (i *ids) real(line string) string {
	for at, id := range i.told {
		line = strings.ReplaceAll(line, fmt.Sprintf(`"$ASK%d"`, at+1), `"`+id+`"`)
	}
	return line
}
