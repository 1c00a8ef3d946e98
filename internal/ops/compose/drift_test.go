package compose_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/ops/compose"
	"github.com/mcpd/mcpd/internal/ops/compose/samples"
)

// disk is a directory for Drift.
type disk map[string]string

func (d disk) read(name string) ([]byte, error) {
	text, ok := d[name]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return []byte(text), nil
}

func drift(t *testing.T, d compose.Deployment, on disk) []string {
	t.Helper()
	files, err := compose.Files(d)
	if err != nil {
		t.Fatal(err)
	}
	differences, err := compose.Drift(files, on.read)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, one := range differences {
		told = append(told, one.String())
	}
	return told
}

func TestDrift_none(t *testing.T) {
	if got := drift(t, samples.Rich(), samples.Written(t, samples.Rich())); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestDrift_kinds(t *testing.T) {
	on := disk(samples.Written(t, samples.Coding()))
	delete(on, "Dockerfile")
	on["docker-compose.yml"] = on["docker-compose.yml"][:70] + "X" + on["docker-compose.yml"][70:]
	on["kubernetes/1-namespace.yaml"] += "# more\n"
	on["mcpd.service"] = ""
	d := samples.Coding()
	d.Upstreams = nil
	d.Secrets = nil
	on["kubernetes/9-mine.yaml"] = "nobody asks for it"
	on["kubernetes/4-mcpd.yaml"], on["kubernetes/1-namespace.yaml"] = samples.Written(t, d)["kubernetes/4-mcpd.yaml"], samples.Written(t, d)["kubernetes/1-namespace.yaml"]+"# more\n"
	want := []string{"docker-compose.yml:1: changed", "Dockerfile: missing", "kubernetes/1-namespace.yaml:25: changed", "kubernetes/3-upstreams.yaml: stale", "mcpd.service:1: changed"}
	if diff := cmp.Diff(want, drift(t, d, on)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDrift_chart(t *testing.T) {
	d := samples.Fleet()
	on := disk(samples.Written(t, d))
	if got := drift(t, d, on); got != nil {
		t.Errorf("got %v", got)
	}
	d.Helm = false
	on["helm/Chart.yaml"] = "name: mine\n"
	want := []string{"helm/values.yaml: stale", "helm/templates/1-namespace.yaml: stale", "helm/templates/2-files.yaml: stale", "helm/templates/3-upstreams.yaml: stale", "helm/templates/4-mcpd.yaml: stale"}
	if diff := cmp.Diff(want, drift(t, d, on)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDrift_newLock(t *testing.T) {
	d := samples.Coding()
	on := disk(samples.Written(t, d))
	d.LockText = []byte("mcpd.lock 1\n")
	want := []string{"docker-compose.yml:62: changed", "kubernetes/2-files.yaml:12: changed", "mcpd.service:11: changed"}
	if diff := cmp.Diff(want, drift(t, d, on)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDrift_readError(t *testing.T) {
	broken := errors.New("input/output error")
	differences, err := compose.Drift(nil, func(string) ([]byte, error) { return nil, broken })
	if differences != nil || !errors.Is(err, broken) || err.Error() != "read docker-compose.yml: input/output error" {
		t.Errorf("got %v, %v", differences, err)
	}
}

func TestWritten(t *testing.T) {
	for name, content := range samples.Written(t, samples.Rich()) {
		if !compose.Written([]byte(content)) {
			t.Errorf("%s is not recognized", name)
		}
		_, rest, _ := strings.Cut(content, "\n")
		if compose.Written([]byte(rest)) {
			t.Errorf("%s without its first line is recognized", name)
		}
	}
}
