package compose

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/internal/base/yaml"
)

// The templates of the chart are the Kubernetes manifests, except that some values are
// actions. values.yaml has their defaults, with which the templates are the manifests.
// The release names the namespace.

// templateOf returns the name of the template of a manifest.
func templateOf(manifest string) string {
	return strings.Replace(manifest, "kubernetes/", chartFolder+"templates/", 1)
}

// value returns a value, or for a chart the action that inserts it.
func (o *objects) value(action string, value any) any {
	if o.chart {
		return json.Number("{{ " + action + " }}") // written without quotes
	}
	return value
}

// setting returns the action of a chart for a value that manifests do not have.
func (o *objects) setting(action string) any { return o.value(action, nil) }

// values returns the expression for the values of an upstream.
func (u *Upstream) values() string { return fmt.Sprintf("(index .Values.upstreams %q)", u.host()) }

// file returns a manifest, or the template that is rendered to it.
func (o *objects) file(name, head string, documents ...*yaml.Map) (File, error) {
	if o.chart {
		name = templateOf(name)
		for i, d := range documents {
			documents[i] = escape(d).(*yaml.Map)
		}
	}
	return file(name, head, documents...)
}

// escape returns a copy of a value with escaped texts, which a template renders as they
// are. An escaped text needs no other quotes in YAML.
func escape(v any) any {
	switch v := v.(type) {
	case *yaml.Map:
		m := &yaml.Map{}
		for i, name := range v.Names {
			joined(m, is(escaped(name), escape(v.Values[i])).because(escaped(v.Notes[i])))
		}
		return m
	case []any:
		return each(v, escape)
	case string:
		return escaped(v)
	}
	return v
}

func escaped(text string) string { return strings.ReplaceAll(text, "{{", "{{ `{{` }}") }

// semantic matches a version that Helm accepts for a chart.
var semantic = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v?((?:0|[1-9][0-9]{0,8})\.(?:0|[1-9][0-9]{0,8})\.(?:0|[1-9][0-9]{0,8}))$`)
})

// chart returns Chart.yaml.
func (d *Deployment) chart() (File, error) {
	version := "0.0.0"
	if found := semantic().FindStringSubmatch(d.Version); found != nil {
		version = found[1]
	}
	return file(chartFile, written, mapping(
		is("apiVersion", "v2"),
		is("name", d.Name),
		is("description", "mcpd, tools for AI agents over MCP, and its upstream servers"),
		is("type", "application"),
		is("version", version),
		is("appVersion", d.Version),
		is("kubeVersion", ">=1.30.0-0").because("preStop uses the sleep action.").when(d.Database),
	))
}

// values returns values.yaml.
func (d *Deployment) values() (File, error) {
	head := written + "\nUse a file of your own with helm --values for other values."
	if used := d.used(); len(used) > 0 {
		head += fmt.Sprintf("\nThe chart does not create the Secret %q, because no file contains secrets:\n", secretsName) + "  kubectl create namespace " + d.Name + "\n" + d.secretCommand(used)
	}
	upstreams := mapping()
	for i := range d.Upstreams {
		u := &d.Upstreams[i]
		joined(upstreams, is(u.host(), mapping(is("image", u.Image), is("resources", u.Limits.resources()))))
	}
	empty := func(name string) member { return is(name, mapping()) }
	replicas := is("replicas", number(d.Replicas))
	if !d.Database {
		replicas = replicas.because("More than one needs a state block in mcpd.hcl.")
	}
	return file(valuesFile, head, mapping(
		replicas,
		is("image", d.Image),
		is("resources", d.Limits.resources()),
		is("secret", secretsName).because("The name of the Secret.").when(len(d.used()) > 0),
		is("sessionAffinity", "ClientIP").because("None, if a load balancer sends each client to the same pod.").when(d.sticky()),
		is("serviceType", word("null")).because("LoadBalancer or NodePort; null means ClusterIP."),
		is("storageClass", word("null")).because("The class of claims; null means the default of the cluster."),
		empty("podAnnotations").because("Settings of the pods of mcpd."),
		empty("nodeSelector"),
		is("tolerations", word("[]")),
		is("upstreams", upstreams).when(len(d.Upstreams) > 0),
	))
}

// word returns a word of YAML that is not a text.
func word(text string) json.Number { return json.Number(text) }
