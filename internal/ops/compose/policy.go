package compose

import "github.com/mcpd/mcpd/internal/base/yaml"

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
		[]any{mapping(is("from", []any{selectedPod("mcpd")}), is("ports", []any{tcp("http")}))},
		egress,
	)
}

func selected(name string) *yaml.Map { return mapping(is("matchLabels", labelled(name))) }

func selectedPod(name string) *yaml.Map { return mapping(is("podSelector", selected(name))) }

func tcp(port string) *yaml.Map { return mapping(is("protocol", "TCP"), is("port", port)) }

func block(cidr string, except []string) *yaml.Map {
	return mapping(is("ipBlock", mapping(is("cidr", cidr), is("except", texts(except...)))))
}
