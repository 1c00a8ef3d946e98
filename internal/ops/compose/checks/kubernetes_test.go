package checks

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mcpd/mcpd/internal/language/container"
	"github.com/mcpd/mcpd/internal/ops/compose"
	"github.com/mcpd/mcpd/internal/ops/compose/samples"
)

// expanded returns the value that Kubernetes derives from an argument or a variable
// without other variables: $$ becomes $, and $(NAME) stays.
func expanded(text string) string { return strings.ReplaceAll(text, "$$", "$") }

// references reports whether Kubernetes expands variables in a text.
func references(text string) bool {
	return strings.Contains(strings.ReplaceAll(text, "$$", ""), "$(")
}

func TestKubernetes_literalTexts(t *testing.T) {
	d := samples.Rich()
	m := decoded(t, samples.Written(t, d))
	c := m.deployments["git-hub"].Spec.Template.Spec.Containers[0]
	for i, want := range d.Upstreams[0].Command {
		if got := c.Args[i]; references(got) || expanded(got) != want {
			t.Errorf("argument %q, got %q", want, got)
		}
	}
	if diff := cmp.Diff(d.Upstreams[0].Health, c.ReadinessProbe.Exec.Command); diff != "" {
		t.Errorf("probe, not expanded (-want +got)\n%s", diff)
	}
	if got := m.pods()["mcpd"].Containers[0].Env[1].Value; references(got) || expanded(got) != d.Env[1].Value {
		t.Errorf("variable %q", got)
	}
}

// mountedFiles returns the files of a pod in a directory.
func (m manifests) mountedFiles(t testing.TB, pod corev1.PodSpec, folder string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	put := func(name string, items []corev1.KeyToPath) {
		configMap, ok := m.configMaps[name]
		if !ok {
			t.Fatalf("no ConfigMap %s", name)
		}
		all := map[string][]byte{}
		for key, text := range configMap.Data {
			all[key] = []byte(text)
		}
		maps.Copy(all, configMap.BinaryData)
		for key := range all {
			if problems := validation.IsConfigMapKey(key); problems != nil {
				t.Errorf("key %q: %v", key, problems)
			}
			if items == nil {
				files[key] = all[key]
			}
		}
		for _, item := range items {
			text, ok := all[item.Key]
			if _, twice := files[item.Path]; !ok || twice {
				t.Errorf("%s: missing key %s, or duplicate path %s", name, item.Key, item.Path)
			}
			files[item.Path] = text
		}
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		for _, volume := range pod.Volumes {
			switch {
			case mount.MountPath != folder || volume.Name != mount.Name:
			case volume.ConfigMap != nil:
				put(volume.ConfigMap.Name, volume.ConfigMap.Items)
			default:
				for _, source := range volume.Projected.Sources {
					put(source.ConfigMap.Name, source.ConfigMap.Items)
				}
			}
		}
	}
	return files
}

func TestKubernetes_filePaths(t *testing.T) {
	d := samples.Rich()
	m := decoded(t, samples.Written(t, d))
	pod := m.pods()["mcpd"]
	if diff := cmp.Diff(d.ToolFiles, m.mountedFiles(t, pod, toolsFolder)); diff != "" {
		t.Errorf("tools (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]byte{"mcpd.hcl": d.ConfigText, "mcpd.lock": d.LockText}, m.mountedFiles(t, pod, configFolder)); diff != "" {
		t.Errorf("configuration (-want +got)\n%s", diff)
	}
}

func TestKubernetes_splitConfigMaps(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: single goroutine")
	}
	d := samples.Coding()
	d.ToolFiles = map[string][]byte{"a/b": bytes.Repeat([]byte("x"), maxConfigMap-1), "a_b": []byte("y"), "c": bytes.Repeat([]byte("z"), maxConfigMap)}
	m := decoded(t, samples.Written(t, d))
	if len(m.configMaps) != 4 {
		t.Errorf("%d ConfigMaps, want config, tools, tools-2 and tools-3", len(m.configMaps))
	}
	if diff := cmp.Diff(d.ToolFiles, m.mountedFiles(t, m.pods()["mcpd"], toolsFolder)); diff != "" {
		t.Error("the files differ")
	}
}

