package compose

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxPath = 1024    // bytes of any path
	maxUser = 1 << 30 // below what systems keep for themselves
	maxKey  = 253     // bytes of a key of a ConfigMap
)

var (
	// label is a name of a service in Kubernetes (RFC 1035, section 2.3.1), and so also
	// one of a container.
	label        = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	secretName   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	version      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`)
	urlPath      = regexp.MustCompile(`^/[A-Za-z0-9._~!&'()*+,;=:@%/?-]*$`)
	mounted      = regexp.MustCompile(`^(/[A-Za-z0-9._@+-]+)+$`)
	// image is a name, with a registry, a tag and a digest if it has them, as the
	// reference grammar of github.com/distribution/reference has it.
	image = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?/)?` +
		`[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*)*` +
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
)

// host returns the host name of an upstream.
func (u *Upstream) host() string {
	return strings.ReplaceAll(strings.ToLower(u.Name), "_", "-")
}

// url returns where mcpd reaches an upstream.
func (u *Upstream) url() string {
	return fmt.Sprintf("http://%s:%d%s", u.host(), u.Port, u.Path)
}

// clipped returns a name as it is told in errors.
func clipped(name string) string {
	const most = 80
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}

func (p *problems) name(what, name string) {
	if !label.MatchString(name) {
		p.add("%s: %s is no DNS label: lower-case letters, digits and -, 63 of them at most, of which the first is a letter", what, clipped(name))
	}
}

func (p *problems) image(name string) {
	if !image.MatchString(name) || len(name) > maxPath {
		p.add("image: %s is no name of an image", clipped(name))
	}
}

func (p *problems) port(port int) {
	// The user of a container is not root, and cannot have the ports below.
	if port < 1024 || port > 65535 {
		p.add("port: %d is not between 1024 and 65535", port)
	}
}

// text looks at a value or an argument, of which nothing is told.
func (p *problems) text(text string) {
	switch {
	case len(text) > MaxText:
		p.add("a text is longer than 8 KiB")
	case !utf8.ValidString(text):
		p.add("a text is not UTF-8")
	case strings.ContainsRune(text, 0):
		p.add("a text has a zero byte")
	}
}

// file looks at a path of the machine on which Compose runs.
func (p *problems) file(what, name string) {
	if name == "" || len(name) > maxPath || !utf8.ValidString(name) || path.Clean(name) != strings.TrimPrefix(name, "./") ||
		strings.ContainsFunc(name, unicode.IsControl) {
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

// containerPath reports whether a folder can be mounted there: it is none of the
// system's and of those that these files mount themselves.
func containerPath(name string) bool {
	if !mounted.MatchString(name) || path.Clean(name) != name || len(name) > maxPath {
		return false
	}
	for _, kept := range []string{"/proc", "/sys", "/dev", "/run/secrets", "/etc/mcpd"} {
		if name == kept || strings.HasPrefix(name, kept+"/") || strings.HasPrefix(kept, name+"/") {
			return false
		}
	}
	return true
}

// toolPath reports whether a file of the tools folder can be an item of a volume
// of Kubernetes: validateLocalDescendingPath and validateLocalNonReservedPath of
// its core API want no element that is "..", and no path that begins with "..".
func toolPath(name string) bool {
	return fs.ValidPath(name) && name != "." && len(name) <= maxKey && !strings.HasPrefix(name, "..")
}
