package compose

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/mcpd/mcpd/internal/base/yaml"
)

// The files of a deployment.
const (
	composeFile    = "docker-compose.yml"
	dockerFile     = "Dockerfile"
	namespaceFile  = "kubernetes/1-namespace.yaml"
	configMapsFile = "kubernetes/2-files.yaml"
	upstreamsFile  = "kubernetes/3-upstreams.yaml"
	serverFile     = "kubernetes/4-mcpd.yaml"
	unitFile       = "mcpd.service"
)

// names are those of all files that there may be, in their order. Manifests are
// applied in the order of their names.
var names = []string{composeFile, dockerFile, namespaceFile, configMapsFile, upstreamsFile, serverFile, unitFile}

// mark begins what written says in the first line of each file, behind "# ".
const mark = "Written by mcpd compose."

// written says in each file where it comes from.
const written = mark + " What is changed here is gone with its next run: change mcpd.hcl."

// File is a file of a deployment: its path, with slashes, from the folder of
// docker-compose.yml.
type File struct {
	Name    string
	Content []byte
}

// Written reports whether a file is one that [Files] has returned, then or now: its
// first line says so. Whoever takes that line out makes the file their own.
func Written(content []byte) bool { return bytes.HasPrefix(content, []byte("# "+mark)) }

// Files returns the files of a deployment in a fixed order: for Compose, to build
// the image, for Kubernetes and for systemd. The error, which may be several
// joined, names each upstream and each field that these files cannot express.
func Files(d Deployment) ([]File, error) {
	d = d.completed()
	if err := check(&d); err != nil {
		return nil, fmt.Errorf("write the deployment: %w", err)
	}
	var files []File
	for _, write := range []func(*Deployment) (File, error){
		project, recipe, namespace, configMaps, upstreamManifests, serverManifests, unit,
	} {
		f, err := write(&d)
		if err != nil {
			return nil, fmt.Errorf("write the deployment: %w", err)
		}
		if f.Content != nil {
			files = append(files, f)
		}
	}
	return files, nil
}

// Kind says how a file on the disk differs from the one that would be written.
type Kind string

// The kinds of differences.
const (
	Missing Kind = "missing" // it is not there
	Changed Kind = "changed" // it holds something else
	Stale   Kind = "stale"   // it is there, and would not be written any more
)

// Difference is a file that is not on the disk as it would be written.
type Difference struct {
	Name string
	Kind Kind
	// Line is the first one, from 1 on, that is another or missing in one of the two,
	// where the file has Changed. What stands there is not told: people paste secrets
	// into such files.
	Line int
}

// String returns the name, the line of what has changed, and the kind.
func (d Difference) String() string {
	if d.Kind == Changed {
		return fmt.Sprintf("%s:%d: %s", d.Name, d.Line, d.Kind)
	}
	return fmt.Sprintf("%s: %s", d.Name, d.Kind)
}

// Drift returns how the files that read finds differ from those that [Files]
// returned, in the order of those. read returns an error that is [fs.ErrNotExist]
// where there is no file; with every other one Drift fails.
func Drift(files []File, read func(name string) ([]byte, error)) ([]Difference, error) {
	var differences []Difference
	for _, name := range names {
		i := slices.IndexFunc(files, func(f File) bool { return f.Name == name })
		have, err := read(name)
		switch gone := errors.Is(err, fs.ErrNotExist); {
		case err != nil && !gone:
			return nil, fmt.Errorf("read %s: %w", name, err)
		case gone && i >= 0:
			differences = append(differences, Difference{Name: name, Kind: Missing})
		case !gone && i < 0:
			differences = append(differences, Difference{Name: name, Kind: Stale})
		case !gone && !bytes.Equal(have, files[i].Content):
			differences = append(differences, Difference{name, Changed, differing(have, files[i].Content)})
		}
	}
	return differences, nil
}

// differing returns the first line in which two texts differ, which they do.
func differing(a, b []byte) int {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	return 1 + bytes.Count(a[:same], []byte("\n"))
}

const (
	program   = "github.com/mcpd/mcpd/cmd/mcpd"
	goVersion = "1.26" // of go.mod
)

//go:embed Dockerfile.tmpl
var recipeText string

// recipe returns the Dockerfile of mcpd.
func recipe(d *Deployment) (File, error) {
	return filled(dockerFile, recipeText, map[string]any{
		"Written": written, "Go": goVersion, "Module": program, "Version": d.Version, "User": DefaultUser, "Port": d.Port,
	})
}

