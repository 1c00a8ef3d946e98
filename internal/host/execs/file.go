package execs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// find looks whether the program is the one that was there when the grant was
// judged, and one that only those may change who could before.
func find(g grant.Exec) error {
	real, err := filepath.EvalSymlinks(g.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault(scripting.NotFound, "exec.%s: the program is not there", g.Name)
	case err != nil || real != g.Real:
		return fault(scripting.Denied, "exec.%s: the program is another than when the files were loaded", g.Name)
	}
	info, err := os.Lstat(real)
	// Modes say nothing of that on Windows.
	written := err == nil && info.Mode().Perm()&0o002 != 0 && runtime.GOOS != "windows"
	if err != nil || written || !info.Mode().IsRegular() {
		return fault(scripting.Denied, "exec.%s: the program may be changed by everyone, or is no file", g.Name)
	}
	return nil
}
