package compose

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestDockerfile_goVersion(t *testing.T) {
	module, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	if line == nil || string(line[1]) != goVersion {
		t.Errorf("go.mod has %s, the Dockerfile %s", line, goVersion)
	}
	if name, _, _ := bytes.Cut(module, []byte("\n")); !strings.HasPrefix(program, strings.TrimPrefix(string(name), "module ")+"/") {
		t.Errorf("%s does not match %s", program, name)
	}
}
