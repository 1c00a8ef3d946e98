// Package compose writes the deployment files for mcpd and its upstream MCP servers.
//
// A [Deployment] describes mcpd and the [Upstream] servers in containers. [Files] turns
// it into a docker-compose.yml, a Dockerfile, Kubernetes manifests and a systemd unit;
// the output is deterministic. [Drift] compares the files on a disk with the output.
//
// Containers have minimal privileges: a non-root user, a read-only file system, no
// capabilities, limits for memory, CPU and processes, and a network with only mcpd on
// it. Upstreams are reachable only through mcpd, which applies policies and writes the
// audit log.
//
// The package does no I/O and knows no secret values: the files refer to secrets by
// name. It rejects a deployment that the files cannot express exactly.
package compose

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/language/container"
)

// Defaults of a deployment.
const (
	DefaultPort           = 8080
	DefaultUser           = 65532   // "nonroot" of distroless images
	DefaultMemory         = 4 << 30 // bytes, for mcpd; as in the systemd unit
	DefaultUpstreamMemory = 512 << 20
	DefaultCPU            = 2000 // thousandths of a processor, for mcpd
	DefaultUpstreamCPU    = 1000
	DefaultVolume         = 1 << 30 // bytes
	DefaultGrace          = 10 * time.Second
)

// Deployment is mcpd and its upstream servers. Paths have slashes; relative ones are
// relative to the directory of docker-compose.yml.
type Deployment struct {
	// Name is the name of the Compose project and of the Kubernetes namespace, a DNS
	// label.
	Name string
	// Image is the name of the mcpd image that the Dockerfile builds, without a digest.
	Image string
	// Version is the version of mcpd that the Dockerfile builds: a tag such as v1.2.3,
	// or a commit.
	Version string
	// Port is the HTTP port of mcpd, inside and outside of its container. 0 means
	// [DefaultPort].
	Port int
	// TLS reports a tls block in mcpd.hcl, and Auth an auth block that requires a
	// credential.
	TLS, Auth bool
	// Insecure allows serving without TLS or Auth. Then only this machine can connect,
	// and in Kubernetes only pods with a label.
	Insecure bool
	// Config and Tools are the paths of mcpd.hcl and of the tools directory, which
	// Compose mounts. Kubernetes gets ConfigText and ToolFiles, a map by path in the
	// directory.
	Config, Tools string
	ConfigText    []byte
	ToolFiles     map[string][]byte
	// LockText is the content of the lock file, which is mcpd.lock beside Config in each
	// deployment; nil if there is none.
	LockText []byte
	// State mounts a volume at /var/lib/mcpd: for the state of mcpd, unless it is in a
	// Database, and for files such as its audit log.
	State bool
	// Database means that a state block of mcpd.hcl names the database of the state.
	Database bool
	// Replicas is the number of mcpd that share the Database; 0 means 1. With State,
	// each one has a volume of its own. Compose, which runs on one machine, then has
	// only one.
	Replicas int
	// Peers is the port for requests that replicas forward to each other. 0 means that
	// they forward none, so that each client must keep its replica.
	Peers int
	// Grace is the time for running calls of mcpd at shutdown, in whole seconds; 0 means
	// [DefaultGrace].
	Grace time.Duration
	// Helm also writes a Helm chart with the Kubernetes objects.
	Helm bool
	Limits
	Env []Variable
	// Secrets are all known secrets. Reads names those that mcpd reads as files,
	// /run/secrets/NAME.
	Secrets   []Secret
	Reads     []string
	Upstreams []Upstream
}

// Limits are the resource limits of a container.
type Limits struct {
	Memory int64 // bytes; 0 means the default
	CPU    int   // thousandths of a processor; 0 means the default
}

// Secret is a secret value, which no file contains. In Kubernetes it is a key of the
// Secret "secrets"; for systemd it is a credential.
type Secret struct {
	Name string
	// Environment is the variable with the value in the environment of Compose, for
	// consumers that need a variable. File is the file with the value, for consumers
	// that need a file: Compose can put no other value into a read-only container.
	// Exactly one is set.
	Environment, File string
}

// Variable is an environment variable of a container.
type Variable struct {
	Name string
	// Value is the literal value; nothing in it is expanded.
	Value string
	// Secret, if set instead of Value, is the name of a secret with an Environment; for
	// Compose it becomes ${NAME}.
	Secret string
}

