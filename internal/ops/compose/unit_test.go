package compose_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/ops/compose/samples"
)

// Compares all lines except the first, which names the origin.
func TestUnit_matchesExample(t *testing.T) {
	shipped, err := os.ReadFile("../../../examples/systemd/mcpd.service")
	if err != nil {
		t.Fatal(err)
	}
	d := samples.Coding()
	d.State, d.Upstreams = true, nil
	d.Secrets, d.Reads = nil, nil
	_, want, _ := strings.Cut(string(shipped), "\n")
	_, got, _ := strings.Cut(samples.Written(t, d)["mcpd.service"], "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// systemd must know every setting of the unit.
func TestUnit_systemdAnalyze(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: systemd-analyze is not installed")
	}
	text := strings.ReplaceAll(samples.Written(t, samples.Rich())["mcpd.service"], "ExecStart=mcpd serve", "ExecStart=/bin/true serve")
	text = strings.ReplaceAll(text, "Type=notify-reload", "Type=notify") // newer than some versions of systemd
	path := filepath.Join(t.TempDir(), "mcpd.service")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

// unitVariable decodes a word of an Environment= line like systemd: it removes the
// quotes and C escapes, and one of two percent signs.
func unitVariable(t testing.TB, word string) string {
	t.Helper()
	text, err := strconv.Unquote(strings.ReplaceAll(word, "\t", `\t`))
	if err != nil {
		t.Fatalf("%q: %v", word, err)
	}
	if strings.Contains(strings.ReplaceAll(text, "%%", ""), "%") {
		t.Fatalf("%q has a specifier", word)
	}
	return strings.ReplaceAll(text, "%%", "%")
}

func TestUnit_variables(t *testing.T) {
	d := samples.Rich()
	var got []string
	for line := range strings.Lines(samples.Written(t, d)["mcpd.service"]) {
		if word, ok := strings.CutPrefix(line, "Environment="); ok {
			got = append(got, unitVariable(t, strings.TrimSuffix(word, "\n")))
		}
	}
	if diff := cmp.Diff([]string{d.Env[0].Name + "=" + d.Env[0].Value, "ODD=" + d.Env[1].Value}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
