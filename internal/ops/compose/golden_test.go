package compose_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcpd/mcpd/internal/ops/compose"
	"github.com/mcpd/mcpd/internal/ops/compose/samples"
)

var update = flag.Bool("update", false, "write the goldens anew")

func TestFiles_rfcDeployment(t *testing.T) { golden(t, "coding-env", samples.Coding()) }

func TestFiles_fullDeployment(t *testing.T) { golden(t, "rich", samples.Rich()) }

func TestFiles_replicas(t *testing.T) { golden(t, "fleet", samples.Fleet()) }

// golden compares the files of a deployment with an archive.
func golden(t *testing.T, name string, d compose.Deployment) {
	t.Helper()
	files, err := compose.Files(d)
	if err != nil {
		t.Fatal(err)
	}
	archive := &txtar.Archive{}
	for _, f := range files {
		archive.Files = append(archive.Files, txtar.File{Name: f.Name, Data: f.Content})
	}
	path := "testdata/" + name + ".txtar"
	if *update {
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(txtar.Format(archive))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