// Upstream is an MCP server in a container. A container block of mcpd.hcl defines it,
// so that mcpd knows its host name, port and path.
type Upstream struct {
	// Name is the name of the upstream in mcpd.hcl. In lower case and with - for _ it
	// is the host name, which must be a unique DNS label.
	Name  string
	Image string
	Port  int
	// Path is the path of the MCP endpoint; "" means [container.DefaultPath].
	Path string
	// Command replaces the command of the image, after its entry point.
	Command []string
	Env     []Variable
	// Reads are the names of secrets that it reads as files, /run/secrets/NAME.
	Reads   []string
	Volumes []Volume
	// Writable are writable directories in addition to /tmp. They are empty at the
	// start.
	Writable []string
	// User is the id of its user and group, not root; 0 means [DefaultUser].
	User int
	// Internet allows connections to Internet addresses. No upstream reaches another
	// one, and in Kubernetes none reaches private addresses.
	Internet bool
	// Health is a program of the image with arguments that exits with 0 if the server
	// is ready. Without it, Compose checks only that the container runs, and Kubernetes
	// that the port is open.
	Health []string
	Limits
}

// Volume is a persistent directory. Upstreams share volumes with the same name, which
// must agree on Host and Size.
type Volume struct {
	Name string // a DNS label
	// Host is a directory of this machine that Compose mounts instead of a volume.
	// Kubernetes uses a claim with the name anyway.
	Host     string
	Target   string // mount path in the container
	ReadOnly bool
	Size     int64 // bytes of the claim in Kubernetes; 0 means [DefaultVolume]
}

// OpenListen is the error of a deployment that is [Deployment.Open].
const OpenListen = "listen: serving beyond loopback needs auth and tls blocks; to serve without them, use --insecure-listen"

// Open reports whether anyone could call mcpd without an explicit Insecure.
func (d *Deployment) Open() bool { return !(d.TLS && d.Auth) && !d.Insecure }

// completed returns a copy of the deployment with defaults filled in.
func (d Deployment) completed() Deployment {
	fill(&d.Port, DefaultPort)
	fill(&d.Replicas, 1)
	fill(&d.Grace, DefaultGrace)
	fill(&d.Memory, DefaultMemory)
	fill(&d.CPU, DefaultCPU)
	d.Upstreams = append([]Upstream(nil), d.Upstreams...)
	for i := range d.Upstreams {
		u := &d.Upstreams[i]
		fill(&u.Path, container.DefaultPath)
		fill(&u.User, DefaultUser)
		fill(&u.Memory, DefaultUpstreamMemory)
		fill(&u.CPU, DefaultUpstreamCPU)
		u.Volumes = append([]Volume(nil), u.Volumes...)
		for j := range u.Volumes {
			fill(&u.Volumes[j].Size, DefaultVolume)
		}
	}
	return d
}

func fill[T comparable](v *T, to T) {
	var none T
	if *v == none {
		*v = to
	}
}

// secret returns the secret with a name, which must exist.
func (d *Deployment) secret(name string) Secret {
	for _, s := range d.Secrets {
		if s.Name == name {
			return s
		}
	}
	return Secret{}
}

const maxKey = 253 // bytes of a key of a ConfigMap

var (
	variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`) })
	version      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`) })
)

func (u *Upstream) host() string { return container.Host(u.Name) }

// clipped returns a name for errors, truncated.
func clipped(name string) string {
	const limit = 80
	if len(name) > limit {
		name = strings.ToValidUTF8(name[:limit], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}

func (p *problems) name(what, name string) {
	if !container.IsLabel(name) {
		p.add("%s: %s is not a DNS label: at most 63 lower-case letters, digits and -, starting with a letter", what, clipped(name))
	}
}

func (p *problems) image(name string) {
	if !container.IsImage(name) {
		p.add("image: %s is not an image name", clipped(name))
	}
}

func (p *problems) port(port int) {
	if !container.IsPort(port) {
		p.add("port: %d is not between %d and %d", port, container.MinPort, container.MaxPort)
	}
}

// text checks a value or argument. Errors do not contain it.
func (p *problems) text(text string) {
	switch {
	case len(text) > container.MaxText:
		p.add("a text is longer than 8 KiB")
	case !container.IsText(text):
		p.add("a text is not UTF-8, or has a zero byte")
	}
}

// file checks a path on the machine that runs Compose.
func (p *problems) file(what, name string) {
	if !container.IsFile(name) {
		p.add("%s: %s is not a clean path", what, clipped(name))
	}
}

func (p *problems) relative(what, name string) {
	if strings.HasPrefix(name, "/") {
		p.add("%s: %s is not relative to the directory of docker-compose.yml", what, clipped(name))
		return
	}
	p.file(what, name)
}

// toolPath reports whether a tool file can be an item of a Kubernetes volume.
// validateLocalDescendingPath and validateLocalNonReservedPath of the core API reject
// an element ".." and a path that starts with "..".
func toolPath(name string) bool {
	return fs.ValidPath(name) && name != "." && len(name) <= maxKey && !strings.HasPrefix(name, "..")
}
