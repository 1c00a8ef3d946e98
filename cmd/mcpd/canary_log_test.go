//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// accounts has every call written down, and a body hand a secret that it reads to a
// tool of which the arguments are kept.
func (s *scene) accounts(t *testing.T) {
	t.Helper()
	c := s.hatch("told")
	s.secret(t, "told", "file", c.value, "reveal = true")
	s.config.WriteString("audit {\n  path    = \"audit/calls.jsonl\"\n  mode    = \"strict\"\n  capture = [\"hears\"]\n}\n")
	s.tools.WriteString("tool \"hears\" {\n  extra_arguments = true\n  run = \"return 1;\"\n}\n")
	s.tool("tells", "    secrets { names = [\"told\"] }\n    call { tools = [\"hears\"] }",
		`const told = secrets.told, plain = told.replace(/[^ -~]/g, "");
      return await tools.hears({ told, coded: btoa(plain), hex: [...plain].map((c) => c.charCodeAt(0).toString(16)).join(""), url: encodeURIComponent(told), deep: [{ [told]: told }], [btoa(plain)]: 1 });`)
}

// bomb has a body read a secret and take its process down.
func (s *scene) bomb(t *testing.T) {
	t.Helper()
	c := s.hatch("bomb")
	s.secret(t, "bomb", "file", c.value, "reveal = true")
	s.names = append(s.names, "bomb")
	s.tools.WriteString("tool \"bomb\" {\n  timeout = \"20s\"\n  allow {\n    secrets { names = [\"bomb\"] }\n  }\n  run = <<JS\n    let all = secrets.bomb;\n    for (;;) all += all;\n  JS\n}\n")
}

// seeAudit takes in the audit log, of which it wants that it tells of what was read
// and handed on, and the log of what died of a secret.
func (s *scene) seeAudit(t *testing.T, executor string) {
	t.Helper()
	folder := filepath.Join(s.dir, "audit")
	s.seeFiles(t, folder)
	text, err := os.ReadFile(filepath.Join(folder, "calls.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"kind":"intent"`, `"event.name":"secret.revealed"`, `"name":"shown"`, `"gen_ai.tool.call.arguments":{"[secret:told]":1,`, `"told":"[secret:told]"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the audit log lacks %s", want)
		}
	}
	if died := fmt.Sprint(s.seen["the log"]); executor == executorWorker && !strings.Contains(died, "a process that runs bodies has ended") {
		t.Error("no process died")
	}
}
