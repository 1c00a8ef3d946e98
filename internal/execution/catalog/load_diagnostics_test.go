package catalog

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
)

func TestLogPanics(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	LogPanics(logger, diag.List{{Summary: "other"}, {Summary: "a panic", Range: diag.Range{File: "x.hcl"}, Stack: "goroutine 1"}})
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `msg="recover panic in file" at=x.hcl stack="goroutine 1"`) {
		t.Errorf("logged %s", got)
	}
}
