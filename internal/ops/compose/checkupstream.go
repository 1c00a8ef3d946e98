package compose

import (
	"slices"

	"github.com/mcpd/mcpd/internal/language/container"
)

// upstreams looks at each upstream, and at what they may not have twice.
func (p *problems) upstreams(d *Deployment) {
	hosts, volumes := map[string]string{}, map[string]Volume{}
	for i := range d.Upstreams {
		u := &d.Upstreams[i]
		p.of("upstream", u.Name, func(p *problems) {
			host := u.host()
			other, taken := hosts[host]
			switch {
			case !container.IsLabel(host):
				p.add("its name makes no host name: letters, digits, _ and -, 63 of them at most, of which the first is a letter and the last no - or _")
			case container.Reserved(host) != "":
				p.add("it cannot be called so: %s", container.Reserved(host))
			case taken:
				p.add("its host name, %s, is that of %s too", host, clipped(other))
			default:
				hosts[host] = u.Name
			}
			p.upstream(d, u)
			p.volumes(u, volumes)
		})
	}
}

func (p *problems) upstream(d *Deployment, u *Upstream) {
	p.image(u.Image)
	p.port(u.Port)
	if !container.IsURLPath(u.Path) {
		p.add("path: %s is no path of a URL", clipped(u.Path))
	}
	if u.User < 1 || u.User > container.MaxUser {
		p.add("user: it is not between 1 and %d; 0, the user root, cannot be", container.MaxUser)
	}
	p.arguments("command", u.Command)
	p.arguments("health", u.Health)
	if len(u.Health) > 0 && u.Health[0] == "" {
		p.add("health: the program has no name")
	}
	p.limits(u.Limits)
	p.environment(d, u.Env)
	p.reads(d, u.Reads)
}

func (p *problems) arguments(what string, arguments []string) {
	if !p.few(what, len(arguments), container.MaxItems) {
		return
	}
	part := problems{about: p.about + what + ": "}
	for _, a := range arguments {
		part.text(a)
	}
	p.errs = append(p.errs, part.errs...)
}

// volumes looks at what an upstream has mounted, and whether volumes of one name
// are the same.
func (p *problems) volumes(u *Upstream, known map[string]Volume) {
	if !p.few("volumes", len(u.Volumes), container.MaxItems) || !p.few("writable", len(u.Writable), container.MaxItems) {
		return
	}
	targets := []string{"/tmp"}
	for _, v := range u.Volumes {
		p.of("volume", v.Name, func(p *problems) {
			p.volume(v, known)
			targets = p.target("target", v.Target, targets)
		})
	}
	for _, folder := range u.Writable {
		targets = p.target("writable", folder, targets)
	}
}

func (p *problems) volume(v Volume, known map[string]Volume) {
	other, taken := known[v.Name]
	switch {
	case !container.IsLabel(v.Name):
		p.add("its name is no DNS label: lower-case letters, digits and -")
	case v.Name == container.StateVolume:
		p.add("it cannot be called so: mcpd keeps its state there")
	case taken && (other.Host != v.Host || other.Size != v.Size):
		p.add("another upstream says otherwise of its host or its size")
	}
	if v.Host != "" {
		p.file("host", v.Host)
	}
	if v.Size < 1 || v.Size > container.MaxMemory {
		p.add("size: it is not between a byte and 1 PiB")
	}
	known[v.Name] = v
}

// target looks at where something is mounted, and returns what is taken then.
func (p *problems) target(what, target string, taken []string) []string {
	switch {
	case !container.IsFolder(target):
		p.add("%s: %s is no folder that can be mounted: an absolute path without . and .., of letters, digits and ._@+-, not of the system", what, clipped(target))
	case slices.Contains(taken, target):
		p.add("%s: something else stands at %s", what, clipped(target))
	}
	return append(taken, target)
}
