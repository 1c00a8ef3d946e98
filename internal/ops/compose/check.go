package compose

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/language/container"
)

// Bounds of a deployment.
const (
	MaxUpstreams = 64
	MaxReplicas  = 1000
	maxToolFiles = 10_000
	maxGrace     = time.Hour
)

// problems collects the errors of a deployment.
type problems struct {
	about string // the part that is being checked
	errs  []error
}

func (p *problems) add(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(p.about+format, args...))
}

func (p *problems) of(kind, name string, look func(*problems)) {
	part := problems{about: fmt.Sprintf("%s%s %s: ", p.about, kind, clipped(name))}
	look(&part)
	p.errs = append(p.errs, part.errs...)
}

// few reports whether a list is within its limit.
func (p *problems) few(what string, n, limit int) bool {
	if n > limit {
		p.add("%s: %d items, at most %d are allowed", what, n, limit)
	}
	return n <= limit
}

// check returns an error that names each part of a deployment that cannot be expressed,
// or nil.
func check(d *Deployment) error {
	var p problems
	p.server(d)
	if p.few("secrets", len(d.Secrets), container.MaxItems) {
		p.secrets(d)
	}
	if p.few("upstreams", len(d.Upstreams), MaxUpstreams) {
		p.upstreams(d)
	}
	return errors.Join(p.errs...)
}

func (p *problems) server(d *Deployment) {
	p.name("name", d.Name)
	p.image(d.Image)
	if strings.Contains(d.Image, "@") {
		p.add("image: the image to build cannot have a digest")
	}
	if !version().MatchString(d.Version) {
		p.add("version: %s is not a tag such as v1.2.3 or a commit", clipped(d.Version))
	}
	p.port(d.Port)
	p.replicas(d)
	if d.Grace < time.Second || d.Grace > maxGrace || d.Grace%time.Second != 0 {
		p.add("grace: %v is not a number of seconds up to an hour", d.Grace)
	}
	if d.Open() {
		p.add(OpenListen)
	}
	p.relative("config", d.Config)
	p.relative("tools", d.Tools)
	p.configMaps(d)
	p.limits(d.Limits)
	p.environment(d, d.Env)
	for _, v := range d.Env {
		// as in env_value_is_valid of systemd
		if strings.ContainsFunc(v.Value, func(c rune) bool { return c < ' ' && c != '\t' && c != '\n' || c == 0x7f }) {
			p.add("env %s: a systemd unit cannot contain control characters except tabs and line ends", clipped(v.Name))
		}
	}
	p.reads(d, d.Reads)
}

func (p *problems) replicas(d *Deployment) {
	switch {
	case d.Replicas < 1 || d.Replicas > MaxReplicas:
		p.add("replicas: %d is not between 1 and %d", d.Replicas, MaxReplicas)
	case d.Replicas > 1 && !d.Database:
		p.add("replicas: " + onlyDatabase)
	case d.Peers != 0 && (!container.IsPort(d.Peers) || d.Peers == d.Port || !d.Database):
		p.add("replicas: the port for their own requests, %d, is not another one between %d and %d, or they do not share a state", d.Peers, container.MinPort, container.MaxPort)
	case d.Port+d.Replicas-1 > container.MaxPort && !d.State:
		p.add("replicas: Compose publishes a port for each, but there are fewer than %d ports from %d", d.Replicas, d.Port)
	}
}

// onlyDatabase says what several replicas need.
const onlyDatabase = "several replicas need a state that they share: name a PostgreSQL database in a state block of mcpd.hcl, and run mcpd compose without --state"

func (p *problems) limits(l Limits) {
	if l.Memory < container.MinMemory || l.Memory > container.MaxMemory {
		p.add("memory: the limit is not between 16 MiB and 1 PiB")
	}
	if l.CPU < 1 || l.CPU > container.MaxCPU {
		p.add("cpu: the limit is not between 0.001 and 1000 processors")
	}
}

func (p *problems) secrets(d *Deployment) {
	seen := map[string]bool{}
	for _, s := range d.Secrets {
		p.of("secret", s.Name, func(p *problems) {
			switch {
			case !container.IsSecret(s.Name):
				p.add("a name must be at most 63 letters, digits, _, - and dots, and must not start with - or .")
			case seen[s.Name]:
				p.add("duplicate name")
			}
			switch {
			case (s.Environment == "") == (s.File == ""):
				p.add("use either environment or file")
			case s.File != "":
				p.file("file", s.File)
			case !variableName().MatchString(s.Environment):
				p.add("environment: %s is not a variable name", clipped(s.Environment))
			}
		})
		seen[s.Name] = true
	}
}

