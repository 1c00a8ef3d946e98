package compose_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/container"
	"github.com/mcpd/mcpd/internal/ops/compose"
	"github.com/mcpd/mcpd/internal/ops/compose/samples"
)

// Each row changes one part of the rich deployment.
func TestFiles_errors(t *testing.T) {
	for _, c := range []struct {
		change func(*compose.Deployment)
		want   string
	}{
		{func(d *compose.Deployment) { d.Name = "Desk" }, `name: "Desk" is not a DNS label: at most 63 lower-case letters, digits and -, starting with a letter`},
		{func(d *compose.Deployment) { d.Image = "desk\nRUN x" }, `image: "desk\nRUN x" is not an image name`},
		{func(d *compose.Deployment) { d.Image = "x@sha256:" + strings.Repeat("0", 64) }, "image: the image to build cannot have a digest"},
		{func(d *compose.Deployment) { d.Version = "v1 && id" }, `version: "v1 && id" is not a tag such as v1.2.3 or a commit`},
		{func(d *compose.Deployment) { d.Port = 80 }, "port: 80 is not between 1024 and 65535"},
		{func(d *compose.Deployment) { d.Replicas = -1 }, "replicas: -1 is not between 1 and 1000"},
		{func(d *compose.Deployment) { d.Replicas = 2 }, "replicas: several replicas need a state that they share: name a PostgreSQL database in a state block of mcpd.hcl, and run mcpd compose without --state"},
		{func(d *compose.Deployment) { d.Replicas, d.Database, d.State, d.Port = 3, true, false, 65534 }, "replicas: Compose publishes a port for each, but there are fewer than 3 ports from 65534"},
		{func(d *compose.Deployment) { d.Peers = 7443 }, "replicas: the port for their own requests, 7443, is not another one between 1024 and 65535, or they do not share a state"},
		{func(d *compose.Deployment) { d.Grace = 1500 * time.Millisecond }, "grace: 1.5s is not a number of seconds up to an hour"},
		{func(d *compose.Deployment) { d.Auth = false }, "listen: serving beyond loopback needs auth and tls blocks; to serve without them, use --insecure-listen"},
		{func(d *compose.Deployment) { d.Config = "/etc/mcpd.hcl" }, `config: "/etc/mcpd.hcl" is not relative to the directory of docker-compose.yml`},
		{func(d *compose.Deployment) { d.Config = "" }, `config: "" is not a clean path`},
		{func(d *compose.Deployment) { d.Tools = "a/../b" }, `tools: "a/../b" is not a clean path`},
		{func(d *compose.Deployment) { d.ConfigText = make([]byte, 512<<10+1) }, "config: the file is larger than 512 KiB, the limit for a ConfigMap"},
		{func(d *compose.Deployment) { d.LockText = make([]byte, 1<<20) }, "lock: mcpd.hcl and mcpd.lock together are larger than 1 MiB, the limit for a ConfigMap; exclude unused tools of upstreams, and run mcpd lock accept"},
		{func(d *compose.Deployment) { d.ToolFiles["../x"] = nil }, `tools: "../x" cannot be the path of a file in a ConfigMap`},
		{func(d *compose.Deployment) { d.ToolFiles["..x"] = nil }, `tools: "..x" cannot be the path of a file in a ConfigMap`},
		{func(d *compose.Deployment) { d.ToolFiles["logo.png/a/b"] = nil }, `tools: "logo.png" is a file, but also the directory of "logo.png/a/b"`},
		{func(d *compose.Deployment) { d.ToolFiles["x"] = make([]byte, 512<<10+1) }, `tools: "x" is larger than 512 KiB, the limit for a ConfigMap`},
		{func(d *compose.Deployment) { d.Memory = 1 }, "memory: the limit is not between 16 MiB and 1 PiB"},
		{func(d *compose.Deployment) { d.CPU = -1 }, "cpu: the limit is not between 0.001 and 1000 processors"},
		{func(d *compose.Deployment) { d.Env[0].Name = "A-B" }, `env "A-B": a name must be at most 128 letters, digits and _, and must not start with a digit`},
		{func(d *compose.Deployment) { d.Env[0].Name = "ODD" }, `env "ODD": duplicate variable`},
		{func(d *compose.Deployment) { d.Env[0].Value = "bell\a" }, `env "OTEL_EXPORTER_OTLP_ENDPOINT": a systemd unit cannot contain control characters except tabs and line ends`},
		{func(d *compose.Deployment) { d.Env[0].Secret = "crm_token" }, `env "OTEL_EXPORTER_OTLP_ENDPOINT": use either a value or a secret`},
		{func(d *compose.Deployment) { d.Env[2].Secret = "crm" }, `env "CRM_TOKEN": no secret "crm"`},
		{func(d *compose.Deployment) { d.Env[2].Secret = "github" }, `env "CRM_TOKEN": the secret "github" comes from a file, but Compose needs a variable; read it as a file, or take it from the environment`},
		{func(d *compose.Deployment) { d.Reads[0] = "gone" }, `reads: no secret "gone"`},
		{func(d *compose.Deployment) { d.Reads[0] = "github" }, `reads: the secret "github" is listed twice`},
		{func(d *compose.Deployment) { d.Reads[0] = "crm_token" }, `reads: the secret "crm_token" comes from the environment, but Compose needs a file for a read-only container; take it from a file`},
		{func(d *compose.Deployment) { d.Secrets[4].Name = "a/b" }, `secret "a/b": a name must be at most 63 letters, digits, _, - and dots, and must not start with - or .`},
		{func(d *compose.Deployment) { d.Secrets[4].Name = "github" }, `secret "github": duplicate name`},
		{func(d *compose.Deployment) { d.Secrets[4].File = "x" }, `secret "unused": use either environment or file`},
		{func(d *compose.Deployment) { d.Secrets[4].Environment = "A B" }, `secret "unused": environment: "A B" is not a variable name`},
		{func(d *compose.Deployment) { d.Secrets[4] = compose.Secret{Name: "s", File: "a\nb"} }, `secret "s": file: "a\nb" is not a clean path`},
		{func(d *compose.Deployment) { d.Upstreams[0].Name = "git.hub" }, `upstream "git.hub": its name must be a host name: at most 63 letters, digits, _ and -, starting with a letter and not ending in - or _`},
		{func(d *compose.Deployment) { d.Upstreams[0].Name = "MCPD" }, `upstream "MCPD": the name is reserved: it is the host name of mcpd`},
		{func(d *compose.Deployment) { d.Upstreams[1].Name = "git-hub" }, `upstream "git-hub": its host name, git-hub, is also that of "Git_Hub"`},
		{func(d *compose.Deployment) { d.Upstreams[1].Image = "Memory" }, `upstream "memory": image: "Memory" is not an image name`},
		{func(d *compose.Deployment) { d.Upstreams[1].Port = 0 }, `upstream "memory": port: 0 is not between 1024 and 65535`},
		{func(d *compose.Deployment) { d.Upstreams[1].Path = "/$x" }, `upstream "memory": path: "/$x" is not a URL path`},
		{func(d *compose.Deployment) { d.Upstreams[1].User = -1 }, `upstream "memory": user: the id is not between 1 and 1073741824; root is not allowed`},
		{func(d *compose.Deployment) { d.Upstreams[1].Health = []string{""} }, `upstream "memory": health: the program name is empty`},
		{func(d *compose.Deployment) { d.Upstreams[1].Command = []string{"\x00"} }, `upstream "memory": command: a text is not UTF-8, or has a zero byte`},
		{func(d *compose.Deployment) { d.Upstreams[1].Command = []string{"\xff"} }, `upstream "memory": command: a text is not UTF-8, or has a zero byte`},
		{func(d *compose.Deployment) {
			d.Upstreams[1].Command = []string{strings.Repeat("x", container.MaxText+1)}
		}, `upstream "memory": command: a text is longer than 8 KiB`},
		{func(d *compose.Deployment) { d.Upstreams[1].Command = make([]string, container.MaxItems+1) }, `upstream "memory": command: 65 items, at most 64 are allowed`},
		{func(d *compose.Deployment) { d.Upstreams[1].Env = []compose.Variable{{Name: "KEY", Secret: "none"}} }, `upstream "memory": env "KEY": no secret "none"`},
		{func(d *compose.Deployment) { d.Upstreams[1].Writable = []string{"/tmp"} }, `upstream "memory": writable: another mount is at "/tmp"`},
		{func(d *compose.Deployment) { d.Upstreams[1].Writable = []string{"/run"} }, `upstream "memory": writable: "/run" cannot be a mount path: use an absolute path of letters, digits and ._@+-, without . and .., outside of system directories`},
		{func(d *compose.Deployment) { d.Upstreams[1].Volumes[0].Target = "/proc/x" }, `upstream "memory": volume "shared": target: "/proc/x" cannot be a mount path: use an absolute path of letters, digits and ._@+-, without . and .., outside of system directories`},
		{func(d *compose.Deployment) { d.Upstreams[1].Volumes[0].Target = "/data/r" }, `upstream "memory": volume "repositories": target: another mount is at "/data/r"`},
		{func(d *compose.Deployment) { d.Upstreams[1].Volumes[0].Host = "/srv" }, `upstream "memory": volume "shared": another upstream sets a different host or size`},
		{func(d *compose.Deployment) { d.Upstreams[0].Volumes[0].Name = "Data" }, `upstream "Git_Hub": volume "Data": its name is not a DNS label: lower-case letters, digits and -`},
		{func(d *compose.Deployment) { d.Upstreams[0].Volumes[0].Name = "mcpd-state" }, `upstream "Git_Hub": volume "mcpd-state": the name is reserved: mcpd keeps its state there`},
		{func(d *compose.Deployment) { d.Upstreams = make([]compose.Upstream, compose.MaxUpstreams+1) }, "upstreams: 65 items, at most 64 are allowed"},
		{func(d *compose.Deployment) { d.Name = strings.Repeat("é", 1000) }, `name: "` + strings.Repeat("é", 40) + `…" is not a DNS label: at most 63 lower-case letters, digits and -, starting with a letter`},
	} {
		d := samples.Rich()
		c.change(&d)
		files, err := compose.Files(d)
		if files != nil || err == nil {
			t.Errorf("no error: %s", c.want)
			continue
		}
		if diff := cmp.Diff("write deployment: "+c.want, err.Error()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestFiles_allErrorsAtOnce(t *testing.T) {
	d := samples.Coding()
	d.Port, d.Upstreams[0].Port, d.Upstreams[1].Image = 1, 2, ""
	_, err := compose.Files(d)
	const want = "write deployment: port: 1 is not between 1024 and 65535\n" +
		"upstream \"search\": port: 2 is not between 1024 and 65535\n" +
		"upstream \"files\": image: \"\" is not an image name"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestFiles_errorsHideValues(t *testing.T) {
	d := samples.Coding()
	d.Upstreams[0].Env = []compose.Variable{{Name: "KEY", Value: "hunter2\x00"}}
	if _, err := compose.Files(d); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}
