// Package checks loads the files of package compose with the loader of Compose and the
// types of Kubernetes. It is a separate module, so that neither is in the module graph
// of mcpd and of programs that embed it.
package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/container"
	"github.com/mcpd/mcpd/internal/ops/compose"
	"github.com/mcpd/mcpd/internal/ops/compose/samples"
)

// environment is the environment of the user who starts the rich deployment.
var environment = map[string]string{"CRM_TOKEN": "to $ken", "SEARCH_API_KEY": "key", "HOME": "/home/ada", "PORT": "1", "x": "y"}

func projectOf(t testing.TB, d compose.Deployment) *types.Project {
	t.Helper()
	p, err := loaded(samples.Written(t, d)[composeFile], environment)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCompose_literalTexts(t *testing.T) {
	d := samples.Rich()
	p := projectOf(t, d)
	got := map[string]string{}
	for name, value := range p.Services["mcpd"].Environment {
		got[name] = *value
	}
	want := map[string]string{d.Env[0].Name: d.Env[0].Value, d.Env[1].Name: d.Env[1].Value, "CRM_TOKEN": environment["CRM_TOKEN"]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment of mcpd (-want +got)\n%s", diff)
	}
	upstream := p.Services["git-hub"]
	if diff := cmp.Diff(d.Upstreams[0].Command, []string(upstream.Command)); diff != "" {
		t.Errorf("command (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(append([]string{"CMD"}, d.Upstreams[0].Health...), []string(upstream.HealthCheck.Test)); diff != "" {
		t.Errorf("health check (-want +got)\n%s", diff)
	}
	sources := map[string]string{}
	for name, s := range p.Secrets {
		sources[name] = s.File + s.Environment
	}
	if diff := cmp.Diff(map[string]string{"tls_cert": "/deployment/secrets/cert.pem", "tls_key": "/etc/desk/key$.pem", "github": "/deployment/secrets/github"}, sources); diff != "" {
		t.Errorf("secrets (-want +got)\n%s", diff)
	}
	if got := p.Services["mcpd"].Volumes[1].Source; got != "/shared/$tools.d" {
		t.Errorf("tools directory %s", got)
	}
}

func TestLock_readOnlyBesideConfig(t *testing.T) {
	mounted := func(d compose.Deployment) (got []string) {
		for _, v := range projectOf(t, d).Services["mcpd"].Volumes {
			if v.Type == "bind" && v.ReadOnly && !bool(v.Bind.CreateHostPath) {
				got = append(got, v.Source+" "+v.Target)
			}
		}
		return got
	}
	d := samples.Rich()
	want := []string{"/deployment/conf/mcpd.hcl /etc/mcpd/config/mcpd.hcl", "/shared/$tools.d /etc/mcpd/tools.d", "/deployment/conf/mcpd.lock /etc/mcpd/config/mcpd.lock"}
	if diff := cmp.Diff(want, mounted(d)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	d.LockText = nil
	if diff := cmp.Diff(want[:2], mounted(d)); diff != "" {
		t.Errorf("without a lock (-want +got)\n%s", diff)
	}
}

func TestCompose_requiredSecrets(t *testing.T) {
	_, err := loaded(samples.Written(t, samples.Coding())[composeFile], nil)
	if err == nil || !strings.Contains(err.Error(), "SEARCH_API_KEY") {
		t.Errorf("no error, or one without the variable: %v", err)
	}
}

// confinedProject checks that no service has more privileges than it needs.
func confinedProject(t testing.TB, p *types.Project) {
	t.Helper()
	met := map[string][]string{}
	for name, s := range p.Services {
		for network := range s.Networks {
			met[network] = append(met[network], name)
		}
		switch {
		case !s.ReadOnly || s.Privileged || len(s.CapAdd) > 0:
			t.Errorf("%s has a writable file system or is privileged", name)
		case !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}):
			t.Errorf("%s may gain privileges", name)
		case s.User == "" || strings.HasPrefix(s.User, "0"):
			t.Errorf("%s runs as user %q", name, s.User)
		case s.Deploy.Resources.Limits.MemoryBytes < container.MinMemory || s.Deploy.Resources.Limits.NanoCPUs <= 0 || s.Deploy.Resources.Limits.Pids <= 0:
			t.Errorf("%s has no limits", name)
		case s.NetworkMode != "" || s.Pid != "" || s.Ipc != "":
			t.Errorf("%s shares a namespace", name)
		case name != "mcpd" && len(s.Ports)+len(s.Expose) > 0:
			t.Errorf("%s publishes ports", name)
		}
	}
	for network, services := range met {
		slices.Sort(services)
		if network == "front" && !slices.Equal(services, []string{"mcpd"}) ||
			network != "front" && (len(services) != 2 || !slices.Contains(services, "mcpd")) {
			t.Errorf("network %s has %v", network, services)
		}
	}
}

func TestCompose_serviceSecurity(t *testing.T) {
	confinedProject(t, projectOf(t, samples.Coding()))
	confinedProject(t, projectOf(t, samples.Rich()))
}

func TestCompose_anonymousOnLoopback(t *testing.T) {
	for want, d := range map[string]compose.Deployment{"127.0.0.1": samples.Coding(), "": samples.Rich()} {
		if ports := projectOf(t, d).Services["mcpd"].Ports; len(ports) != 1 || ports[0].HostIP != want {
			t.Errorf("%s: ports %v, want one of %q", d.Name, ports, want)
		}
	}
}

func TestCompose_replicas(t *testing.T) {
	d := samples.Fleet()
	for _, c := range []struct {
		volume bool
		want   string
	}{{false, "3 8080-8082"}, {true, "1 8080"}} {
		d.State = c.volume
		p := projectOf(t, d)
		confinedProject(t, p)
		s := p.Services["mcpd"]
		if got := fmt.Sprint(s.GetScale(), " ", s.Ports[0].Published); got != c.want || len(s.Ports) != 1 || s.Ports[0].Target != 8080 {
			t.Errorf("with a volume %t: got %s, want %s", c.volume, got, c.want)
		}
	}
}

func TestCompose_networks(t *testing.T) {
	d := samples.Rich()
	d.Upstreams[1].Internet = false
	inside := map[string]bool{}
	for name, n := range projectOf(t, d).Networks {
		inside[name] = n.Internal
	}
	if diff := cmp.Diff(map[string]bool{"front": false, "to-git-hub": false, "to-memory": true}, inside); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCompose_dependsOn(t *testing.T) {
	got := map[string]string{}
	for name, d := range projectOf(t, samples.Rich()).Services["mcpd"].DependsOn {
		got[name] = d.Condition
		if d.Required {
			t.Errorf("mcpd depends on %s", name)
		}
	}
	if diff := cmp.Diff(map[string]string{"git-hub": "service_healthy", "memory": "service_started"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestKubernetes_noUpstreams(t *testing.T) {
	d := samples.Coding()
	d.Upstreams = nil
	content := samples.Written(t, d)
	want := []string{"Dockerfile", composeFile, "kubernetes/1-namespace.yaml", "kubernetes/2-files.yaml", "kubernetes/4-mcpd.yaml", "mcpd.service"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(content))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if p := projectOf(t, d); len(p.Services) != 1 {
		t.Errorf("%d services", len(p.Services))
	}
}

func TestScratchSize_sameInBoth(t *testing.T) {
	d := samples.Rich()
	m, p := decoded(t, samples.Written(t, d)), projectOf(t, d)
	for name, service := range p.Services {
		pod := m.deployments[name].Spec.Template.Spec
		var want []string
		for i, mount := range pod.Containers[0].VolumeMounts {
			if empty := pod.Volumes[i].EmptyDir; empty != nil {
				want = append(want, fmt.Sprintf("%s:size=%dm", mount.MountPath, empty.SizeLimit.Value()>>20))
			}
		}
		if diff := cmp.Diff(want, []string(service.Tmpfs)); diff != "" || len(want) < 1 {
			t.Errorf("%s (-Kubernetes +Compose)\n%s", name, diff)
		}
	}
}
