// Package checks holds the tests over the whole repository: its imports, its documents and
// what its files may name. They run in the root folder.
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
