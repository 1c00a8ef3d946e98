package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
)

func TestFiles_testBlocks(t *testing.T) {
	server, _ := loadCopy(t, "files")
	passes(t, server, 4)
}

func TestFilePaths_confined(t *testing.T) {
	server, dir := loadCopy(t, "files")
	evil := filepath.Join(dir, "logs-evil")
	for link, to := range map[string]string{"evil.log": filepath.Join(evil, "app.log"), "evil": evil, "up": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, "logs", link)); err != nil {
			t.Skip("this system cannot create links: ", err)
		}
	}
	if err := os.Link(filepath.Join(evil, "app.log"), filepath.Join(dir, "logs", "hard.log")); err != nil {
		t.Fatal(err)
	}
	call := func(path string) (string, *call.Error) {
		arguments, err := json.Marshal(map[string]string{"log_path": path})
		if err != nil {
			t.Fatal(err)
		}
		result := server.Execute(t.Context(), call.Request{Kind: call.Tools, Name: "fetch_system_diagnostic", Arguments: arguments})
		return string(result.Value), result.Err
	}
	const want = `{"status":"defective","scanned":4,"defects":2,"first":["ERROR the disk is full","CRITICAL out of memory"]}`
	if got, err := call("app.log"); err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	for _, path := range []string{
		"../logs-evil/app.log", evil + "/app.log", filepath.Join(dir, "logs") + "-evil/app.log", filepath.Join(dir, "logs") + "/../logs-evil/app.log",
		"evil.log", "evil/app.log", "up/logs-evil/app.log", "hard.log", "./../logs-evil/app.log", "/etc/passwd",
	} {
		got, err := call(path)
		if err == nil || err.Message != "only files in the log directory can be read" {
			t.Errorf("%s: got %s, %v", strings.TrimPrefix(path, dir), got, err)
		}
	}
}
