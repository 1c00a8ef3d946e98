package loader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcpd/mcpd/internal/language/loader"
)

func TestAnEditBehindALinkIsRead(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "real.txt"), toolText("first"))
	if err := os.Symlink("real.txt", filepath.Join(folder, "a.hcl")); err != nil {
		t.Skipf("SKIPPED: this system makes no links: %v", err)
	}
	tree := loader.New(loader.Dir(folder), "tools.d")
	tree.Update(nil, true)
	write(t, filepath.Join(folder, "real.txt"), toolText("second"))
	tree.Update([]string{"real.txt"}, false)
	if tools, codes := names(t, tree); !slices.Equal(tools, []string{"second"}) {
		t.Errorf("tools %v, %v", tools, codes)
	}
}

func TestALinkThatComesIsAsGoodAsOneThatWasThere(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "docs", "real.txt"), toolText("first"))
	tree := loader.New(loader.Dir(folder), "tools.d")
	tree.Update(nil, true)
	if err := os.Symlink("docs/real.txt", filepath.Join(folder, "a.hcl")); err != nil {
		t.Skipf("SKIPPED: this system makes no links: %v", err)
	}
	tree.Update([]string{"a.hcl"}, false)
	write(t, filepath.Join(folder, "docs", "real.txt"), toolText("second"))
	tree.Update([]string{"docs/real.txt"}, false)
	if tools, codes := names(t, tree); !slices.Equal(tools, []string{"second"}) {
		t.Errorf("tools %v, %v", tools, codes)
	}
	if err := os.Symlink("/etc/hosts", filepath.Join(folder, "docs", "out.txt")); err != nil {
		t.Fatal(err)
	}
	tree.Update([]string{"docs/out.txt"}, false)
	if _, codes := names(t, tree); !slices.Equal(codes, []string{"error bad-link tools.d/docs/out.txt"}) {
		t.Errorf("a link that leads out is told as %v", codes)
	}
}

func TestManyLinksInACircleComeToAnEndSoon(t *testing.T) {
	folder := t.TempDir()
	for n := range 25 {
		if err := os.Symlink(".", filepath.Join(folder, fmt.Sprint("link", n))); err != nil {
			t.Skipf("SKIPPED: this system makes no links: %v", err)
		}
	}
	tree := loader.New(loader.Dir(folder), "tools.d")
	tree.Update(nil, true)
	if _, codes := names(t, tree); len(codes) == 0 || len(codes) > 20 {
		t.Errorf("%d problems", len(codes))
	}
}
