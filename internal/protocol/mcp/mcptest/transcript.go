package mcptest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// transcript is one file of testdata/wire: prose, and then what the client and
// the server say to each other in turn.
//
// A line of a "client" section is a message, or "Name: value", which is a
// header of the next message where the transport has headers. $META stands for
// the _meta members of a modern request, $ABLE for those of a client that can
// be asked everything, $TASKS for those of one that knows tasks. $ASK1, $ASK2
// stand for the ids that the server makes up, in the order in which they came.
//
// "publish NAME" sections publish other tools and items, "touch URI" sections
// change a resource, "finish ID", "break ID" and "lose ID" end a task. The
// prose may name the transports that the transcript is for, as "Over: http" or
// "Over: stream"; without, it is for all of them. Tasks need "With: tasks".
type transcript struct {
	path  string
	prose string
	over  string
	turns []turn
}

// turn is what one side says.
type turn struct {
	who   string // "client", "server", "drain", or what happens, such as "publish NAME"
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

// load reads the transcripts that are for the kind of transport: "http" or "stream".
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
func (s transcript) String() string {
	var b strings.Builder
	b.WriteString(s.prose)
	for _, turn := range s.turns {
		fmt.Fprintf(&b, "-- %s --\n", turn.who)
		for _, line := range turn.lines {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// messages returns what a client says, each message with the headers before it.
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
