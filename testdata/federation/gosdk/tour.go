package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// setting holds the arguments of the tour.
type setting struct{ modules, requests, revision, home, url, web, lab string }

// server is an upstream server, with its direct transport.
type server struct {
	name      string
	transport mcp.Transport
	roots     bool
}

func (s setting) servers() []server {
	reference := func(name string, args ...string) mcp.Transport {
		c := exec.Command(filepath.Join(s.modules, "node_modules/node/bin/node"),
			append([]string{filepath.Join(s.modules, "node_modules/@modelcontextprotocol/server-"+name+"/dist/index.js")}, args...)...)
		c.Env = append(os.Environ(), "MEMORY_FILE_PATH="+s.kept("direct.jsonl"))
		return &mcp.CommandTransport{Command: c, TerminateDuration: 100 * time.Millisecond} // some do not end with their input
	}
	at := func(url string) mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: url} }
	return []server{
		{"everything", reference("everything", "stdio"), true},
		{"web", at(s.web + "/mcp"), false},
		{"files", reference("filesystem", s.kept("files")), false},
		{"memory", reference("memory"), false},
		{"lab", at(s.lab + "/modern"), false},
		{"old", at(s.lab + "/sessions"), false},
	}
}

// kept returns the path of a file of the servers.
func (s setting) kept(name string) string { return filepath.Join(s.home, name) }

// wiped deletes the state of both.
func (s setting) wiped() error {
	problem := errors.Join(os.RemoveAll(s.kept("direct.jsonl")), os.RemoveAll(s.kept("memory.jsonl")))
	entries, err := os.ReadDir(s.kept("files"))
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.kept("files"), e.Name())))
	}
	return errors.Join(problem, err)
}

func tour(ctx context.Context, s setting) error {
	text, err := os.ReadFile(s.requests)
	if err != nil {
		return err
	}
	var requests []request
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "$FILES", s.kept("files"))), &requests); err != nil {
		return err
	}
	through, err := dial(ctx, &mcp.StreamableClientTransport{Endpoint: s.url}, s.revision, true)
	if err != nil {
		return err
	}
	compared := 0
	for _, server := range s.servers() {
		of := slices.DeleteFunc(slices.Clone(requests), func(r request) bool { return r.Server != server.name })
		if err := s.compare(ctx, server, through, of); err != nil {
			return fmt.Errorf("%s: %w", server.name, err)
		}
		compared += len(of)
	}
	fmt.Printf("go-sdk, %s: %d compared, 0 differ\n", s.revision, compared)
	return through.session.Close()
}

// compare makes the requests of one server directly and through mcpd.
func (s setting) compare(ctx context.Context, at server, through *peer, requests []request) error {
	direct, err := dial(ctx, at.transport, "", at.roots)
	if err != nil {
		return err
	}
	if err := s.wiped(); err != nil {
		return err
	}
	wanted := make([]came, len(requests))
	for i, r := range requests {
		if r.Denied == "" && r.Invalid == "" {
			wanted[i] = direct.make(ctx, r, func(name string) string { return name })
		}
	}
	if err := s.wiped(); err != nil {
		return err
	}
	for i, r := range requests {
		got := through.make(ctx, r, func(name string) string {
			if r.As != "" {
				return r.As
			}
			return at.name + "_" + name
		})
		if err := r.judge(got, wanted[i]); err != nil {
			what, _ := json.Marshal(r)
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	var exit *exec.ExitError
	if err := direct.session.Close(); !errors.As(err, &exit) { // on a busy machine, any of them is terminated
		return err
	}
	return nil
}

// judge returns the difference of a request through mcpd.
func (r request) judge(got, wanted came) error {
	switch {
	case r.Denied != "" || r.Invalid != "":
		return r.refused(got)
	case wanted.Err != nil && got.Err == nil:
		return fmt.Errorf("through mcpd: result %v, directly: %w", got.Result, wanted.Err)
	case wanted.Err != nil:
		return nil
	case got.Err != nil:
		return got.Err
	}
	var labeled []string
	for _, message := range wanted.Asked {
		labeled = append(labeled, "["+r.Server+"] "+message)
	}
	problems := []error{
		differ("progress", got.Progress, r.Progress), differ("questions", got.Asked, labeled),
		differ("samples", len(got.Sampled), len(wanted.Sampled)),
	}
	switch isError := wanted.Result["isError"] == true; {
	case r.Varies != "":
		return errors.Join(problems...)
	case isError:
		problems = append(problems, differ("code", got.Code, "EXECUTION_ERROR"))
		fallthrough
	default:
		problems = append(problems, differ("result", normal(got.Result), normal(wanted.Result)))
	}
	return errors.Join(problems...)
}

// normal sets hasMore of a completion, as mcpd does.
func normal(result map[string]any) map[string]any {
	if c, ok := result["completion"].(map[string]any); ok && c["hasMore"] == nil {
		c["hasMore"] = false
	}
	return result
}

// refused checks that mcpd did not pass the call on.
func (r request) refused(got came) error {
	text, _ := json.Marshal(got.Result["content"])
	code, message := "POLICY_DENIED", r.Denied
	if r.Invalid != "" {
		code, message = "INVALID_INPUT", r.Invalid
	}
	if got.Err != nil || got.Code != code || !strings.Contains(string(text), message) {
		return fmt.Errorf("not rejected: %s %s, %w", got.Code, text, got.Err)
	}
	return nil
}

func differ(what string, got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s through mcpd: %v\ndirectly: %v", what, got, want)
}
