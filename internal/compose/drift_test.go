package compose

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// disk is a folder as Drift reads it.
type disk map[string]string

func (d disk) read(name string) ([]byte, error) {
	text, ok := d[name]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return []byte(text), nil
}

func drift(t *testing.T, d Deployment, on disk) []string {
	t.Helper()
	files, err := Files(d)
	if err != nil {
		t.Fatal(err)
	}
	differences, err := Drift(files, on.read)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, one := range differences {
		told = append(told, one.String())
	}
	return told
}

func TestFilesThatWereJustWrittenDoNotDrift(t *testing.T) {
	if got := drift(t, rich(), writtenOf(t, rich())); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestDriftTellsWhatIsMissingChangedAndLeftBehind(t *testing.T) {
	on := disk(writtenOf(t, coding()))
	delete(on, dockerFile)
	on[composeFile] = on[composeFile][:70] + "X" + on[composeFile][70:]
	on[namespaceFile] += "# more\n"
	on[unitFile] = ""
	d := coding()
	d.Upstreams = nil
	d.Secrets = nil
	on["kubernetes/9-mine.yaml"] = "nobody asks for it"
	on[serverFile], on[namespaceFile] = writtenOf(t, d)[serverFile], writtenOf(t, d)[namespaceFile]+"# more\n"
	want := []string{"docker-compose.yml:1: changed", "Dockerfile: missing", "kubernetes/1-namespace.yaml:25: changed", "kubernetes/3-upstreams.yaml: stale", "mcpd.service:1: changed"}
	if diff := cmp.Diff(want, drift(t, d, on)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestALockThatAppearsIsDrift(t *testing.T) {
	d := coding()
	on := disk(writtenOf(t, d))
	d.LockText = []byte("mcpd.lock 1\n")
	want := []string{"docker-compose.yml:62: changed", "kubernetes/2-files.yaml:12: changed", "mcpd.service:11: changed"}
	if diff := cmp.Diff(want, drift(t, d, on)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestADiskThatCannotBeReadIsNoDrift(t *testing.T) {
	broken := errors.New("input/output error")
	differences, err := Drift(nil, func(string) ([]byte, error) { return nil, broken })
	if differences != nil || !errors.Is(err, broken) || err.Error() != "read docker-compose.yml: input/output error" {
		t.Errorf("got %v, %v", differences, err)
	}
}

func TestAFileSaysInItsFirstLineThatItWasWritten(t *testing.T) {
	for name, content := range writtenOf(t, rich()) {
		if !Written([]byte(content)) {
			t.Errorf("%s does not say so", name)
		}
		_, rest, _ := strings.Cut(content, "\n")
		if Written([]byte(rest)) {
			t.Errorf("%s without its first line does", name)
		}
	}
}