// filled returns a file that is made of a template. All that is put into it has
// been checked, or is escaped for the file.
func filled(name, text string, data map[string]any) (File, error) {
	t, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return File{}, fmt.Errorf("%s: read its template: %w", name, err)
	}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return File{}, fmt.Errorf("%s: fill its template: %w", name, err)
	}
	return File{name, []byte(b.String())}, nil
}

//go:embed mcpd.service.tmpl
var unitText string

// unit returns the unit of systemd for an mcpd that runs on this machine without
// a container. It is the one of examples/systemd, with the credentials, the
// variables and the memory of the deployment.
func unit(d *Deployment) (File, error) {
	state := "memory"
	if d.State {
		state = "%S/mcpd/mcpd.db"
	}
	var assignments, withheld []string
	for _, v := range d.Env {
		if v.Secret != "" {
			withheld = append(withheld, v.Name)
			continue
		}
		assignments = append(assignments, assigned(v))
	}
	var elsewhere []string
	for i := range d.Upstreams {
		elsewhere = append(elsewhere, d.Upstreams[i].host())
	}
	return filled(unitFile, unitText, map[string]any{
		"Written": written, "State": state, "Reads": d.Reads, "Environment": assignments, "Withheld": strings.Join(withheld, ", "),
		"Memory": unitAmount(d.Memory), "Locked": d.LockText != nil, "Elsewhere": strings.Join(elsewhere, ", "),
	})
}

// unitAmount returns bytes as systemd has them: in GiB or MiB where these are
// whole.
func unitAmount(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return amount(bytes>>10, "G", "")
	}
	return amount(bytes, "M", "")
}

// assigned returns a variable as one word of Environment= (systemd.exec(5)): in
// quotes, with the escapes of C, and without specifiers. Its only control characters
// are tabs and line ends.
func assigned(v Variable) string {
	var b strings.Builder
	b.WriteString(`"` + v.Name + "=")
	for _, c := range v.Value {
		switch c {
		case '"', '\\':
			b.WriteString(`\` + string(c))
		case '\n':
			b.WriteString(`\n`)
		case '%':
			b.WriteString("%%")
		default:
			b.WriteRune(c)
		}
	}
	return b.String() + `"`
}

// member is a member of a mapping, with what people are told of it.
type member struct {
	name  string
	value any
	note  string
}

func is(name string, value any) member { return member{name: name, value: value} }

// because returns the member with a comment above it.
func (m member) because(note string) member {
	m.note = note
	return m
}

// when returns the member if it is wanted, and otherwise one that is left out.
func (m member) when(wanted bool) member {
	if !wanted {
		m.value = nil
	}
	return m
}

// mapping returns what the members make, but for those without a value: nil, and
// lists of nothing.
func mapping(members ...member) *yaml.Map {
	m := &yaml.Map{}
	for _, one := range members {
		if list, ok := one.value.([]any); one.value == nil || ok && len(list) == 0 {
			continue
		}
		m.Names, m.Values, m.Notes = append(m.Names, one.name), append(m.Values, one.value), append(m.Notes, one.note)
	}
	return m
}

// each returns the list of what f makes of the items.
func each[T any](items []T, f func(T) any) []any {
	var list []any
	for _, item := range items {
		list = append(list, f(item))
	}
	return list
}

func texts(items ...string) []any {
	return each(items, func(text string) any { return text })
}

// literals returns a list of texts in which $ stands for itself.
func literals(items []string) []any {
	return each(items, func(text string) any { return literal(text) })
}

// literal returns what stands for a text where $ begins something else. Compose
// interpolates every text, and Kubernetes expands $(NAME) in arguments and
// values of variables; both take $$ for $.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

func number[T int | int64](n T) json.Number { return json.Number(strconv.FormatInt(int64(n), 10)) }

// file returns documents as one YAML file, below a comment.
func file(name, head string, documents ...*yaml.Map) (File, error) {
	var text []byte
	for line := range strings.SplitSeq(head, "\n") {
		text = append(append(append(text, "# "...), line...), '\n')
	}
	for i, d := range documents {
		if i > 0 {
			// Some tools cut the line end off in front of a separator: an empty line is
			// in between, so that they take none of a text that ends the document.
			text = append(text, "\n---\n"...)
		}
		part := yaml.Append(nil, d)
		if len(part) > yaml.MaxPrinted {
			return File{}, fmt.Errorf("%s: a document in it would be longer than 16 MiB", name)
		}
		text = append(text, part...)
	}
	return File{name, text}, nil
}
