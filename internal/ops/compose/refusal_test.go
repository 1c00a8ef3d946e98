package compose_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/container"
	"github.com/mcpd/mcpd/internal/ops/compose"
	"github.com/mcpd/mcpd/internal/ops/compose/samples"
)

// TestFiles_errors changes the rich deployment by one thing.
func TestFiles_errors(t *testing.T) {
	for _, c := range []struct {
		change func(*compose.Deployment)
		want   string
	}{
		{func(d *compose.Deployment) { d.Name = "Desk" }, `name: "Desk" is no DNS label: lower-case letters, digits and -, 63 of them at most, of which the first is a letter`},
		{func(d *compose.Deployment) { d.Image = "desk\nRUN x" }, `image: "desk\nRUN x" is no name of an image`},
		{func(d *compose.Deployment) { d.Image = "x@sha256:" + strings.Repeat("0", 64) }, "image: one that is built has no digest before"},
		{func(d *compose.Deployment) { d.Version = "v1 && id" }, `version: "v1 && id" is neither a tag like v1.2.3 nor a commit`},
		{func(d *compose.Deployment) { d.Port = 80 }, "port: 80 is not between 1024 and 65535"},
		{func(d *compose.Deployment) { d.Auth = false }, "listen: mcpd does not serve beyond loopback without auth and tls blocks, unless it is told to (--insecure-listen)"},
		{func(d *compose.Deployment) { d.Config = "/etc/mcpd.hcl" }, `config: "/etc/mcpd.hcl" is not relative to the folder of docker-compose.yml`},
		{func(d *compose.Deployment) { d.Config = "" }, `config: "" is no path in its shortest form`},
		{func(d *compose.Deployment) { d.Tools = "a/../b" }, `tools: "a/../b" is no path in its shortest form`},
		{func(d *compose.Deployment) { d.ConfigText = make([]byte, 512<<10+1) }, "config: it is larger than 512 KiB, which a ConfigMap may hold"},
		{func(d *compose.Deployment) { d.LockText = make([]byte, 1<<20) }, "lock: mcpd.hcl and mcpd.lock together are larger than 1 MiB, which a ConfigMap may hold; exclude tools of upstreams that nobody needs, and have mcpd lock accept take them out"},
		{func(d *compose.Deployment) { d.ToolFiles["../x"] = nil }, `tools: "../x" cannot be the path of a file in a ConfigMap`},
		{func(d *compose.Deployment) { d.ToolFiles["..x"] = nil }, `tools: "..x" cannot be the path of a file in a ConfigMap`},
		{func(d *compose.Deployment) { d.ToolFiles["logo.png/a/b"] = nil }, `tools: "logo.png" is a file, and "logo.png/a/b" stands in it`},
		{func(d *compose.Deployment) { d.ToolFiles["x"] = make([]byte, 512<<10+1) }, `tools: "x" is larger than 512 KiB, which a ConfigMap may hold`},
		{func(d *compose.Deployment) { d.Memory = 1 }, "memory: it is not between 16 MiB and 1 PiB"},
		{func(d *compose.Deployment) { d.CPU = -1 }, "cpu: it is not between a thousandth of a processor and 1000"},
		{func(d *compose.Deployment) { d.Env[0].Name = "A-B" }, `env "A-B": a name has letters, digits and _, 128 of them at most, and begins with no digit`},
		{func(d *compose.Deployment) { d.Env[0].Name = "ODD" }, `env "ODD": it is set twice`},
		{func(d *compose.Deployment) { d.Env[0].Value = "bell\a" }, `env "OTEL_EXPORTER_OTLP_ENDPOINT": a unit of systemd holds no control characters but tabs and line ends`},
		{func(d *compose.Deployment) { d.Env[0].Secret = "crm_token" }, `env "OTEL_EXPORTER_OTLP_ENDPOINT": it has a value or a secret, and not both`},
		{func(d *compose.Deployment) { d.Env[2].Secret = "crm" }, `env "CRM_TOKEN": there is no secret "crm"`},
		{func(d *compose.Deployment) { d.Env[2].Secret = "github" }, `env "CRM_TOKEN": the secret "github" comes from a file, which Compose puts into no variable; read it as a file, or take it from the environment`},
		{func(d *compose.Deployment) { d.Reads[0] = "gone" }, `reads: there is no secret "gone"`},
		{func(d *compose.Deployment) { d.Reads[0] = "github" }, `reads: the secret "github" stands there twice`},
		{func(d *compose.Deployment) { d.Reads[0] = "crm_token" }, `reads: the secret "crm_token" comes from the environment, of which Compose makes no file in a container that cannot be written; take it from a file`},
		{func(d *compose.Deployment) { d.Secrets[4].Name = "a/b" }, `secret "a/b": a name has letters, digits, _, - and dots, 63 of them at most, and begins with none of - and .`},
		{func(d *compose.Deployment) { d.Secrets[4].Name = "github" }, `secret "github": there is another one of the name`},
		{func(d *compose.Deployment) { d.Secrets[4].File = "x" }, `secret "unused": it comes from an environment or from a file: one of them`},
		{func(d *compose.Deployment) { d.Secrets[4].Environment = "A B" }, `secret "unused": environment: "A B" is no name of a variable`},
		{func(d *compose.Deployment) { d.Secrets[4] = compose.Secret{Name: "s", File: "a\nb"} }, `secret "s": file: "a\nb" is no path in its shortest form`},
		{func(d *compose.Deployment) { d.Upstreams[0].Name = "git.hub" }, `upstream "git.hub": its name makes no host name: letters, digits, _ and -, 63 of them at most, of which the first is a letter and the last no - or _`},
		{func(d *compose.Deployment) { d.Upstreams[0].Name = "MCPD" }, `upstream "MCPD": it cannot be called so: it is the host name of mcpd`},
		{func(d *compose.Deployment) { d.Upstreams[1].Name = "git-hub" }, `upstream "git-hub": its host name, git-hub, is that of "Git_Hub" too`},
		{func(d *compose.Deployment) { d.Upstreams[1].Image = "Memory" }, `upstream "memory": image: "Memory" is no name of an image`},
		{func(d *compose.Deployment) { d.Upstreams[1].Port = 0 }, `upstream "memory": port: 0 is not between 1024 and 65535`},
		{func(d *compose.Deployment) { d.Upstreams[1].Path = "/$x" }, `upstream "memory": path: "/$x" is no path of a URL`},
		{func(d *compose.Deployment) { d.Upstreams[1].User = -1 }, `upstream "memory": user: it is not between 1 and 1073741824; 0, the user root, cannot be`},
		{func(d *compose.Deployment) { d.Upstreams[1].Health = []string{""} }, `upstream "memory": health: the program has no name`},
		{func(d *compose.Deployment) { d.Upstreams[1].Command = []string{"\x00"} }, `upstream "memory": command: a text is not UTF-8, or has a zero byte`},
		{func(d *compose.Deployment) { d.Upstreams[1].Command = []string{"\xff"} }, `upstream "memory": command: a text is not UTF-8, or has a zero byte`},
		{func(d *compose.Deployment) {
			d.Upstreams[1].Command = []string{strings.Repeat("x", container.MaxText+1)}
		}, `upstream "memory": command: a text is longer than 8 KiB`},
		{func(d *compose.Deployment) { d.Upstreams[1].Command = make([]string, container.MaxItems+1) }, `upstream "memory": command: there are 65, and 64 at most can be`},
		{func(d *compose.Deployment) { d.Upstreams[1].Env = []compose.Variable{{Name: "KEY", Secret: "none"}} }, `upstream "memory": env "KEY": there is no secret "none"`},
		{func(d *compose.Deployment) { d.Upstreams[1].Writable = []string{"/tmp"} }, `upstream "memory": writable: something else stands at "/tmp"`},
		{func(d *compose.Deployment) { d.Upstreams[1].Writable = []string{"/run"} }, `upstream "memory": writable: "/run" is no folder that can be mounted: an absolute path without . and .., of letters, digits and ._@+-, not of the system`},
		{func(d *compose.Deployment) { d.Upstreams[1].Volumes[0].Target = "/proc/x" }, `upstream "memory": volume "shared": target: "/proc/x" is no folder that can be mounted: an absolute path without . and .., of letters, digits and ._@+-, not of the system`},
		{func(d *compose.Deployment) { d.Upstreams[1].Volumes[0].Target = "/data/r" }, `upstream "memory": volume "repositories": target: something else stands at "/data/r"`},
		{func(d *compose.Deployment) { d.Upstreams[1].Volumes[0].Host = "/srv" }, `upstream "memory": volume "shared": another upstream says otherwise of its host or its size`},
		{func(d *compose.Deployment) { d.Upstreams[0].Volumes[0].Name = "Data" }, `upstream "Git_Hub": volume "Data": its name is no DNS label: lower-case letters, digits and -`},
		{func(d *compose.Deployment) { d.Upstreams[0].Volumes[0].Name = "mcpd-state" }, `upstream "Git_Hub": volume "mcpd-state": it cannot be called so: mcpd keeps its state there`},
		{func(d *compose.Deployment) { d.Upstreams = make([]compose.Upstream, compose.MaxUpstreams+1) }, "upstreams: there are 65, and 64 at most can be"},
		{func(d *compose.Deployment) { d.Name = strings.Repeat("é", 1000) }, `name: "` + strings.Repeat("é", 40) + `…" is no DNS label: lower-case letters, digits and -, 63 of them at most, of which the first is a letter`},
	} {
		d := samples.Rich()
		c.change(&d)
		files, err := compose.Files(d)
		if files != nil || err == nil {
			t.Errorf("it is not refused: %s", c.want)
			continue
		}
		if diff := cmp.Diff("write the deployment: "+c.want, err.Error()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestFiles_allErrorsAtOnce(t *testing.T) {
	d := samples.Coding()
	d.Port, d.Upstreams[0].Port, d.Upstreams[1].Image = 1, 2, ""
	_, err := compose.Files(d)
	const want = "write the deployment: port: 1 is not between 1024 and 65535\n" +
		"upstream \"search\": port: 2 is not between 1024 and 65535\n" +
		"upstream \"files\": image: \"\" is no name of an image"
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
