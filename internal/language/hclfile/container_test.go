package hclfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

func TestContainer_allArguments(t *testing.T) {
	c, problems := decodeConfig(t, `
secret "key" { env = "KEY" }
secret "cert" { file = "/run/secrets/cert" }
upstream "Git_Hub" {
  transport = "streamable"
  container {
    image    = "ghcr.io/github/github-mcp-server:v1"
    port     = 8082
    path     = "/mcp/x"
    command  = ["http", "--port=8082"]
    env      = { GREETING = "$$ $HOME $${HOME}", KEY = secret.key }
    reads    = ["cert"]
    user     = 1000
    internet = true
    health   = ["/bin/health"]
    memory   = "512MiB"
    cpus     = 0.3
    writable = ["/cache"]
    volume "data" {
      target    = "/data"
      host      = "./data"
      read_only = true
      size      = "2GiB"
    }
  }
}
upstream "small" {
  container {
    image = "small:1"
    port  = 9000
  }
}
`, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	big, small := c.Upstreams[0], c.Upstreams[1]
	want := &definition.Container{
		Image: "ghcr.io/github/github-mcp-server:v1", Port: 8082, Path: "/mcp/x", Command: []string{"http", "--port=8082"},
		Env: []grant.Variable{
			{Name: "GREETING", Value: grant.Value{Parts: []grant.Part{{Literal: "$$ $HOME ${HOME}"}}}},
			{Name: "KEY", Value: grant.Value{Parts: []grant.Part{{Secret: "key"}}}},
		},
		Reads: []string{"cert"}, User: 1000, Internet: true, Health: []string{"/bin/health"}, Memory: 512 << 20, CPU: 300, Writable: []string{"/cache"},
		Volumes: []definition.ContainerVolume{{Name: "data", Target: "/data", Host: "./data", ReadOnly: true, Size: 2 << 30, NameRange: big.Container.Volumes[0].NameRange}},
		Range:   big.Container.Range,
	}
	if diff := cmp.Diff(want, big.Container); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	reached := grant.HTTP{Name: "upstream.Git_Hub", Hosts: []string{"git-hub:8082"}, Methods: []string{"GET", "POST", "DELETE"}, PrivateNetworks: true}
	if diff := cmp.Diff(reached, big.Grant); diff != "" || big.URL != "http://git-hub:8082/mcp/x" || big.Transport != definition.UpstreamStreamable {
		t.Errorf("url %s, transport %q (-want +got)\n%s", big.URL, big.Transport, diff)
	}
	if diff := cmp.Diff(&definition.Container{Image: "small:1", Port: 9000, Path: "/mcp", Range: small.Container.Range}, small.Container); diff != "" || small.URL != "http://small:9000/mcp" {
		t.Errorf("%s (-want +got)\n%s", small.URL, diff)
	}
	if (big.Container.Range == diag.Range{}) || c.Upstreams[0].Command != nil {
		t.Error("the container has no range, or a command")
	}
}

func TestContainer_cpus(t *testing.T) {
	for written, want := range map[string]int{"0.001": 1, "0.1": 100, "2": 2000, "1.5": 1500, "1000": 1_000_000, "0": 0, "-1": 0, "0.0001": 0, "1000.5": 0, "1e300": 0} {
		c, problems := decodeConfig(t, "upstream \"x\" {\n  container {\n    image = \"x:1\"\n    port  = 9000\n    cpus  = "+written+"\n  }\n}\n", nil)
		if got := c.Upstreams[0].Container.CPU; got != want || problems.HasErrors() != (want == 0) {
			t.Errorf("%s: got %d, %v", written, got, problems)
		}
	}
}

// Each list has one item too many.
func TestContainer_maxItems(t *testing.T) {
	long := " = [" + strings.Repeat("\"/a\",", 65) + "]"
	for _, name := range []string{"command", "health", "writable", "reads"} {
		c, problems := decodeConfig(t, "upstream \"x\" {\n  container {\n    image = \"x:1\"\n    port  = 9000\n    "+name+long+"\n  }\n}\n", nil)
		got := c.Upstreams[0].Container
		if len(problems) != 1 || problems[0].Code != "too-large" || len(got.Command)+len(got.Health)+len(got.Writable)+len(got.Reads) > 0 {
			t.Errorf("%s: got %v", name, problems)
		}
	}
}
