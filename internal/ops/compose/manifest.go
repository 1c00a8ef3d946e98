package compose

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/base/yaml"
)

// Names of objects in the namespace. Services are named after their hosts.
const (
	configName  = "config"
	toolsName   = "tools"
	secretsName = "secrets"
	// clientLabel is the label of pods that may call an mcpd without authentication.
	clientLabel = "mcpd-client"
	nameLabel   = "app.kubernetes.io/name"
	partLabel   = "app.kubernetes.io/part-of"
)

// objects writes the Kubernetes objects of a deployment: as manifests, or as templates of
// a chart.
type objects struct {
	*Deployment
	chart bool
}

func (o *objects) object(version, kind, name string, rest ...member) *yaml.Map {
	return mapping(append([]member{
		is("apiVersion", version),
		is("kind", kind),
		is("metadata", mapping(
			is("name", name),
			is("namespace", o.value(".Release.Namespace | quote", o.Name)),
			is("labels", mapping(is(partLabel, o.Name))),
		)),
	}, rest...)...)
}

// namespace returns the namespace and the objects for all its pods.
func (o *objects) namespace() (File, error) {
	nobody := o.policy("nobody", mapping(), nil, nil)
	nobody.Notes[0] = "Deny all traffic that no other policy allows."
	if o.chart {
		return o.file(namespaceFile, written, nobody) // Helm makes the namespace
	}
	head := written + "\nkubectl apply --server-side -f kubernetes/ creates everything"
	if used := o.used(); len(used) > 0 {
		head += fmt.Sprintf(" except the Secret %q.\nCreate it in the namespace of the first file:\n  kubectl apply --server-side -f %s\n", secretsName, namespaceFile) + o.secretCommand(used)
	} else {
		head += "."
	}
	return o.file(namespaceFile, head,
		mapping(
			is("apiVersion", "v1"),
			is("kind", "Namespace"),
			is("metadata", mapping(
				is("name", o.Name),
				is("labels", mapping(
					is(partLabel, o.Name),
					is("pod-security.kubernetes.io/enforce", "restricted"),
				)),
			)),
		),
		nobody,
	)
}

