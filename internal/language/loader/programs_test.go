package loader_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/language/loader"
)

func TestAProgramIsAFileThatOthersCannotChange(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	script := []byte("#!/bin/true\n")
	err = errors.Join(
		os.Mkdir(at("bin"), 0o755), os.Mkdir(at("open"), 0o700), os.Mkdir(at("sticky"), 0o700),
		os.WriteFile(at("bin/good"), script, 0o755), os.WriteFile(at("bin/plain"), script, 0o644), os.WriteFile(at("bin/written"), script, 0o755),
		os.WriteFile(at("open/good"), script, 0o755), os.WriteFile(at("sticky/good"), script, 0o755),
		os.Symlink("bin/good", at("link")), os.Symlink("../bin/good", at("open/link")), os.Symlink("open/good", at("away")), os.Symlink("nowhere", at("dangling")),
		os.Chmod(at("bin/written"), 0o777), os.Chmod(at("open"), 0o777), os.Chmod(at("sticky"), 0o777|os.ModeSticky),
	)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(at("open")); err != nil || info.Mode().Perm() != 0o777 {
		t.Skip("this system has no such modes")
	}
	for name, want := range map[string]string{
		"bin/good": "bin/good", "link": "bin/good", "sticky/good": "sticky/good",
		"bin":          "bin (it is a folder)",
		"bin/plain":    "bin/plain (it may not be executed)",
		"bin/written":  "bin/written (everyone may write it)",
		"open/good":    "open/good (everyone may write its folder TOP/open)",
		"open/link":    "bin/good (everyone may write its folder TOP/open)",
		"away":         "open/good (everyone may write its folder TOP/open)",
		"bin/none":     "bin/none (file does not exist)",
		"none/none":    "none/none (file does not exist)",
		"dangling":     "dangling (file does not exist)",
		"open/none":    "open/none (everyone may write its folder TOP/open)",
		"sticky/none":  "sticky/none (everyone may write its folder TOP/sticky)",
		"bin/good/sub": " (not a directory)",
	} {
		var roots loader.Roots
		real, err := roots.Program(at(name))
		got := strings.TrimPrefix(real, top+"/")
		if err != nil {
			got += " (" + strings.ReplaceAll(err.Error(), top, "TOP") + ")"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