func (p *problems) environment(d *Deployment, variables []Variable) {
	if !p.few("env", len(variables), container.MaxItems) {
		return
	}
	seen := map[string]bool{}
	for _, v := range variables {
		p.of("env", v.Name, func(p *problems) {
			switch {
			case !variableName().MatchString(v.Name):
				p.add("a name must be at most 128 letters, digits and _, and must not start with a digit")
			case seen[v.Name]:
				p.add("duplicate variable")
			case v.Secret == "":
				p.text(v.Value)
			case v.Value != "":
				p.add("use either a value or a secret")
			default:
				p.variableSecret(d, v.Secret)
			}
		})
		seen[v.Name] = true
	}
}

func (p *problems) variableSecret(d *Deployment, name string) {
	switch s := d.secret(name); {
	case s.Name == "":
		p.add("no secret %s", clipped(name))
	case s.Environment == "":
		p.add("the secret %s comes from a file, but Compose needs a variable; read it as a file, or take it from the environment", clipped(name))
	}
}

func (p *problems) reads(d *Deployment, names []string) {
	if !p.few("reads", len(names), container.MaxItems) {
		return
	}
	seen := map[string]bool{}
	for _, name := range names {
		switch s := d.secret(name); {
		case s.Name == "":
			p.add("reads: no secret %s", clipped(name))
		case s.File == "":
			p.add("reads: the secret %s comes from the environment, but Compose needs a file for a read-only container; take it from a file", clipped(name))
		case seen[name]:
			p.add("reads: the secret %s is listed twice", clipped(name))
		}
		seen[name] = true
	}
}

func (p *problems) configMaps(d *Deployment) {
	if len(d.ConfigText) > maxConfigMap {
		p.add("config: the file is larger than 512 KiB, the limit for a ConfigMap")
	}
	if len(d.ConfigText)+len(d.LockText) > largestConfigMap {
		p.add("lock: mcpd.hcl and mcpd.lock together are larger than 1 MiB, the limit for a ConfigMap; exclude unused tools of upstreams, and run mcpd lock accept")
	}
	if !p.few("tools", len(d.ToolFiles), maxToolFiles) {
		return
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(d.ToolFiles)) {
		total += len(d.ToolFiles[name])
		switch {
		case !toolPath(name):
			p.add("tools: %s cannot be the path of a file in a ConfigMap", clipped(name))
		case len(d.ToolFiles[name]) > maxConfigMap:
			p.add("tools: %s is larger than 512 KiB, the limit for a ConfigMap", clipped(name))
		default:
			p.folders(name, d.ToolFiles)
		}
	}
	if total > MaxTools {
		p.add("tools: all files together are larger than 8 MiB")
	}
}

func (p *problems) folders(name string, files map[string][]byte) {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if _, file := files[folder]; file {
			p.add("tools: %s is a file, but also the directory of %s", clipped(folder), clipped(name))
		}
	}
}

// upstreams checks each upstream and the uniqueness among them.
func (p *problems) upstreams(d *Deployment) {
	hosts, volumes := map[string]string{}, map[string]Volume{}
	for i := range d.Upstreams {
		u := &d.Upstreams[i]
		p.of("upstream", u.Name, func(p *problems) {
			host := u.host()
			other, taken := hosts[host]
			switch {
			case !container.IsLabel(host):
				p.add("its name must be a host name: at most 63 letters, digits, _ and -, starting with a letter and not ending in - or _")
			case container.ReservedBy(host) != "":
				p.add("the name is reserved: %s", container.ReservedBy(host))
			case taken:
				p.add("its host name, %s, is also that of %s", host, clipped(other))
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
		p.add("path: %s is not a URL path", clipped(u.Path))
	}
	if u.User < 1 || u.User > container.MaxUser {
		p.add("user: the id is not between 1 and %d; root is not allowed", container.MaxUser)
	}
	p.arguments("command", u.Command)
	p.arguments("health", u.Health)
	if len(u.Health) > 0 && u.Health[0] == "" {
		p.add("health: the program name is empty")
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

// volumes checks the volumes of an upstream, and that volumes with the same name agree.
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
		p.add("its name is not a DNS label: lower-case letters, digits and -")
	case v.Name == container.StateVolume:
		p.add("the name is reserved: mcpd keeps its state there")
	case taken && (other.Host != v.Host || other.Size != v.Size):
		p.add("another upstream sets a different host or size")
	}
	if v.Host != "" {
		p.file("host", v.Host)
	}
	if v.Size < 1 || v.Size > container.MaxMemory {
		p.add("size: the value is not between a byte and 1 PiB")
	}
	known[v.Name] = v
}

// target checks a mount path and returns the paths that are taken.
func (p *problems) target(what, target string, taken []string) []string {
	switch {
	case !container.IsFolder(target):
		p.add("%s: %s cannot be a mount path: use an absolute path of letters, digits and ._@+-, without . and .., outside of system directories", what, clipped(target))
	case slices.Contains(taken, target):
		p.add("%s: another mount is at %s", what, clipped(target))
	}
	return append(taken, target)
}