func TestKubernetes_configMapKeys(t *testing.T) {
	long := strings.Repeat("x", maxKey-2)
	d := samples.Coding()
	d.ToolFiles = map[string][]byte{"a/b": {1}, "a_b": {2}, "a b": {3}, "a_b_2": {4}, long + "é": {5}, long + "/x": {6}, long + "_x": {7}}
	for i := range 5000 {
		d.ToolFiles[string(rune(0x4e00+i))] = []byte("many of one key")
	}
	m := decoded(t, samples.Written(t, d))
	if diff := cmp.Diff(d.ToolFiles, m.mountedFiles(t, m.pods()["mcpd"], toolsFolder)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestKubernetes_secretsPerPod(t *testing.T) {
	m := decoded(t, samples.Written(t, samples.Rich()))
	got := map[string][]string{}
	for name, deployment := range m.deployments {
		for _, volume := range deployment.Spec.Template.Spec.Volumes {
			if volume.Secret != nil {
				for _, item := range volume.Secret.Items {
					got[name] = append(got[name], item.Path)
				}
			}
		}
		for _, variable := range deployment.Spec.Template.Spec.Containers[0].Env {
			if variable.ValueFrom != nil {
				got[name] = append(got[name], variable.Name+"="+variable.ValueFrom.SecretKeyRef.Key)
			}
		}
	}
	want := map[string][]string{"mcpd": {"tls_cert", "tls_key", "github", "CRM_TOKEN=crm_token"}, "git-hub": {"github"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// confinedPods checks that pods comply with the restricted Kubernetes standard, and
// that only permitted pods reach them.
func confinedPods(t testing.TB, m manifests) {
	t.Helper()
	for name, pod := range m.pods() {
		if len(pod.Containers) != 1 || len(pod.InitContainers) > 0 {
			t.Fatalf("%s does not have exactly one container", name)
		}
		c := pod.Containers[0]
		switch {
		case len(validation.IsDNS1035Label(name)) > 0 || c.Name != name:
			t.Errorf("%s is not a service name, or its container is named %s", name, c.Name)
		case !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 || *pod.SecurityContext.RunAsGroup == 0:
			t.Errorf("%s may run as root", name)
		case pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || pod.HostNetwork || pod.HostPID || pod.HostIPC:
			t.Errorf("%s is not isolated from its node", name)
		case *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks:
			t.Errorf("%s has access to the Kubernetes API", name)
		case *c.SecurityContext.AllowPrivilegeEscalation || !*c.SecurityContext.ReadOnlyRootFilesystem || !slices.Equal(c.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}):
			t.Errorf("%s may gain privileges or has a writable file system", name)
		case c.Resources.Limits.Memory().Value() < container.MinMemory || c.Resources.Limits.Cpu().IsZero() || c.Resources.Requests.Memory().Cmp(*c.Resources.Limits.Memory()) > 0 || c.Resources.Requests.Cpu().Cmp(*c.Resources.Limits.Cpu()) > 0:
			t.Errorf("%s has no limits, or requests above its limits", name)
		case c.ReadinessProbe == nil || c.StartupProbe == nil:
			t.Errorf("%s has no probe", name)
		}
		mounts := map[string]bool{}
		for _, mount := range c.VolumeMounts {
			if mounts[mount.MountPath] {
				t.Errorf("%s has two volumes at %s", name, mount.MountPath)
			}
			mounts[mount.MountPath] = true
		}
		for _, volume := range pod.Volumes {
			if claim := volume.PersistentVolumeClaim; volume.HostPath != nil || claim != nil && m.claims[claim.ClaimName].Name == "" {
				t.Errorf("%s has a host volume, or one without a claim", name)
			}
		}
		if service := m.services[name]; service.Spec.Selector[nameLabel] != name || service.Spec.Type != "" {
			t.Errorf("%s has no ClusterIP service", name)
		}
		policy := m.policies["to-"+name]
		if policy.Spec.PodSelector.MatchLabels[nameLabel] != name || len(policy.Spec.PolicyTypes) != 2 {
			t.Fatalf("%s has no NetworkPolicy", name)
		}
		if name != "mcpd" && (len(policy.Spec.Ingress) != 1 || len(policy.Spec.Ingress[0].From) != 1 || policy.Spec.Ingress[0].From[0].PodSelector.MatchLabels[nameLabel] != "mcpd") {
			t.Errorf("others than mcpd reach %s", name)
		}
	}
	if nobody := m.policies["nobody"].Spec; len(nobody.PodSelector.MatchLabels) > 0 || len(nobody.PolicyTypes) != 2 || len(nobody.Ingress)+len(nobody.Egress) > 0 {
		t.Error("the default NetworkPolicy is not deny")
	}
}

func TestKubernetes_podSecurity(t *testing.T) {
	confinedPods(t, decoded(t, samples.Written(t, samples.Coding())))
	confinedPods(t, decoded(t, samples.Written(t, samples.Rich())))
	confinedPods(t, decoded(t, samples.Written(t, samples.Fleet())))
	d := samples.Fleet()
	d.State = true
	confinedPods(t, decoded(t, samples.Written(t, d)))
}

func TestKubernetes_egress(t *testing.T) {
	m := decoded(t, samples.Written(t, samples.Coding()))
	if got := m.policies["to-files"].Spec.Egress; got != nil {
		t.Errorf("files has egress to %v", got)
	}
	var blocks []string
	for _, rule := range m.policies["to-search"].Spec.Egress {
		for _, to := range rule.To {
			if to.IPBlock != nil {
				blocks = append(blocks, to.IPBlock.CIDR)
			} else if len(rule.Ports) != 2 || rule.Ports[0].Port.IntValue() != 53 || rule.Ports[1].Port.IntValue() != 53 {
				t.Errorf("search has egress to pods on %v", rule.Ports)
			}
		}
	}
	if !slices.Equal(blocks, []string{"0.0.0.0/0", "::/0"}) {
		t.Errorf("search has egress to %v", blocks)
	}
}

func TestKubernetes_probeHost(t *testing.T) {
	for _, d := range []compose.Deployment{samples.Coding(), samples.Rich()} {
		c := decoded(t, samples.Written(t, d)).deployments["mcpd"].Spec.Template.Spec.Containers[0]
		want := map[bool]corev1.URIScheme{true: corev1.URISchemeHTTPS}[d.TLS]
		for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			get := probe.HTTPGet
			if get.Path != path || get.Scheme != want || len(get.HTTPHeaders) != 1 || get.HTTPHeaders[0].Name != "Host" || !strings.HasPrefix(get.HTTPHeaders[0].Value, "localhost:80") {
				t.Errorf("%s: probe of %s is %v", d.Name, path, get)
			}
		}
	}
}

func TestKubernetes_replicas(t *testing.T) {
	m := decoded(t, samples.Written(t, samples.Fleet()))
	spec := m.deployments["mcpd"].Spec
	update, pod := spec.Strategy.RollingUpdate, spec.Template.Spec
	if *spec.Replicas != 3 || update.MaxUnavailable.IntValue() != 0 || update.MaxSurge.IntValue() != 1 {
		t.Errorf("got %d replicas, %v", *spec.Replicas, update)
	}
	if budget := m.budgets["mcpd"].Spec; budget.MaxUnavailable.IntValue() != 1 || budget.Selector.MatchLabels[nameLabel] != "mcpd" {
		t.Errorf("disruption budget %v", budget)
	}
	var domains []string
	for _, c := range pod.TopologySpreadConstraints {
		domains = append(domains, c.TopologyKey)
		if c.MaxSkew != 1 || c.WhenUnsatisfiable != corev1.ScheduleAnyway || c.LabelSelector.MatchLabels[nameLabel] != "mcpd" {
			t.Errorf("spread %v", c)
		}
	}
	if diff := cmp.Diff([]string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"}, domains); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// The pod is killed only after the sleep, --grace of 90 s and some time to spare.
	if sleep := pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds; sleep < 5 || *pod.TerminationGracePeriodSeconds < sleep+90+5 {
		t.Errorf("sleeps %d s of %d s", sleep, *pod.TerminationGracePeriodSeconds)
	}
	if args := strings.Join(pod.Containers[0].Args, " "); strings.Contains(args, "--state") || !strings.Contains(args, " --grace 1m30s") {
		t.Errorf("--state would win over the state block: %s", args)
	}
	if got := m.services["mcpd"].Spec.SessionAffinity; got != corev1.ServiceAffinityClientIP {
		t.Errorf("session affinity %q", got)
	}
	if len(m.sets) > 0 || m.claims["mcpd-state"].Name != "" {
		t.Error("without files of its own, a replica has a volume")
	}
}

func TestKubernetes_replicasForward(t *testing.T) {
	d := samples.Fleet()
	d.Peers = 7443
	content := samples.Written(t, d)
	m := decoded(t, content)
	sameChart(t, content, m)
	if got := m.services["mcpd"].Spec; got.SessionAffinity != "" || len(got.Ports) != 1 {
		t.Errorf("service %v", got)
	}
	if ports := m.pods()["mcpd"].Containers[0].Ports; len(ports) != 2 || ports[1].Name != "peers" || ports[1].ContainerPort != 7443 {
		t.Errorf("ports %v", ports)
	}
	rules := m.policies["to-mcpd"].Spec.Ingress
	if len(rules) != 2 || len(rules[0].From) > 0 || rules[0].Ports[0].Port.StrVal != "http" || rules[1].Ports[0].Port.StrVal != "peers" ||
		len(rules[1].From) != 1 || rules[1].From[0].NamespaceSelector != nil || rules[1].From[0].PodSelector.MatchLabels[nameLabel] != "mcpd" {
		t.Errorf("ingress %v", rules)
	}
}

func TestKubernetes_volumePerReplica(t *testing.T) {
	d := samples.Fleet()
	d.State = true
	for _, d.Replicas = range []int{1, 3} {
		m := decoded(t, samples.Written(t, d))
		spec := m.sets["mcpd"].Spec
		if *spec.Replicas != int32(d.Replicas) || spec.PodManagementPolicy != appsv1.ParallelPodManagement || m.deployments["mcpd"].Name != "" || m.claims["mcpd-state"].Name != "" {
			t.Errorf("with %d replicas: %v", d.Replicas, spec)
		}
		claim, mounted := spec.VolumeClaimTemplates[0], ""
		for _, mount := range spec.Template.Spec.Containers[0].VolumeMounts {
			if mount.Name == claim.Name {
				mounted = mount.MountPath
			}
		}
		if mounted != "/var/lib/mcpd" || claim.Spec.AccessModes[0] != corev1.ReadWriteOnce {
			t.Errorf("claim %v is mounted at %q", claim, mounted)
		}
	}
}

func TestKubernetes_sharedVolume(t *testing.T) {
	got := map[string]string{}
	for name, claim := range decoded(t, samples.Written(t, samples.Rich())).claims {
		got[name] = string(claim.Spec.AccessModes[0]) + " " + claim.Spec.Resources.Requests.Storage().String()
	}
	want := map[string]string{"mcpd-state": "ReadWriteOnce 1Gi", "repositories": "ReadWriteMany 10Gi", "shared": "ReadWriteMany 1Gi"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
