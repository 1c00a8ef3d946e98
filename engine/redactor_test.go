package engine_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/engine"
)

func TestLogRedactor_otherLoggers(t *testing.T) {
	const value = "correct/horse battery"
	var log bytes.Buffer
	var redactor engine.LogRedactor
	logger := redactor.Logger(slog.New(slog.NewTextHandler(&log, nil)))
	logger.Info(value)
	if !strings.Contains(log.String(), value) {
		t.Errorf("before the server exists, the log has %s", &log)
	}
	log.Reset()
	server(t, engine.Options{
		Files: engine.Files{
			Config:    files("mcpd.hcl", readerConfig),
			Tools:     files("deploy.hcl", reader),
			LookupEnv: func(string) (string, bool) { return value, true },
		}, LogRedactor: &redactor,
	})
	for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte("x" + value)), hex.EncodeToString([]byte(value)), url.QueryEscape(value)} {
		for _, logger := range []*slog.Logger{logger, redactor.Logger(slog.New(slog.NewJSONHandler(&log, nil)))} {
			logger.Warn(form, "text", form, "error", errors.New(form), "list", []string{form})
		}
		if strings.Contains(log.String(), form) || strings.Count(log.String(), "[secret:key]") != 8 {
			t.Errorf("the log shows %s:\n%s", form, &log)
		}
		log.Reset()
	}
	if _, err := engine.New(engine.Options{Name: "second", LogRedactor: &redactor}); err == nil || err.Error() != "new server: the redactor belongs to another server" {
		t.Errorf("a second server accepts the redactor: %v", err)
	}
}
