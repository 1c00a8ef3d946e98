package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// modernMeta is the _meta of a client that supports input requests and tasks.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"script","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

var (
	nameOf = map[string]*regexp.Regexp{
		"tools/call":     regexp.MustCompile(`"name"\s*:\s*"([^"]*)"`),
		"prompts/get":    regexp.MustCompile(`"name"\s*:\s*"([^"]*)"`),
		"resources/read": regexp.MustCompile(`"uri"\s*:\s*"([^"]*)"`),
		"tasks/":         regexp.MustCompile(`"taskId"\s*:\s*"([^"]*)"`),
	}
	taskID = regexp.MustCompile(`"taskId":"([^"]*)"`)
)

func cmdModern(ts *testscript.TestScript, _ bool, args []string) {
	params := os.Expand(ts.ReadFile(args[1]), ts.Getenv)
	status, body, err := daemonOf(ts).modern(args[0], params)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", status, body)
	if len(args) < 3 {
		return
	}
	id := taskID.FindSubmatch(body)
	if id == nil {
		ts.Fatalf("no task in %s", body)
	}
	ts.Setenv(args[2], string(id[1]))
}

// modern sends a request of revision 2026-07-28; params is a JSON object without _meta.
func (d *daemon) modern(method, params string) (int, []byte, error) {
	return d.exchange(http.MethodPost, "/mcp", modernBody(method, params), modernHeader(method, params))
}

// modernRequest returns the request that modern sends.
func (d *daemon) modernRequest(method, params string) (*http.Request, error) {
	return d.request(http.MethodPost, "/mcp", modernBody(method, params), modernHeader(method, params))
}

func modernBody(method, params string) []byte {
	meta := modernMeta
	inner := strings.TrimSpace(params)
	inner = strings.TrimSuffix(strings.TrimPrefix(inner, "{"), "}")
	if strings.TrimSpace(inner) != "" {
		meta += ","
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, meta, inner)
}

func modernHeader(method, params string) http.Header {
	header := http.Header{
		"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method},
	}
	for of, name := range nameOf {
		if match := name.FindStringSubmatch(params); match != nil && strings.HasPrefix(method, of) {
			header.Set("Mcp-Name", match[1])
		}
	}
	return header
}

func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: until id status")
	}
	task, err := daemonOf(ts).until(args[0], args[1])
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", task)
}

// until returns a task when it reaches a status, as reported to a subscriber.
func (d *daemon) until(id, status string) ([]byte, error) {
	const method = "subscriptions/listen"
	params := fmt.Sprintf(`{"notifications":{"taskIds":[%q]}}`, id)
	request, err := http.NewRequest(http.MethodPost, d.url+"/mcp", bytes.NewReader(modernBody(method, params)))
	if err != nil {
		return nil, err
	}
	request.Header = modernHeader(method, params)
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{Timeout: patience}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		var told struct {
			Params struct{ Status string }
		}
		if ok && json.Unmarshal(data, &told) == nil && told.Params.Status == status {
			return data, nil
		}
	}
	return nil, fmt.Errorf("the stream ended before the task was %s: %w", status, lines.Err())
}
