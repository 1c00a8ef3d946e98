// Package container says what the containers of upstream servers may be called,
// hold and take.
//
// A container block of the operator's file and the files that are written of it
// have one grammar: images as Docker and Kubernetes know them, names that are
// DNS labels, folders that can be mounted. [Host] and [URL] are where mcpd finds
// the server of an upstream.
//
// The package only looks at texts and numbers: it knows neither the files that
// they come from nor those that they go into, and says nothing of what is wrong.
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

// The bounds of a container.
const (
	MaxItems  = 64       // of each list
	MaxText   = 8 << 10  // bytes of a value or an argument
	MinMemory = 16 << 20 // bytes
	MaxMemory = 1 << 50
	MaxCPU    = 1_000_000 // thousandths of a processor
	MaxUser   = 1 << 30   // below what systems keep for themselves
	// MinPort is the first port that a user has who is not root.
	MinPort = 1024
	MaxPort = 65535
	// maxPath bounds any path, in bytes.
	maxPath = 1024
)

// DefaultPath is where an MCP server has its endpoint that says nothing of it.
const DefaultPath = "/mcp"

// StateVolume is the volume in which mcpd keeps its state.
const StateVolume = "mcpd-state"

// SecretFolder is where a container finds the secrets that it reads as files.
const SecretFolder = "/run/secrets"

// once returns a function that compiles an expression when it is first called. Workers
// have this package too and never call it; at their start these would take half a millisecond.
func once(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

var (
	// label is a name of a service in Kubernetes (RFC 1035, section 2.3.1), and so also
	// one of a container.
	label   = once(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	urlPath = once(`^/[A-Za-z0-9._~!&'()*+,;=:@%/?-]*$`)
	mounted = once(`^(/[A-Za-z0-9._@+-]+)+$`)
	secret  = once(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)
	// image is a name, with a registry, a tag and a digest if it has them, as the
	// reference grammar of github.com/distribution/reference has it.
	image = once(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?/)?` +
		`[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*)*` +
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
)

// reserved are host names that no upstream can have, with who has them.
var reserved = map[string]string{
	"mcpd":      "that is the host name of mcpd itself",
	"localhost": "that is the name of each container for itself",
	"front":     "that is the network in front of mcpd",
}

// Host returns the host name of the server of an upstream, which has to be one
// that [IsLabel] accepts and [Reserved] knows nothing of.
func Host(upstream string) string {
	return strings.ReplaceAll(strings.ToLower(upstream), "_", "-")
}

// Reserved says who has a host name that no upstream can have, "" for the others.
func ReservedBy(host string) string { return reserved[host] }

// URL returns where mcpd reaches the server of an upstream.
func URL(upstream string, port int, path string) string {
	return fmt.Sprintf("http://%s:%d%s", Host(upstream), port, path)
}

// IsLabel reports whether a name is a DNS label as services have it: lower-case
// letters, digits and -, 63 of them at most, of which the first is a letter and
// the last no -.
func IsLabel(name string) bool { return label().MatchString(name) }

// IsImage reports whether a name is one of an image, with a registry, a tag and a
// digest or without.
func IsImage(name string) bool { return len(name) <= maxPath && image().MatchString(name) }

// Moves reports whether the name of an image can mean another one tomorrow without
// anybody having been told: it has no digest, and no tag or the tag latest.
func HasMutableTag(image string) bool {
	name, _, pinned := strings.Cut(path.Base(image), "@")
	_, tag, _ := strings.Cut(name, ":")
	return !pinned && (tag == "" || tag == "latest")
}

// IsPort reports whether a container can listen on a port.
func IsPort(port int) bool { return port >= MinPort && port <= MaxPort }

// IsURLPath reports whether a text is what stands in a URL behind the port.
func IsURLPath(name string) bool { return len(name) <= maxPath && urlPath().MatchString(name) }

// IsSecret reports whether a secret can be called so, as a file and as a key of
// Kubernetes.
func IsSecret(name string) bool { return secret().MatchString(name) }

// IsText reports whether a text can be a value or an argument: it is UTF-8 without
// a zero byte. How long it is does not matter.
func IsText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// IsFile reports whether a path of the machine on which Compose runs is in its
// shortest form.
func IsFile(name string) bool {
	return name != "" && len(name) <= maxPath && utf8.ValidString(name) && path.Clean(name) == strings.TrimPrefix(name, "./") &&
		!strings.ContainsFunc(name, unicode.IsControl)
}

// IsFolder reports whether a folder of a container can be mounted: its path is
// absolute and in its shortest form, and it is neither one of the system's nor
// one of those that mcpd compose mounts itself.
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
