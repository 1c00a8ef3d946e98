package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdCheckout makes tools.d what another folder holds, one file after the other
// and under a lock, as git does.
func cmdCheckout(ts *testscript.TestScript, _ bool, args []string) {
	lock := ts.MkAbs(".git/index.lock")
	ts.Check(os.MkdirAll(filepath.Dir(lock), 0o755))
	ts.Check(os.WriteFile(lock, nil, 0o644))
	ts.Check(checkout(ts.MkAbs(args[0]), ts.MkAbs("tools.d")))
	ts.Check(os.Remove(lock))
}

func checkout(from, to string) error {
	wanted, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	present, err := os.ReadDir(to)
	if err != nil {
		return err
	}
	for _, entry := range present {
		if _, err := os.Stat(filepath.Join(from, entry.Name())); errors.Is(err, os.ErrNotExist) {
			if err := os.Remove(filepath.Join(to, entry.Name())); err != nil {
				return err
			}
		}
	}
	// All is read first, so that nothing but writing stands between two writes.
	contents := make([][]byte, len(wanted))
	for i, entry := range wanted {
		if contents[i], err = os.ReadFile(filepath.Join(from, entry.Name())); err != nil {
			return err
		}
	}
	for i, entry := range wanted {
		if err := os.WriteFile(filepath.Join(to, entry.Name()), contents[i], 0o644); err != nil {
			return err
		}
	}
	return nil
}
