package codemode

import (
	"testing"
	"time"
)

func TestThePromptOfASmallCatalogue(t *testing.T) {
	holdGolden(t, "small.md", Prompt(smallCatalogue(), Options{Limits: Limits{Time: 30 * time.Second, Calls: 100, Running: 8, Output: 256 << 10, Memory: 128 << 20}}))
	if m := mistakes(Declare(smallCatalogue(), Full)); m != "" {
		t.Error(m)
	}
}
