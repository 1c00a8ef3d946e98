package compose

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mcpd/mcpd/internal/base/yaml"
)

// The names of objects in the namespace of a deployment, beside those of the
// services, which are called as their host names.
const (
	configName  = "config"
	toolsName   = "tools"
	secretsName = "secrets"
	// clientLabel is what pods bear that may call an mcpd which asks for no credential.
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

// namespace returns the namespace, and what holds for all pods in it.
func namespace(d *Deployment) (File, error) {
	head := written + "\nkubectl apply --server-side -f kubernetes/ makes all of it"
	if used := d.used(); len(used) > 0 {
		head += fmt.Sprintf(", but for the Secret %q.\nThat is made by hand, in the namespace that the first of the files makes:\n", secretsName) + d.secretCommand(used)
	} else {
		head += "."
	}
	nobody := d.policy("nobody", mapping(), nil, nil)
	nobody.Notes[0] = "What no other policy allows, no pod here may do: neither call nor be called."
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

// secretCommand returns the command that makes the Secret, as a shell has it that
// knows the variables of docker-compose.yml, in its folder. It holds no value.
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

// plain is a word of a shell that is no other in quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./@+-]+$`)

// quoted returns a text as a word of a shell.
func quoted(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// used returns the secrets that something has, in their order.
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

// upstreamManifests returns what the upstreams are in Kubernetes, or no file where
// there are none.
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
		is("selector", mapping(is("matchLabels", labelled(p.name)))),
		is("template", mapping(
			is("metadata", mapping(is("labels", mapping(is(nameLabel, p.name), is(partLabel, d.Name))))),
			is("spec", p.spec()),
		)),
	)))
}

// reachable returns the Service by whose name others reach the pods of a name.
func (d *Deployment) reachable(name string, port int) *yaml.Map {
	return d.object("v1", "Service", name, is("spec", mapping(
		is("selector", labelled(name)),
		is("ports", []any{mapping(is("name", "http"), is("port", number(port)), is("targetPort", "http"))}),
	)))
}

func labelled(name string) *yaml.Map { return mapping(is(nameLabel, name)) }

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

// claim returns the claim of a volume. One that several pods have is wanted so
// that they may run on several nodes.
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

// private are the addresses that are not of the Internet: those of private and
// shared networks, of one link (where clouds keep credentials), of a machine
// itself, and IPv4 in IPv6.
var (
	privateIPv4 = []string{"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"}
	privateIPv6 = []string{"::1/128", "64:ff9b::/96", "2002::/16", "fc00::/7", "fe80::/10"}
)

// policy is a NetworkPolicy of the pods that a selector covers: who may call
// them, and whom they may call. Nobody is allowed what is in neither list.
func (d *Deployment) policy(name string, pods *yaml.Map, ingress, egress []any) *yaml.Map {
	return d.object("networking.k8s.io/v1", "NetworkPolicy", name, is("spec", mapping(
		is("podSelector", pods),
		is("policyTypes", texts("Ingress", "Egress")),
		is("ingress", ingress),
		is("egress", egress),
	)))
}

// serverPolicy lets clients call mcpd, and mcpd call everybody: it judges itself
// which hosts a tool may reach.
func (d *Deployment) serverPolicy() *yaml.Map {
	clients := is("from", []any{mapping(
		is("namespaceSelector", mapping()),
		is("podSelector", mapping(is("matchLabels", mapping(is(clientLabel, "true"))))),
	)}).because(d.why() + ": pods with this label, of any namespace, may call it.")
	return d.policy("to-mcpd", selected("mcpd"),
		[]any{mapping(clients.when(d.Insecure), is("ports", []any{tcp("http")}))},
		[]any{mapping()},
	)
}

// why says what keeps an mcpd that is insecure from being reached by everybody.
func (d *Deployment) why() string {
	if d.Auth {
		return "Credentials would pass over the network as they are"
	}
	return "mcpd asks nobody for a credential"
}

// upstreamPolicy lets mcpd alone call an upstream, which may call nobody, or the
// Internet and no other pod.
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

func selected(name string) *yaml.Map { return mapping(is("matchLabels", labelled(name))) }

func tcp(port string) *yaml.Map { return mapping(is("protocol", "TCP"), is("port", port)) }

func block(cidr string, except []string) *yaml.Map {
	return mapping(is("ipBlock", mapping(is("cidr", cidr), is("except", texts(except...)))))
}
