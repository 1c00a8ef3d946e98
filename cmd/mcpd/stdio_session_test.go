package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// Values that vary between runs.
var (
	askedID  = regexp.MustCompile(`^{"jsonrpc":"2.0","id":("[^"]+"),"method"`)
	runMarks = regexp.MustCompile(`("mcpd/revision"|"request_id"|"revision"):"[^"]+"`)
	cursors  = regexp.MustCompile(`"nextCursor":"([^"]+)"`)
)

// cmdTalk plays a conversation with mcpd serve --stdio, with these flags. It sends the
// lines of the file that start with "> ". For each line that starts with "<" it reads
// one message. Other lines are comments.
//
// It prints the file with the messages of the server, for comparison with the file.
// Revisions and request ids are "*", the id of the last request of the server is "$ASK"
// and the last cursor is "$CURSOR". In sent lines these two are replaced. The log of
// the server is in talk.log.
func cmdTalk(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || neg {
		ts.Fatalf("usage: talk file [flags...]")
	}
	program, err := exec.LookPath("mcpd")
	ts.Check(err)
	log, err := os.Create(ts.MkAbs("talk.log"))
	ts.Check(err)
	defer log.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server := exec.CommandContext(ctx, program, append([]string{"serve", "--stdio"}, args[1:]...)...)
	server.Dir, server.Env, server.Stderr = ts.MkAbs("."), scriptEnv(ts), log
	in, err := server.StdinPipe()
	ts.Check(err)
	out, err := server.StdoutPipe()
	ts.Check(err)
	ts.Check(server.Start())
	c := stdioSession{in: in, lines: bufio.NewScanner(out)}
	c.lines.Buffer(nil, 1<<20)
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		fmt.Fprintln(ts.Stdout(), c.line(strings.TrimSuffix(line, "\n")))
	}
	_ = in.Close()
	for c.lines.Scan() {
		fmt.Fprintln(ts.Stdout(), "<", c.named(c.lines.Text()))
	}
	if err := server.Wait(); err != nil {
		ts.Fatalf("the server exited with %v:\n%s", err, ts.ReadFile("talk.log"))
	}
}

// stdioSession is a session with a server on stdio.
type stdioSession struct {
	in          io.Writer
	lines       *bufio.Scanner
	ask, cursor string // last id and cursor, as JSON strings
}

// line plays a line of the file, and returns it with the actual message.
func (c *stdioSession) line(line string) string {
	switch {
	case strings.HasPrefix(line, "> "):
		text := strings.NewReplacer(`"$ASK"`, cmp.Or(c.ask, "null"), `"$CURSOR"`, cmp.Or(c.cursor, "null")).Replace(line[2:])
		if _, err := io.WriteString(c.in, text+"\n"); err != nil {
			return "! " + err.Error()
		}
	case strings.HasPrefix(line, "<"):
		if !c.lines.Scan() {
			return "! the server has said all"
		}
		return "< " + c.named(c.lines.Text())
	}
	return line
}

// named replaces varying values in a message by names.
func (c *stdioSession) named(text string) string {
	if asked := askedID.FindStringSubmatch(text); asked != nil {
		c.ask = asked[1]
		text = strings.ReplaceAll(text, `"id":`+c.ask, `"id":"$ASK"`)
	}
	if c.ask != "" {
		text = strings.ReplaceAll(text, `"requestId":`+c.ask, `"requestId":"$ASK"`)
	}
	if next := cursors.FindStringSubmatch(text); next != nil {
		c.cursor = `"` + next[1] + `"`
		text = strings.ReplaceAll(text, c.cursor, `"$CURSOR"`)
	}
	return runMarks.ReplaceAllString(text, `$1:"*"`)
}
