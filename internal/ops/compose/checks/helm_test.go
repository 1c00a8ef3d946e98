package checks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/releaseutil"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mcpd/mcpd/internal/ops/compose"
	"github.com/mcpd/mcpd/internal/ops/compose/samples"
)

// rendered returns the documents of the chart, rendered by Helm for a namespace. values is
// YAML.
func rendered(content map[string]string, namespace, values string) (map[string]string, error) {
	var files []*loader.BufferedFile
	for name, text := range content {
		if name, ok := strings.CutPrefix(name, "helm/"); ok {
			files = append(files, &loader.BufferedFile{Name: name, Data: []byte(text)})
		}
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	if err := loaded.Validate(); err != nil {
		return nil, err
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(loaded, given, chartutil.ReleaseOptions{Name: "mcpd", Namespace: namespace, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	documents := map[string]string{}
	for name, text := range texts {
		_, name, _ = strings.Cut(name, "/") // the name of the chart
		for part, text := range releaseutil.SplitManifests(text) {
			documents[name+"#"+part] = text + "\n" // as Helm joins them
		}
	}
	return documents, nil
}

// sameChart checks that the chart with its default values renders the manifests, except
// for the namespace, which Helm creates.
func sameChart(t testing.TB, content map[string]string, want manifests) {
	t.Helper()
	var namespace string
	for namespace = range want.namespaces {
	}
	texts, err := rendered(content, namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	got := decodedFrom(t, texts, "templates/")
	want.namespaces = got.namespaces
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(manifests{}), cmpopts.EquateEmpty()); diff != "" || len(got.namespaces) > 0 {
		t.Errorf("chart (-manifests +chart)\n%s", diff)
	}
}

// charted returns a deployment with a chart.
func charted(d compose.Deployment) compose.Deployment {
	d.Helm = true
	return d
}

func TestChart_sameAsManifests(t *testing.T) {
	volume := samples.Fleet()
	volume.State = true
	for _, d := range []compose.Deployment{samples.Coding(), samples.Rich(), samples.Fleet(), volume} {
		content := samples.Written(t, charted(d))
		sameChart(t, content, decoded(t, content))
	}
}

func TestChart_values(t *testing.T) {
	texts, err := rendered(samples.Written(t, samples.Fleet()), "other", `
replicas: 7
image: "registry.example.com/a:2"
secret: external
sessionAffinity: None
serviceType: LoadBalancer
storageClass: fast
podAnnotations: {example.com/a: "{{ b }}"}
nodeSelector: {disk: ssd}
tolerations: [{key: a, operator: Exists}]
resources: {limits: {memory: 1Gi}}
upstreams: {memory: {image: "memory:2"}}
`)
	if err != nil {
		t.Fatal(err)
	}
	m := decodedFrom(t, texts, "templates/")
	server, service := m.deployments["mcpd"], m.services["mcpd"]
	pod := server.Spec.Template.Spec
	if got := pod.Containers[0].Resources.Limits.Memory().String(); got != "1Gi" {
		t.Errorf("memory %s", got)
	}
	var secrets []string
	for _, p := range m.pods() {
		for _, v := range p.Volumes {
			if v.Secret != nil {
				secrets = append(secrets, v.Secret.SecretName)
			}
		}
		for _, v := range p.Containers[0].Env {
			if v.ValueFrom != nil {
				secrets = append(secrets, v.ValueFrom.SecretKeyRef.Name)
			}
		}
	}
	got := []any{
		*server.Spec.Replicas, server.Namespace, pod.Containers[0].Image, server.Spec.Template.Annotations["example.com/a"], pod.NodeSelector["disk"], pod.Tolerations[0].Key,
		service.Spec.Type, service.Spec.SessionAffinity, *m.claims["shared"].Spec.StorageClassName, m.pods()["memory"].Containers[0].Image, secrets,
	}
	want := []any{
		int32(7), "other", "registry.example.com/a:2", "{{ b }}", "ssd", "a",
		corev1.ServiceTypeLoadBalancer, corev1.ServiceAffinityNone, "fast", "memory:2", []string{"external", "external", "external", "external"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestChart_replicasNeedDatabase(t *testing.T) {
	const want = "name a PostgreSQL database in a state block of mcpd.hcl, and run mcpd compose without --state"
	if _, err := rendered(samples.Written(t, charted(samples.Rich())), "desk", "replicas: 2"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	if _, err := rendered(samples.Written(t, samples.Fleet()), "desk", "replicas: 2"); err != nil {
		t.Error(err)
	}
}

func TestChart_lint(t *testing.T) {
	for _, d := range []compose.Deployment{samples.Coding(), samples.Rich(), samples.Fleet()} {
		folder := filepath.Join(t.TempDir(), d.Name)
		for name, text := range samples.Written(t, charted(d)) {
			name, ok := strings.CutPrefix(name, "helm/")
			if !ok {
				continue
			}
			path := filepath.Join(folder, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range lint.All(folder, nil, d.Name, true).Messages {
			if !strings.Contains(m.Error(), "icon is recommended") {
				t.Errorf("%s: %v", d.Name, m)
			}
		}
	}
}
