package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/mcpd/mcpd/engine"
)

// inMemory is the value of --state that keeps nothing on disk.
const inMemory = "memory"

// stateFile returns where the state of a server is kept, empty for in memory,
// and whether it may do without: a file that the user named must be had, and
// the one in the user's own folder, one for each folder of tools, need not.
func (f *serveFlags) stateFile(e env) (path string, optional bool) {
	switch f.state {
	case inMemory:
		return "", false
	case "":
	default:
		return f.state, false
	}
	path = f.files.state(e)
	return path, path != ""
}

// state returns the file that a server of these files keeps its state in when it is
// told no other; empty when there is no folder for it.
func (f *files) state(e env) string { return f.kept(e, ".db") }

// kept returns the path of a file with this ending that a server of these files
// has for itself; empty when there is no folder for such files.
func (f *files) kept(e env, ending string) string {
	home := stateHome(e)
	tools, err := filepath.Abs(e.at(f.tools))
	if home == "" || err != nil {
		return ""
	}
	config, err := filepath.Abs(e.at(f.config))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(tools + "\x00" + config))
	return filepath.Join(home, "mcpd", hex.EncodeToString(sum[:8])+ending)
}

// checkState opens the file that the user named, and the one in the user's own
// folder if it is there: what is wrong with it shows at the start and not when the
// first call waits.
func (f *serveFlags) checkState(e env, s *engine.Server) error {
	path, optional := f.stateFile(e)
	if path == "" {
		return nil
	}
	if _, err := e.disk.stat(path); optional && err != nil {
		return nil // it is made when it is needed
	}
	if _, err := s.Inside().State(); err != nil {
		return unstarted(fmt.Errorf("--state %s: %w", path, err))
	}
	return nil
}

// stateHome returns the folder in which programs of the user keep what they
// need again, empty when there is none.
func stateHome(e env) string {
	if folder, _ := e.lookup("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return folder
	}
	variable, below := "HOME", []string{".local", "state"}
	switch runtime.GOOS {
	case "windows":
		variable, below = "LocalAppData", nil
	case "darwin":
		below = []string{"Library", "Application Support"}
	}
	folder, _ := e.lookup(variable)
	if !filepath.IsAbs(folder) {
		return ""
	}
	return filepath.Join(append([]string{folder}, below...)...)
}
