package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/serve"
)

// versionedFiles is a tool with parts in four files, each with the version.
func versionedFiles(version int) fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
	return fstest.MapFS{
		"locals.hcl": file(fmt.Sprintf("locals {\n  version = %d\n}\n", version)),
		"tool.hcl": file(`tool "parts" {
  input "local" {
    type    = integer
    default = local.version
  }
  timeout = "5m"
  run     = file("body.js")
}
`),
		"body.js": file(fmt.Sprintf("import { part } from './part.js';\nreturn { local: input.local, body: %d, part };\n", version)),
		"part.js": file(fmt.Sprintf("export const part = %d;\n", version)),
	}
}

// TestReload_atomic calls a tool from 32 connections while its files are
// replaced, 1,000 times with MCPD_LONG: no call fails, and every result has one
// version, the version of the revision in the response.
func TestReload_atomic(t *testing.T) {
	connections, reloads := 32, 150
	switch {
	case os.Getenv("MCPD_LONG") != "":
		reloads = 1000
	case testing.Short():
		reloads = 50
	}
	folder := versionedFiles(0)
	s, err := engine.New(engine.Options{Name: "storm", Extensions: []engine.Extension{typescript.New()}, Files: engine.Files{Tools: folder}, Front: serve.Checks{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	front := serve.New(s, serve.Options{})
	url := listen(t, front)
	t.Cleanup(func() {
		if err := front.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})

	var versions sync.Map // revision → version
	versions.Store(s.Snapshot().Revision(), 0)
	var done atomic.Bool
	var calls atomic.Int64
	type seen struct {
		revision string
		parts    struct{ Local, Body, Part int }
	}
	results := make([][]seen, connections)
	var group sync.WaitGroup
	for i := range connections {
		group.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
			defer client.CloseIdleConnections()
			for !done.Load() {
				got := seen{}
				var err error
				if got.revision, err = callParts(client, url, &got.parts); err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
				results[i] = append(results[i], got)
				calls.Add(1)
			}
		})
	}
	for version := 1; version <= reloads; version++ {
		for name, file := range versionedFiles(version) {
			folder[name] = file
		}
		if _, err := s.Reload(t.Context(), engine.Change{Paths: []string{"locals.hcl", "tool.hcl", "body.js", "part.js"}}); err != nil {
			t.Errorf("reload %d: %v", version, err)
			break
		}
		versions.Store(s.Snapshot().Revision(), version)
	}
	done.Store(true)
	group.Wait()
	mixed := 0
	for _, of := range results {
		for _, got := range of {
			version, known := versions.Load(got.revision)
			if !known || got.parts.Local != version || got.parts.Body != version || got.parts.Part != version {
				mixed++
			}
		}
	}
	if mixed > 0 {
		t.Errorf("%d of %d calls mixed versions", mixed, calls.Load())
	}
	if calls.Load() < int64(connections) {
		t.Errorf("only %d calls were made", calls.Load())
	}
	t.Logf("%d calls from %d connections during %d reloads", calls.Load(), connections, reloads)
}

// callParts calls the tool and returns the revision that served it.
func callParts(client *http.Client, url string, into any) (string, error) {
	request, err := http.NewRequest(http.MethodPost, url+"/mcp", strings.NewReader(request(metaModern, oneCall{"parts", "{}"})))
	if err != nil {
		return "", err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "parts",
	} {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var answer struct {
		Result struct {
			IsError bool
			Content []contentBlock
			Meta    map[string]any `json:"_meta"`
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return "", err
	}
	if answer.Result.IsError || len(answer.Result.Content) == 0 {
		return "", fmt.Errorf("the call failed: %+v", answer.Result)
	}
	revision, _ := answer.Result.Meta["mcpd/revision"].(string)
	return revision, json.Unmarshal([]byte(answer.Result.Content[0].Text), into)
}
