package openapi

import "github.com/rogpeppe/go-internal/diff"

// Diff shows how a new import of a kept block differs from it.
func Diff(k Kept) string {
	return string(diff.Diff("your block", []byte(k.Old), "a new import", []byte(k.New)))
}
