package compose

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/internal/language/container"
)

const maxKey = 253 // bytes of a key of a ConfigMap

var (
	variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`) })
	version      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`) })
)

// host returns the host name of an upstream.
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