// secretCommand returns the shell command that creates the Secret. It uses the
// variables of docker-compose.yml, runs in its directory, and contains no value.
func (d *Deployment) secretCommand(used []Secret) string {
	lines := []string{fmt.Sprintf("  kubectl -n %s create secret generic %s", d.Name, secretsName)}
	for _, s := range used {
		source := fmt.Sprintf(`--from-literal=%s="$%s"`, s.Name, s.Environment)
		if s.File != "" {
			source = fmt.Sprintf("--from-file=%s=%s", s.Name, quoted(s.File))
		}
		lines[len(lines)-1] += ` \`
		lines = append(lines, "    "+source)
	}
	return strings.Join(lines, "\n")
}

// plain matches a shell word that needs no quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./@+-]+$`)

// quoted returns a text as a shell word.
func quoted(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// used returns the secrets with a consumer, in order.
func (d *Deployment) used() []Secret {
	has := map[string]bool{}
	note := func(reads []string, env []Variable) {
		for _, name := range reads {
			has[name] = true
		}
		for _, v := range env {
			has[v.Secret] = true
		}
	}
	note(d.Reads, d.Env)
	for i := range d.Upstreams {
		note(d.Upstreams[i].Reads, d.Upstreams[i].Env)
	}
	var list []Secret
	for _, s := range d.Secrets {
		if has[s.Name] {
			list = append(list, s)
		}
	}
	return list
}

func (o *objects) serverManifests() (File, error) {
	head := written
	if o.chart && !o.Database {
		head += "\n{{ if gt (int .Values.replicas) 1 }}{{ fail " + strconv.Quote(onlyDatabase) + " }}{{ end }}"
	}
	documents := []*yaml.Map{o.server(), o.reachable("mcpd", o.Port), o.serverPolicy()}
	switch {
	case o.Database:
		documents = append(documents, o.object("policy/v1", "PodDisruptionBudget", "mcpd", is("spec", mapping(
			is("maxUnavailable", number(1)),
			is("selector", selected("mcpd")),
		))))
	case o.State:
		documents = append(documents, o.claim(stateVolume, DefaultVolume, false))
	}
	return o.file(serverFile, head, documents...)
}

// upstreamManifests returns the objects of the upstreams, or no file without upstreams.
func (o *objects) upstreamManifests() (File, error) {
	if len(o.Upstreams) == 0 {
		return File{}, nil
	}
	var documents []*yaml.Map
	for i := range o.Upstreams {
		u := &o.Upstreams[i]
		p := u.pod(o)
		documents = append(documents, o.workload("Deployment", p, p.single(number(1))...), o.reachable(u.host(), u.Port), o.upstreamPolicy(u))
	}
	return o.file(upstreamsFile, written, append(documents, o.claims()...)...)
}

// server returns the object that keeps the pods of mcpd running: a StatefulSet if each
// replica needs a volume of its own, otherwise a Deployment. The kind does not depend on
// the number of replicas, because kubectl apply keeps objects of the other kind.
func (o *objects) server() *yaml.Map {
	p := o.serverPod()
	replicas := o.value("int .Values.replicas", number(o.Replicas))
	switch {
	case !o.Database:
		return o.workload("Deployment", p, p.single(replicas)...)
	case o.State:
		return o.workload("StatefulSet", p,
			is("replicas", replicas),
			is("serviceName", p.name),
			is("podManagementPolicy", "Parallel"),
			is("updateStrategy", mapping(is("type", "RollingUpdate"))),
			is("volumeClaimTemplates", []any{mapping(
				is("metadata", mapping(is("name", stateVolume), is("labels", mapping(is(partLabel, o.Name))))),
				is("spec", o.claimSpec(DefaultVolume, "ReadWriteOnce")),
			)}).because("Files of one replica, such as its audit log."),
		)
	}
	return o.workload("Deployment", p,
		is("replicas", replicas),
		is("strategy", mapping(
			is("type", "RollingUpdate"),
			is("rollingUpdate", mapping(is("maxUnavailable", number(0)), is("maxSurge", number(1)))),
		)).because("A new pod is ready before an old one stops."),
	)
}

// single returns the scale of a Deployment with one pod.
func (p pod) single(replicas any) []member {
	return []member{
		is("replicas", replicas).because(p.alone),
		is("strategy", mapping(is("type", "Recreate"))).when(p.alone != ""),
	}
}

// workload returns the object that keeps pods running. scale says how many, and how they
// are replaced.
func (o *objects) workload(kind string, p pod, scale ...member) *yaml.Map {
	return o.object("apps/v1", kind, p.name, is("spec", mapping(append(scale,
		is("selector", selected(p.name)),
		is("template", mapping(
			is("metadata", mapping(
				is("labels", mapping(is(nameLabel, p.name), is(partLabel, o.Name))),
				is("annotations", o.setting("toJson .Values.podAnnotations")).when(p.server),
			)),
			is("spec", p.spec()),
		)),
	)...)))
}

// reachable returns the Service for the pods of a name.
func (o *objects) reachable(name string, port int) *yaml.Map {
	var settings []member
	if name == "mcpd" {
		settings = []member{
			is("type", o.setting("toJson .Values.serviceType")),
			is("sessionAffinity", o.value(".Values.sessionAffinity | quote", "ClientIP")).when(o.sticky()).
				because("A session of an MCP revision before 2026-07-28 lives in one replica."),
		}
	}
	return o.object("v1", "Service", name, is("spec", mapping(append(settings,
		is("selector", labeled(name)),
		is("ports", []any{mapping(is("name", "http"), is("port", number(port)), is("targetPort", "http"))}),
	)...)))
}

func labeled(name string) *yaml.Map { return mapping(is(nameLabel, name)) }

func (o *objects) claims() []*yaml.Map {
	users, volumes := map[string]int{}, []Volume(nil)
	for i := range o.Upstreams {
		here := map[string]bool{}
		for _, v := range o.Upstreams[i].Volumes {
			if users[v.Name] == 0 {
				volumes = append(volumes, v)
			}
			if !here[v.Name] {
				users[v.Name]++
			}
			here[v.Name] = true
		}
	}
	var list []*yaml.Map
	for _, v := range volumes {
		list = append(list, o.claim(v.Name, v.Size, users[v.Name] > 1))
	}
	return list
}

// claim returns the claim of a volume. A shared claim allows access from several nodes.
func (o *objects) claim(name string, size int64, shared bool) *yaml.Map {
	mode := "ReadWriteOnce"
	if shared {
		mode = "ReadWriteMany"
	}
	return o.object("v1", "PersistentVolumeClaim", name, is("spec", o.claimSpec(size, mode)))
}

func (o *objects) claimSpec(size int64, mode string) *yaml.Map {
	return mapping(
		is("accessModes", texts(mode)),
		is("resources", mapping(is("requests", mapping(is("storage", amount(size, "Mi", "")))))),
		is("storageClassName", o.setting("toJson .Values.storageClass")),
	)
}

// private lists non-Internet addresses: private and shared networks, link-local (cloud
// metadata), loopback, and IPv4-mapped IPv6.
var (
	privateIPv4 = []string{"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"}
	privateIPv6 = []string{"::1/128", "64:ff9b::/96", "2002::/16", "fc00::/7", "fe80::/10"}
)

// policy returns a NetworkPolicy for the selected pods. Everything that is not listed
// in ingress or egress is denied.
func (o *objects) policy(name string, pods *yaml.Map, ingress, egress []any) *yaml.Map {
	return o.object("networking.k8s.io/v1", "NetworkPolicy", name, is("spec", mapping(
		is("podSelector", pods),
		is("policyTypes", texts("Ingress", "Egress")),
		is("ingress", ingress),
		is("egress", egress),
	)))
}

// serverPolicy allows clients to call mcpd, and mcpd to call any address: it applies
// its own egress rules.
func (o *objects) serverPolicy() *yaml.Map {
	clients := is("from", []any{mapping(
		is("namespaceSelector", mapping()),
		is("podSelector", mapping(is("matchLabels", mapping(is(clientLabel, "true"))))),
	)}).because(o.why() + ": only pods with this label, in any namespace, may call it.")
	ingress := []any{mapping(clients.when(o.Insecure), is("ports", []any{tcp("http")}))}
	if o.Peers != 0 {
		ingress = append(ingress, mapping(is("from", []any{mapping(is("podSelector", selected("mcpd")))}), is("ports", []any{tcp("peers")})))
	}
	return o.policy("to-mcpd", selected("mcpd"), ingress, []any{mapping()})
}

// sticky reports whether a client must keep its replica.
func (d *Deployment) sticky() bool { return d.Database && d.Peers == 0 }

// why describes the access control of an insecure mcpd.
func (d *Deployment) why() string {
	if d.Auth {
		return "Credentials would cross the network in clear text"
	}
	return "mcpd does not require a credential"
}

// upstreamPolicy allows only mcpd to call an upstream. The upstream may call nothing,
// or only the Internet.
func (o *objects) upstreamPolicy(u *Upstream) *yaml.Map {
	var egress []any
	if u.Internet {
		egress = []any{
			mapping(
				is("to", []any{mapping(is("namespaceSelector", mapping(is("matchLabels", mapping(is("kubernetes.io/metadata.name", "kube-system"))))))}),
				is("ports", []any{mapping(is("protocol", "UDP"), is("port", number(53))), mapping(is("protocol", "TCP"), is("port", number(53)))}),
			),
			mapping(is("to", []any{block("0.0.0.0/0", privateIPv4), block("::/0", privateIPv6)})),
		}
	}
	return o.policy("to-"+u.host(), selected(u.host()),
		[]any{mapping(is("from", []any{mapping(is("podSelector", selected("mcpd")))}), is("ports", []any{tcp("http")}))},
		egress,
	)
}

func selected(name string) *yaml.Map { return mapping(is("matchLabels", labeled(name))) }

func tcp(port string) *yaml.Map { return mapping(is("protocol", "TCP"), is("port", port)) }

func block(cidr string, except []string) *yaml.Map {
	return mapping(is("ipBlock", mapping(is("cidr", cidr), is("except", texts(except...)))))
}
