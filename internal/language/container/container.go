// Package container defines the valid names, values and limits for containers of upstream
// servers.
//
// A container block in the config file and the generated files share one grammar: image names
// of Docker and Kubernetes, DNS labels, and mountable directories. [Host] and [URL] are the
// address of an upstream server.
//
// The package only checks text and numbers. Its callers read and write the files, and report
// errors.
package container

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The limits of a container.
const (
	MaxItems  = 64       // per list
	MaxText   = 8 << 10  // bytes per value or argument
	MinMemory = 16 << 20 // bytes
	MaxMemory = 1 << 50
	MaxCPU    = 1_000_000 // thousandths of a processor
	MaxUser   = 1 << 30   // above the ids that systems reserve
	// MinPort is the first port that users other than root can use.
	MinPort = 1024
	MaxPort = 65535
	// maxPath bounds a path, in bytes.
	maxPath = 1024
)

// DefaultPath is the default path of an MCP endpoint.
const DefaultPath = "/mcp"

// StateVolume is the volume for the state of mcpd.
const StateVolume = "mcpd-state"

// SecretFolder is the directory of secret files in a container.
const SecretFolder = "/run/secrets"

// once returns a function that compiles an expression on first use. Workers link this package
// but never use it; compiling at start would cost them half a millisecond.
func once(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

var (
	// label is a service name of Kubernetes (RFC 1035, section 2.3.1), so it is also a valid
	// container name.
	label   = once(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	urlPath = once(`^/[A-Za-z0-9._~!&'()*+,;=:@%/?-]*$`)
	mounted = once(`^(/[A-Za-z0-9._@+-]+)+$`)
	secret  = once(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)
	// image is a name with optional registry, tag and digest, by the reference grammar of
	// github.com/distribution/reference.
	image = once(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?/)?` +
		`[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*)*` +
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
)

// reserved maps host names that upstreams cannot have to their owners.
var reserved = map[string]string{
	"mcpd":      "it is the host name of mcpd",
	"localhost": "it is the name of each container for itself",
	"front":     "it is the network in front of mcpd",
}

// Host returns the host name of an upstream server. It must satisfy [IsLabel], and [ReservedBy]
// must return "" for it.
func Host(upstream string) string {
	return strings.ReplaceAll(strings.ToLower(upstream), "_", "-")
}

// ReservedBy returns the owner of a reserved host name, or "".
func ReservedBy(host string) string { return reserved[host] }

// URL returns the address at which mcpd reaches an upstream server.
func URL(upstream string, port int, path string) string {
	return fmt.Sprintf("http://%s:%d%s", Host(upstream), port, path)
}

// IsLabel reports whether a name is a DNS label for a service: at most 63 lower-case letters,
// digits and dashes; it starts with a letter and does not end with a dash.
func IsLabel(name string) bool { return label().MatchString(name) }

// IsImage reports whether a name is a valid image name, with or without registry, tag and
// digest.
func IsImage(name string) bool { return len(name) <= maxPath && image().MatchString(name) }

// HasMutableTag reports whether the name of an image may refer to another image later: it has
// no digest, and no tag or the tag latest.
func HasMutableTag(image string) bool {
	name, _, pinned := strings.Cut(path.Base(image), "@")
	_, tag, _ := strings.Cut(name, ":")
	return !pinned && (tag == "" || tag == "latest")
}

// IsPort reports whether a container can listen on a port.
func IsPort(port int) bool { return port >= MinPort && port <= MaxPort }

// IsURLPath reports whether a text is valid after the port in a URL.
func IsURLPath(name string) bool { return len(name) <= maxPath && urlPath().MatchString(name) }

// IsSecret reports whether name is a valid name of a secret, as a file and as a key in
// Kubernetes.
func IsSecret(name string) bool { return secret().MatchString(name) }

// IsText reports whether a text can be a value or an argument: UTF-8 without a NUL byte, of any
// length.
func IsText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// IsFile reports whether a path on the machine of Compose is in its shortest form.
func IsFile(name string) bool {
	return name != "" && len(name) <= maxPath && utf8.ValidString(name) && path.Clean(name) == strings.TrimPrefix(name, "./") &&
		!strings.ContainsFunc(name, unicode.IsControl)
}

// IsFolder reports whether a directory of a container can be mounted: its path is absolute and
// in its shortest form, and it is not a system directory or a directory that mcpd compose
// mounts.
func IsFolder(name string) bool {
	if len(name) > maxPath || !mounted().MatchString(name) || path.Clean(name) != name {
		return false
	}
	for _, kept := range []string{"/proc", "/sys", "/dev", SecretFolder, "/etc/mcpd"} {
		if name == kept || strings.HasPrefix(name, kept+"/") || strings.HasPrefix(kept, name+"/") {
			return false
		}
	}
	return true
}
