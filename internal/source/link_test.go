package source_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcpd/mcpd/internal/source"
)

func TestAnEditBehindALinkIsRead(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "real.txt"), toolText("first"))
	if err := os.Symlink("real.txt", filepath.Join(folder, "a.hcl")); err != nil {
		t.Skipf("SKIPPED: this system makes no links: %v", err)
	}
	tree := source.New(source.Dir(folder), "tools.d")
	tree.Update(nil, true)
	write(t, filepath.Join(folder, "real.txt"), toolText("second"))
	tree.Update([]string{"real.txt"}, false)
	if tools, codes := names(t, tree); !slices.Equal(tools, []string{"second"}) {
		t.Errorf("tools %v, %v", tools, codes)
	}
}
