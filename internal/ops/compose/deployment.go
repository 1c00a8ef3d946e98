// Package compose writes the files with which mcpd is deployed beside the MCP
// servers that it federates.
//
// A [Deployment] says what is to run: mcpd, and [Upstream] servers in
// containers. [Files] makes of it, byte for byte the same each time, a
// docker-compose.yml, a Dockerfile, the manifests of Kubernetes and a unit of
// systemd. [Drift] tells how files on a disk differ from those.
//
// What runs has no more than it needs: a user that is not root, a file system
// that it cannot write, no capabilities, bounded memory, processors and
// processes, and a network on which it meets mcpd and nobody else. Upstreams
// are reached through mcpd alone, where calls are judged and written down.
//
// The package reads and writes no disk, starts nothing, and knows no values of
// secrets: files name them, and whoever deploys provides them. It refuses a
// deployment that these files cannot express, rather than to express something
// near it.
package compose

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/internal/language/container"
)

// What a deployment has that says nothing of it.
const (
	DefaultPort           = 8080
	DefaultUser           = 65532   // "nonroot" of distroless images
	DefaultMemory         = 4 << 30 // bytes, of mcpd: as the unit of systemd has it
	DefaultUpstreamMemory = 512 << 20
	DefaultCPU            = 2000 // thousandths of a processor, of mcpd
	DefaultUpstreamCPU    = 1000
	DefaultVolume         = 1 << 30 // bytes
)

// Deployment is mcpd and the upstream servers beside it. Paths have slashes, and
// relative ones begin in the folder of docker-compose.yml.
type Deployment struct {
	// Name is that of the project of Compose and of the namespace of Kubernetes: a
	// DNS label.
	Name string
	// Image is what the image of mcpd is called that the Dockerfile makes, without a
	// digest.
	Image string
	// Version is that of mcpd which the Dockerfile builds: a tag, as in v1.2.3, or a
	// commit.
	Version string
	// Port is where mcpd serves HTTP, in its container and outside of it. 0 is
	// [DefaultPort].
	Port int
	// TLS says that mcpd.hcl has a tls block, and Auth that it has auth blocks that
	// demand a credential.
	TLS, Auth bool
	// Insecure says that mcpd shall serve beyond loopback without both of those. Then this
	// machine alone reaches it, and in Kubernetes those pods that bear a label.
	Insecure bool
	// Config and Tools are the paths of mcpd.hcl and of the folder of tools, which
	// Compose mounts. Kubernetes is given ConfigText and ToolFiles, the latter by their
	// paths in the folder.
	Config, Tools string
	ConfigText    []byte
	ToolFiles     map[string][]byte
	// LockText is that of the file of the accepted tools of upstreams, which stands
	// beside Config as mcpd.lock, and there in each deployment; nil where there is none.
	LockText []byte
	// State says that mcpd keeps its state, and may keep its audit log, in a volume at
	// /var/lib/mcpd.
	State bool
	Limits
	Env []Variable
	// Secrets are all that are known. Reads are the names of those that mcpd finds as
	// files, /run/secrets/NAME.
	Secrets   []Secret
	Reads     []string
	Upstreams []Upstream
}

// Limits bound what a container takes.
type Limits struct {
	Memory int64 // bytes; 0 is the default
	CPU    int   // thousandths of a processor; 0 is the default
}

// Secret is a value that none of the files has. In Kubernetes it is a key, by
// its name, of the Secret "secrets"; for the service of systemd, a credential.
type Secret struct {
	Name string
	// Environment is the variable of who starts Compose that has the value, for those
	// who want it in a variable. File has it for those who read it as a file: Compose
	// puts no other value into a container that cannot be written. It is one of both.
	Environment, File string
}

// Variable is a variable of the environment of a container.
type Variable struct {
	Name string
	// Value is what it holds, to the letter: nothing in it stands for something else.
	Value string
	// Secret, if it is set in place of Value, is the name of the secret that it holds,
	// which has an Environment: ${NAME} for Compose.
	Secret string
}

