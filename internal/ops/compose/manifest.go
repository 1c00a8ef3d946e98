package compose

import (
	"fmt"
	"regexp"
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

func (d *Deployment) object(version, kind, name string, rest ...member) *yaml.Map {
	return mapping(append([]member{
		is("apiVersion", version),
		is("kind", kind),
		is("metadata", mapping(
			is("name", name),
			is("namespace", d.Name),
			is("labels", mapping(is(partLabel, d.Name))),
		)),
	}, rest...)...)
}

// namespace returns the namespace and the objects for all its pods.
func namespace(d *Deployment) (File, error) {
	head := written + "\nkubectl apply --server-side -f kubernetes/ creates everything"
	if used := d.used(); len(used) > 0 {
		head += fmt.Sprintf(" except the Secret %q.\nCreate it in the namespace of the first file:\n", secretsName) + d.secretCommand(used)
	} else {
		head += "."
	}
	nobody := d.policy("nobody", mapping(), nil, nil)
	nobody.Notes[0] = "Deny all traffic that no other policy allows."
	return file(namespaceFile, head,
		mapping(
			is("apiVersion", "v1"),
			is("kind", "Namespace"),
			is("metadata", mapping(
				is("name", d.Name),
				is("labels", mapping(
					is(partLabel, d.Name),
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
	lines := []string{
		"  kubectl apply --server-side -f " + namespaceFile,
		fmt.Sprintf("  kubectl -n %s create secret generic %s", d.Name, secretsName),
	}
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

func serverManifests(d *Deployment) (File, error) {
	documents := []*yaml.Map{
		d.workload(d.serverPod()),
		d.reachable("mcpd", d.Port),
		d.serverPolicy(),
	}
	if d.State {
		documents = append(documents, d.claim(stateVolume, DefaultVolume, false))
	}
	return file(serverFile, written, documents...)
}

// upstreamManifests returns the objects of the upstreams, or no file without upstreams.
func upstreamManifests(d *Deployment) (File, error) {
	if len(d.Upstreams) == 0 {
		return File{}, nil
	}
	var documents []*yaml.Map
	for i := range d.Upstreams {
		u := &d.Upstreams[i]
		documents = append(documents, d.workload(u.pod(d)), d.reachable(u.host(), u.Port), d.upstreamPolicy(u))
	}
	return file(upstreamsFile, written, append(documents, d.claims()...)...)
}

// workload returns the Deployment that keeps one pod running.
func (d *Deployment) workload(p pod) *yaml.Map {
	return d.object("apps/v1", "Deployment", p.name, is("spec", mapping(
		is("replicas", number(1)).because(p.alone),
		is("strategy", mapping(is("type", "Recreate"))).when(p.alone != ""),
		is("selector", mapping(is("matchLabels", labeled(p.name)))),
		is("template", mapping(
			is("metadata", mapping(is("labels", mapping(is(nameLabel, p.name), is(partLabel, d.Name))))),
			is("spec", p.spec()),
		)),
	)))
}

// reachable returns the Service for the pods of a name.
func (d *Deployment) reachable(name string, port int) *yaml.Map {
	return d.object("v1", "Service", name, is("spec", mapping(
		is("selector", labeled(name)),
		is("ports", []any{mapping(is("name", "http"), is("port", number(port)), is("targetPort", "http"))}),
	)))
}

func labeled(name string) *yaml.Map { return mapping(is(nameLabel, name)) }

func (d *Deployment) claims() []*yaml.Map {
	users, volumes := map[string]int{}, []Volume(nil)
	for i := range d.Upstreams {
		here := map[string]bool{}
		for _, v := range d.Upstreams[i].Volumes {
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
		list = append(list, d.claim(v.Name, v.Size, users[v.Name] > 1))
	}
	return list
}

// claim returns the claim of a volume. A shared claim allows access from several nodes.
func (d *Deployment) claim(name string, size int64, shared bool) *yaml.Map {
	mode := "ReadWriteOnce"
	if shared {
		mode = "ReadWriteMany"
	}
	return d.object("v1", "PersistentVolumeClaim", name, is("spec", mapping(
		is("accessModes", texts(mode)),
		is("resources", mapping(is("requests", mapping(is("storage", amount(size, "Mi", "")))))),
	)))
}

// private lists non-Internet addresses: private and shared networks, link-local (cloud
// metadata), loopback, and IPv4-mapped IPv6.
var (
	privateIPv4 = []string{"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"}
	privateIPv6 = []string{"::1/128", "64:ff9b::/96", "2002::/16", "fc00::/7", "fe80::/10"}
)

// policy returns a NetworkPolicy for the selected pods. Everything that is not listed
// in ingress or egress is denied.
func (d *Deployment) policy(name string, pods *yaml.Map, ingress, egress []any) *yaml.Map {
	return d.object("networking.k8s.io/v1", "NetworkPolicy", name, is("spec", mapping(
		is("podSelector", pods),
		is("policyTypes", texts("Ingress", "Egress")),
		is("ingress", ingress),
		is("egress", egress),
	)))
}

// serverPolicy allows clients to call mcpd, and mcpd to call any address: it applies
// its own egress rules.
func (d *Deployment) serverPolicy() *yaml.Map {
	clients := is("from", []any{mapping(
		is("namespaceSelector", mapping()),
		is("podSelector", mapping(is("matchLabels", mapping(is(clientLabel, "true"))))),
	)}).because(d.why() + ": only pods with this label, in any namespace, may call it.")
	return d.policy("to-mcpd", selected("mcpd"),
		[]any{mapping(clients.when(d.Insecure), is("ports", []any{tcp("http")}))},
		[]any{mapping()},
	)
}

// why describes the access control of an insecure mcpd.
func (d *Deployment) why() string {
	if d.Auth {
		return "Credentials would cross the network in clear text"
	}
	return "mcpd does not require a credential"
}

// upstreamPolicy allows only mcpd to call an upstream. The upstream may call nothing,
// or only the Internet.
func (d *Deployment) upstreamPolicy(u *Upstream) *yaml.Map {
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
	return d.policy("to-"+u.host(), selected(u.host()),
		[]any{mapping(is("from", []any{mapping(is("podSelector", selected("mcpd")))}), is("ports", []any{tcp("http")}))},
		egress,
	)
}

func selected(name string) *yaml.Map { return mapping(is("matchLabels", labeled(name))) }

func tcp(port string) *yaml.Map { return mapping(is("protocol", "TCP"), is("port", port)) }

func block(cidr string, except []string) *yaml.Map {
	return mapping(is("ipBlock", mapping(is("cidr", cidr), is("except", texts(except...)))))
}
