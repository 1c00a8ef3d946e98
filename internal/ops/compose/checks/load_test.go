package checks

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// Paths of the deployment and of its files in the containers.
const (
	composeFile  = "docker-compose.yml"
	configFolder = "/etc/mcpd/config"
	toolsFolder  = "/etc/mcpd/tools.d"
	nameLabel    = "app.kubernetes.io/name"
	maxConfigMap = 512 << 10 // maximum bytes of the files in one ConfigMap
	maxKey       = 253       // maximum bytes of a key of a ConfigMap
)

// loaded returns docker-compose.yml as loaded by Compose with an environment.
func loaded(text string, environment map[string]string) (*types.Project, error) {
	return loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  "/deployment",
		ConfigFiles: []types.ConfigFile{{Filename: "docker-compose.yml", Content: []byte(text)}},
		Environment: environment,
	}, func(o *loader.Options) { o.SkipResolveEnvironment = true })
}

// manifests are the Kubernetes objects in the files, by kind and name.
type manifests struct {
	namespaces  map[string]corev1.Namespace
	configMaps  map[string]corev1.ConfigMap
	services    map[string]corev1.Service
	claims      map[string]corev1.PersistentVolumeClaim
	deployments map[string]appsv1.Deployment
	sets        map[string]appsv1.StatefulSet
	policies    map[string]networkingv1.NetworkPolicy
	budgets     map[string]policyv1.PodDisruptionBudget
}

// decoded returns the objects of the manifests.
func decoded(t testing.TB, content map[string]string) manifests {
	t.Helper()
	return decodedFrom(t, content, "kubernetes/")
}

// decodedFrom returns the objects of the files in a folder, strictly decoded into the
// Kubernetes types.
func decodedFrom(t testing.TB, content map[string]string, folder string) manifests {
	t.Helper()
	m := manifests{
		map[string]corev1.Namespace{}, map[string]corev1.ConfigMap{}, map[string]corev1.Service{},
		map[string]corev1.PersistentVolumeClaim{}, map[string]appsv1.Deployment{}, map[string]appsv1.StatefulSet{},
		map[string]networkingv1.NetworkPolicy{}, map[string]policyv1.PodDisruptionBudget{},
	}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if !strings.HasPrefix(name, folder) {
			continue
		}
		for document := range strings.SplitSeq(content[name], "\n---\n") {
			var head struct {
				Kind     string `json:"kind"`
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			}
			if err := yaml.Unmarshal([]byte(document), &head); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			switch head.Kind {
			case "Namespace":
				decode(t, document, head.Metadata.Name, m.namespaces)
			case "ConfigMap":
				decode(t, document, head.Metadata.Name, m.configMaps)
			case "Service":
				decode(t, document, head.Metadata.Name, m.services)
			case "PersistentVolumeClaim":
				decode(t, document, head.Metadata.Name, m.claims)
			case "Deployment":
				decode(t, document, head.Metadata.Name, m.deployments)
			case "StatefulSet":
				decode(t, document, head.Metadata.Name, m.sets)
			case "NetworkPolicy":
				decode(t, document, head.Metadata.Name, m.policies)
			case "PodDisruptionBudget":
				decode(t, document, head.Metadata.Name, m.budgets)
			default:
				t.Fatalf("%s: unexpected kind %q", name, head.Kind)
			}
		}
	}
	return m
}

// pods returns the pods of all workloads, by name.
func (m manifests) pods() map[string]corev1.PodSpec {
	pods := map[string]corev1.PodSpec{}
	for name, d := range m.deployments {
		pods[name] = d.Spec.Template.Spec
	}
	for name, s := range m.sets {
		pods[name] = s.Spec.Template.Spec
	}
	return pods
}

func decode[T any](t testing.TB, document, name string, into map[string]T) {
	t.Helper()
	if _, taken := into[name]; taken {
		t.Errorf("two objects are named %s", name)
	}
	var object T
	if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	into[name] = object
}
