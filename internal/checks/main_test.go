// Package checks tests the whole repository: imports, documents and contents of files.
// Its tests run in the root directory.
package checks_test

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, "enter the root folder:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
