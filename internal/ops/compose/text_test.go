package compose_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcpd/mcpd/internal/ops/compose"
	"github.com/mcpd/mcpd/internal/ops/compose/samples"
)

func TestFiles_deterministic(t *testing.T) {
	d := samples.Rich()
	for i := range 300 {
		d.ToolFiles[fmt.Sprint("file", i*7%300)] = []byte{byte(i)}
	}
	first := samples.Written(t, d)
	for range 20 {
		again := d
		again.ToolFiles = maps.Clone(d.ToolFiles)
		if diff := cmp.Diff(first, samples.Written(t, again)); diff != "" {
			t.Fatalf("(-first +again)\n%s", diff)
		}
	}
}

func TestFiles_keepDeployment(t *testing.T) {
	d := samples.Rich()
	samples.Written(t, d)
	if diff := cmp.Diff(samples.Rich(), d); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}

func TestSecretCommand(t *testing.T) {
	d := samples.Rich()
	d.Secrets[1].File = "./se crets/it's"
	want := `
#   kubectl apply --server-side -f kubernetes/1-namespace.yaml
#   kubectl -n desk create secret generic secrets \
#     --from-literal=crm_token="$CRM_TOKEN" \
#     --from-file=tls_cert='./se crets/it'\''s' \
#     --from-file=tls_key='/etc/desk/key$.pem' \
#     --from-file=github=secrets/github
apiVersion`
	if got := samples.Written(t, d)["kubernetes/1-namespace.yaml"]; !strings.Contains(got, want) {
		t.Errorf("got %.800s", got)
	}
}

func TestVolumes_ownershipNote(t *testing.T) {
	d := samples.Rich()
	const command = "chown -R 1000:1000 /volume\n"
	if got := samples.Written(t, d)["docker-compose.yml"]; strings.Count(got, "chown") != 1 || !strings.Contains(got, "desk_repositories:/volume busybox:1.37 "+command) {
		t.Errorf("got %s", got)
	}
	d.Upstreams[0].Volumes[0].ReadOnly = true
	if got := samples.Written(t, d)["docker-compose.yml"]; strings.Contains(got, "chown") {
		t.Errorf("without a writable volume: %s", got)
	}
}

func TestCompose_headListsVariables(t *testing.T) {
	d := samples.Rich()
	d.Upstreams[1].Env = []compose.Variable{{Name: "TOKEN", Secret: "again"}}
	d.Secrets = append(d.Secrets, compose.Secret{Name: "again", Environment: "CRM_TOKEN"})
	if got := samples.Written(t, d)["docker-compose.yml"]; strings.Count(got, "\n# Variables: CRM_TOKEN.\n") != 1 {
		t.Errorf("got %.400s", got)
	}
}

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

func TestDockerfile_goVersion(t *testing.T) {
	text, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	module := regexp.MustCompile(`(?s)^module (\S+)\n.*\ngo (\d+\.\d+)`).FindSubmatch(text)
	if module == nil {
		t.Fatalf("go.mod has no module or no version of Go:\n%s", text)
	}
	recipe := samples.Written(t, samples.Coding())["Dockerfile"]
	for _, want := range []string{fmt.Sprintf("FROM golang:%s-", module[2]), fmt.Sprintf(" %s/cmd/mcpd@", module[1])} {
		if !strings.Contains(recipe, want) {
			t.Errorf("the Dockerfile has no %q:\n%s", want, recipe)
		}
	}
}
