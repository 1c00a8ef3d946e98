package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting"
)

func TestLargeBodiesAreTriedByAnotherMcpd(t *testing.T) {
	e := processEnv()
	e.name = "mcpd"
	var log bytes.Buffer
	try := trial(e, slog.New(slog.NewTextHandler(&log, nil)))
	if err := try(scripting.Source{Name: "t", Text: diag.WholeFile("t.js", strings.Repeat("f();\n", 2000))}); err != nil || log.Len() > 0 {
		t.Errorf("got %v, logged %q", err, log.String())
	}
}

func TestWhereNoProcessCanBeStartedBodiesAreCompiledHereAndThatIsSaid(t *testing.T) {
	e := processEnv()
	e.self = "/does/not/exist"
	var log bytes.Buffer
	try := trial(e, slog.New(slog.NewTextHandler(&log, nil)))
	if err := try(scripting.Source{Name: "t", Text: diag.WholeFile("t.js", "")}); err != nil || !strings.Contains(log.String(), "without a trial") {
		t.Errorf("got %v, logged %q", err, log.String())
	}
}
