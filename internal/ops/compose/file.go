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

// Files of a deployment.
const (
	composeFile    = "docker-compose.yml"
	dockerFile     = "Dockerfile"
	namespaceFile  = "kubernetes/1-namespace.yaml"
	configMapsFile = "kubernetes/2-files.yaml"
	upstreamsFile  = "kubernetes/3-upstreams.yaml"
	serverFile     = "kubernetes/4-mcpd.yaml"
	unitFile       = "mcpd.service"
	chartFolder    = "helm/"
	chartFile      = chartFolder + "Chart.yaml"
	valuesFile     = chartFolder + "values.yaml"
)

// names lists all possible files in order. Manifests are applied in the order of their
// names.
var names = []string{
	composeFile, dockerFile, namespaceFile, configMapsFile, upstreamsFile, serverFile, unitFile,
	chartFile, valuesFile, templateOf(namespaceFile), templateOf(configMapsFile), templateOf(upstreamsFile), templateOf(serverFile),
}

// mark is the start of the first line of each file, after "# ".
const mark = "Written by mcpd compose."

// written is the first line of each file.
const written = mark + " Do not edit: change mcpd.hcl and run mcpd compose again."

// File is a file of a deployment. Its path has slashes and is relative to the directory
// of docker-compose.yml.
type File struct {
	Name    string
	Content []byte
}

// Written reports whether [Files] of this or another version wrote a file, by its first
// line. A user who removes that line takes over the file.
func Written(content []byte) bool { return bytes.HasPrefix(content, []byte("# "+mark)) }

// Files returns the files of a deployment in a fixed order: for Compose, for the image,
// for Kubernetes, for systemd and for Helm. The error, possibly several joined ones, names each
// upstream and field that cannot be expressed.
func Files(d Deployment) ([]File, error) {
	d = d.completed()
	if err := check(&d); err != nil {
		return nil, fmt.Errorf("write deployment: %w", err)
	}
	plain := &objects{Deployment: &d}
	all := []func() (File, error){
		d.project, d.recipe, plain.namespace, plain.configMaps, plain.upstreamManifests, plain.serverManifests, d.unit,
	}
	if d.Helm {
		chart := &objects{Deployment: &d, chart: true}
		all = append(all, d.chart, d.values, chart.namespace, chart.configMaps, chart.upstreamManifests, chart.serverManifests)
	}
	var files []File
	for _, write := range all {
		f, err := write()
		if err != nil {
			return nil, fmt.Errorf("write deployment: %w", err)
		}
		if f.Content != nil {
			files = append(files, f)
		}
	}
	return files, nil
}

// Kind is a kind of difference between a file on the disk and the expected file.
type Kind string

// Kinds of differences.
const (
	Missing Kind = "missing" // the file is missing
	Changed Kind = "changed" // the content differs
	Stale   Kind = "stale"   // the file is no longer part of the deployment
)

// Difference is a file that differs from its expected content.
type Difference struct {
	Name string
	Kind Kind
	// Line is the first different line, from 1, of a Changed file. The content is not
	// included, since users may paste secrets into such files.
	Line int
}

// String returns the name, the line if any, and the kind.
func (d Difference) String() string {
	if d.Kind == Changed {
		return fmt.Sprintf("%s:%d: %s", d.Name, d.Line, d.Kind)
	}
	return fmt.Sprintf("%s: %s", d.Name, d.Kind)
}

// Drift compares the files from [Files] with the files that read returns, in order.
// read returns an error that is [fs.ErrNotExist] for a missing file; any other error
// makes Drift fail.
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
		case !gone && i < 0 && strings.HasPrefix(name, chartFolder) && !Written(have):
			// Without --helm, the folder may have another chart.
		case !gone && i < 0:
			differences = append(differences, Difference{Name: name, Kind: Stale})
		case !gone && !bytes.Equal(have, files[i].Content):
			differences = append(differences, Difference{name, Changed, differing(have, files[i].Content)})
		}
	}
	return differences, nil
}

// differing returns the first different line of two texts that differ.
func differing(a, b []byte) int {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	return 1 + bytes.Count(a[:same], []byte("\n"))
}

const (
	program   = "github.com/mcpd/mcpd/cmd/mcpd"
	goVersion = "1.26" // as in go.mod
)

//go:embed Dockerfile.tmpl
var recipeText string

// recipe returns the Dockerfile of mcpd.
func (d *Deployment) recipe() (File, error) {
	return filled(dockerFile, recipeText, map[string]any{
		"Written": written, "Go": goVersion, "Module": program, "Version": d.Version, "User": DefaultUser, "Port": d.Port,
	})
}

// filled executes a template. All inserted values were checked or are escaped for the
// file.
func filled(name, text string, data map[string]any) (File, error) {
	t, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return File{}, fmt.Errorf("%s: parse template: %w", name, err)
	}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return File{}, fmt.Errorf("%s: execute template: %w", name, err)
	}
	return File{name, []byte(b.String())}, nil
}

//go:embed mcpd.service.tmpl
var unitText string

// unit returns the systemd unit for mcpd on this machine without a container. It is the
// unit of examples/systemd with the credentials, variables and memory limit of the
// deployment.
func (d *Deployment) unit() (File, error) {
	state := "memory"
	switch {
	case d.Database:
		state = "" // named by mcpd.hcl
	case d.State:
		state = "%S/mcpd/mcpd.db"
	}
	grace := ""
	if d.Grace != DefaultGrace {
		grace = d.Grace.String()
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
		"Written": written, "State": state, "Grace": grace, "Seconds": int(d.Grace.Seconds()), "Stop": d.stop(), "Reads": d.Reads, "Environment": assignments, "Withheld": strings.Join(withheld, ", "),
		"Memory": unitAmount(d.Memory), "Locked": d.LockText != nil, "Elsewhere": strings.Join(elsewhere, ", "),
	})
}

// unitAmount returns bytes in the notation of systemd, in GiB or MiB if they are whole.
func unitAmount(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return amount(bytes>>10, "G", "")
	}
	return amount(bytes, "M", "")
}

// assigned returns a variable as one word of Environment= (systemd.exec(5)): quoted,
// with C escapes, and without specifiers. The only control characters are tabs and line
// ends.
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

// member is a member of a mapping with an optional comment.
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

// when returns the member if wanted, otherwise a member without a value.
func (m member) when(wanted bool) member {
	if !wanted {
		m.value = nil
	}
	return m
}

// mapping returns a mapping of the members with a value. Nil and empty lists count as
// no value.
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

// each returns the list of f(item).
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

// literals returns a list of literal strings.
func literals(items []string) []any {
	return each(items, func(text string) any { return literal(text) })
}

// literal escapes a string so that $ is literal. Compose interpolates every string, and
// Kubernetes expands $(NAME) in arguments and variables; both accept $$ for $.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

func number[T int | int64](n T) json.Number { return json.Number(strconv.FormatInt(int64(n), 10)) }

// file returns documents as one YAML file with a head comment.
func file(name, head string, documents ...*yaml.Map) (File, error) {
	var text []byte
	for line := range strings.SplitSeq(head, "\n") {
		text = append(append(append(text, "# "...), line...), '\n')
	}
	for i, d := range documents {
		if i > 0 {
			// Some tools remove the line end before a separator. The empty line
			// protects a text at the end of the document.
			text = append(text, "\n---\n"...)
		}
		part := yaml.Append(nil, d)
		if len(part) > yaml.MaxPrinted {
			return File{}, fmt.Errorf("%s: a document is longer than 16 MiB", name)
		}
		text = append(text, part...)
	}
	return File{name, text}, nil
}
