package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Check returns why no log could be opened at a path now, as far as that shows in what
// stands there. It makes nothing, and does not ask whether another process has the log.
func Check(path string) error {
	path, err := filepath.Abs(path)
	if err == nil {
		err = checkFolder(folderOf(path))
	}
	for _, name := range []string{path, keyPath(path), headPath(path)} {
		if err != nil {
			return err
		}
		err = checkFile(name)
	}
	return err
}

// checkFolder refuses a folder that is something else, that could not be made, or in which
// nothing could be.
func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	switch above := filepath.Dir(folder); {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is no folder", folder)
	case err == nil:
		return mayWriteIn(folder)
	case above != folder:
		if wrong := checkFolder(above); wrong != nil {
			return wrong
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is made
	}
	return err
}