// Upstream is an MCP server in a container. mcpd.hcl has a container block of it, by
// which mcpd knows its host name, its port and its path.
type Upstream struct {
	// Name is that of the upstream in mcpd.hcl. In lower case and with - for _ it is
	// its host name, and has to be a DNS label that no other has.
	Name  string
	Image string
	Port  int
	// Path is that of its MCP endpoint, or "" for [container.DefaultPath].
	Path string
	// Command takes the place of the command of the image, behind its entry point.
	Command []string
	Env     []Variable
	// Reads are the names of secrets that it finds as files, /run/secrets/NAME.
	Reads   []string
	Volumes []Volume
	// Writable are folders, beside /tmp, that it may write to and that are empty when
	// it starts.
	Writable []string
	// User is the number of its user and group, which is not root; 0 is [DefaultUser].
	User int
	// Internet says that it may reach addresses of the Internet. No upstream reaches
	// another one, and in Kubernetes none reaches private addresses.
	Internet bool
	// Health is a program of the image, with its arguments, that ends with 0 when the
	// server can be used. Without one Compose knows only that it runs, and Kubernetes
	// whether its port is open.
	Health []string
	Limits
}

// Volume is a folder that outlives its container. Upstreams share those of one
// name, which have to say the same of Host and Size.
type Volume struct {
	Name string // a DNS label
	// Host is a folder of this machine that Compose takes in place of a volume.
	// Kubernetes has a claim of the name all the same.
	Host     string
	Target   string // where it stands in the container
	ReadOnly bool
	Size     int64 // bytes, of the claim in Kubernetes; 0 is [DefaultVolume]
}

// OpenListen is what is wrong with a deployment that is [Deployment.Open].
const OpenListen = "listen: mcpd does not serve beyond loopback without auth and tls blocks, unless it is told to (--insecure-listen)"

// Open reports whether mcpd would let in strangers, and nobody has said that it shall.
func (d *Deployment) Open() bool { return !(d.TLS && d.Auth) && !d.Insecure }

// completed returns the deployment with what it says nothing of. Nothing of the
// caller's is changed.
func (d Deployment) completed() Deployment {
	fill(&d.Port, DefaultPort)
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

// secret returns the secret of a name, which is known to exist.
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

// clipped returns a name as it is told in errors.
func clipped(name string) string {
	const most = 80
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}

func (p *problems) name(what, name string) {
	if !container.IsLabel(name) {
		p.add("%s: %s is no DNS label: lower-case letters, digits and -, 63 of them at most, of which the first is a letter", what, clipped(name))
	}
}

func (p *problems) image(name string) {
	if !container.IsImage(name) {
		p.add("image: %s is no name of an image", clipped(name))
	}
}

func (p *problems) port(port int) {
	if !container.IsPort(port) {
		p.add("port: %d is not between %d and %d", port, container.MinPort, container.MaxPort)
	}
}

// text looks at a value or an argument, of which nothing is told.
func (p *problems) text(text string) {
	switch {
	case len(text) > container.MaxText:
		p.add("a text is longer than 8 KiB")
	case !container.IsText(text):
		p.add("a text is not UTF-8, or has a zero byte")
	}
}

// file looks at a path of the machine on which Compose runs.
func (p *problems) file(what, name string) {
	if !container.IsFile(name) {
		p.add("%s: %s is no path in its shortest form", what, clipped(name))
	}
}

func (p *problems) relative(what, name string) {
	if strings.HasPrefix(name, "/") {
		p.add("%s: %s is not relative to the folder of docker-compose.yml", what, clipped(name))
		return
	}
	p.file(what, name)
}

// toolPath reports whether a file of the tools folder can be an item of a volume
// of Kubernetes: validateLocalDescendingPath and validateLocalNonReservedPath of
// its core API want no element that is "..", and no path that begins with "..".
func toolPath(name string) bool {
	return fs.ValidPath(name) && name != "." && len(name) <= maxKey && !strings.HasPrefix(name, "..")
}
