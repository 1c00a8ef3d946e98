package files

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/scripting"
)

// The bounds of a path.
const (
	maxPath  = 4096
	maxName  = 255
	maxDepth = 64
)

// What files are called while they are written. No script reaches them.
const (
	tempPrefix = ".mcpd-"
	tempSuffix = ".tmp"
)

// parsePath returns the path below the root that a script means: in canonical
// form, with forward slashes, "." for the root itself. It looks at no file.
func parsePath(given string, roots ...string) (string, error) {
	switch {
	case given == "":
		return "", fault(scripting.Invalid, "", "the path is empty")
	case len(given) > maxPath:
		return "", fault(scripting.Invalid, "", "the path has more than %d bytes", maxPath)
	case strings.ContainsFunc(given, unfit) || !utf8.ValidString(given):
		return "", fault(scripting.Invalid, given, "a path holds no control characters and no broken ones")
	case strings.Contains(given, `\`) || hasDrive(given):
		return "", fault(scripting.Invalid, given, "a path has forward slashes, and no drive")
	case slices.Contains(strings.Split(given, "/"), ".."):
		return "", fault(scripting.OutsideRoot, given, "a path does not go up with ..")
	}
	name := path.Clean(given)
	if path.IsAbs(name) {
		below := false
		for _, root := range roots {
			if rest, ok := cutRoot(name, filepath.ToSlash(root)); ok {
				name, below = rest, true
				break
			}
		}
		if !below {
			return "", fault(scripting.OutsideRoot, given, "the path is outside of the root")
		}
	}
	return name, checkNames(given, name)
}

// checkNames refuses elements of a path that some system reads in another way
// than they are written.
func checkNames(given, name string) error {
	if name == "." {
		return nil
	}
	names := strings.Split(name, "/")
	if len(names) > maxDepth {
		return fault(scripting.Invalid, given, "the path has more than %d elements", maxDepth)
	}
	for _, one := range names {
		if problem := checkName(one); problem != "" {
			return fault(scripting.Invalid, given, "%s", problem)
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return fault(scripting.Invalid, given, "this system has no such file names")
	}
	return nil
}

// checkName says what keeps a name from being used.
func checkName(name string) string {
	switch {
	case len(name) > maxName:
		return "a name in a path has at most 255 bytes"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "a name in a path does not end with a dot or a space"
	case isTemp(name):
		return "names like " + tempPrefix + "*" + tempSuffix + " are of files that are being written"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unfit) || strings.ContainsAny(name, `/\`) || hasDrive(name):
		return "the name cannot be written in a path"
	}
	return ""
}

func isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// unfit reports characters that nobody sees, or that stand for broken ones.
func unfit(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// hasDrive reports a path that begins like C: on Windows.
func hasDrive(p string) bool {
	return len(p) > 1 && p[1] == ':' && (p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z')
}

// cutRoot returns the rest of a path below a root, by whole elements.
func cutRoot(name, root string) (rest string, ok bool) {
	if root == "" || !path.IsAbs(root) {
		return "", false
	}
	if name == root {
		return ".", true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/")
}
