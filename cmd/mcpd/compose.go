package main

import (
	"context"
	"fmt"
	"math"
	"net"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/ops/compose"
	"github.com/mcpd/mcpd/internal/ops/deployment"
)

func newCompose(e env) *cobra.Command {
	var c composeFlags
	cmd := &cobra.Command{
		Use:   "compose",
		Short: "Write deployment files for mcpd and its upstream containers",
		Long: `Compose writes docker-compose.yml, a Dockerfile, Kubernetes manifests and a systemd unit
for mcpd and for the servers in the container blocks of mcpd.hcl, and with --helm a Helm
chart. It connects to no server, and it keeps files that it did not write.`,
		Example: `  mcpd compose --insecure-listen
  mcpd compose --out deploy --version v1.2.3 --replicas 3 --helm
  mcpd compose --out deploy --version v1.2.3 --check`,
		Args:              noOperand,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), e) },
	}
	c.add(cmd)
	return cmd
}

// composeFlags holds the flags of compose.
type composeFlags struct {
	projectFlags
	out, name, image, version string
	port, replicas            int
	memory, state, secrets    string
	cpus                      float64
	grace                     time.Duration
	env                       []string
	insecure                  bool
	check, force, asJSON      bool
	helm                      bool
}

func (c *composeFlags) add(cmd *cobra.Command) {
	c.projectFlags.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.out, "out", ".", "write the files into `DIR`")
	flags.BoolVar(&c.check, "check", false, "write nothing; exit with 1 if a file would change")
	flags.BoolVar(&c.force, "force", false, "also overwrite files that mcpd compose did not write")
	flags.BoolVar(&c.asJSON, "json", false, "print the state of each file as JSON")
	flags.StringVar(&c.name, "name", "", "set the project and the namespace to `NAME` (default the name of the server)")
	flags.StringVar(&c.image, "image", "", "name the image of mcpd `IMAGE` (default NAME:VERSION)")
	flags.StringVar(&c.version, "version", "", "build the image from mcpd `VERSION`, a tag or a commit (default the version of this program)")
	flags.IntVar(&c.port, "port", 0, "serve on `PORT` (default the port of the listen block, or 8080)")
	flags.StringVar(&c.memory, "memory", "4GiB", "limit the memory of mcpd to `SIZE`, in MiB or GiB")
	flags.Float64Var(&c.cpus, "cpus", float64(compose.DefaultCPU)/1000, "limit mcpd to `N` processors")
	flags.IntVar(&c.replicas, "replicas", 1, "run `N` mcpd that share the database of the state block")
	flags.StringVar(&c.state, "state", "", "store the state of mcpd in `PLACE`: volume or memory (default the database of the state block, or volume)")
	flags.BoolVar(&c.helm, "helm", false, "also write a Helm chart")
	flags.DurationVar(&c.grace, "grace", compose.DefaultGrace, "wait up to `TIME` for running calls at shutdown")
	flags.StringVar(&c.secrets, "secrets", "secrets", "read secret files from `DIR`, relative to --out")
	flags.StringArrayVar(&c.env, "env", nil, "set an environment variable of mcpd, as `NAME=VALUE`")
	flags.BoolVar(&c.insecure, "insecure-listen", false, "allow access without authentication and TLS, from this machine or from labeled pods")
	_ = cmd.MarkFlagDirname("out")
	_ = cmd.MarkFlagDirname("secrets")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]cobra.Completion{"volume", "memory"}, cobra.ShellCompDirectiveNoFileComp))
}

func (c *composeFlags) run(ctx context.Context, e env) error {
	s, err := c.open(e, engine.Options{Mode: engine.Offline})
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	if err := c.load(ctx, e, s, c.asJSON); err != nil {
		return err
	}
	d, err := c.deployment(e, s.Snapshot())
	if err != nil {
		return err
	}
	lock, err := c.lock(e, &d)
	if err != nil {
		return err
	}
	said := s.Snapshot().Inside().Definitions()
	d, problems := deployment.Complete(d, said, c.secrets)
	if len(problems) > 0 {
		return c.refuse(e, d, problems)
	}
	if err := c.print(e, d, deployment.Unaccepted(said, lock)); err != nil {
		return err
	}
	if err := c.missing(d); err != nil {
		return err
	}
	files, err := compose.Files(d)
	if err != nil {
		return findingsError("%v", err)
	}
	return c.writeFiles(e, files)
}

// refuse prints why the configuration cannot be deployed.
func (c *composeFlags) refuse(e env, d compose.Deployment, problems diag.List) error {
	if c.asJSON {
		return c.printReport(e, engine.Report{Problems: problems}, problems.Err())
	}
	if err := c.print(e, d, problems); err != nil {
		return err
	}
	return findingsError("cannot deploy: %s", count(len(problems), "error"))
}

func (c *composeFlags) print(e env, d compose.Deployment, problems diag.List) error {
	if len(problems) == 0 {
		return nil
	}
	path := filepath.ToSlash(filepath.Clean(c.config))
	printer := diag.Printer{Sources: map[string][]byte{path: hclfile.RedactSecrets(path, d.ConfigText)}, Color: e.color}
	return printer.Print(e.stderr, problems)
}

// lock adds the lock file to the deployment, if it exists, and returns its content.
func (c *composeFlags) lock(e env, d *compose.Deployment) (*lockfile.Lock, error) {
	read := loader.ReadLock(nil, e.resolve(c.lockPath()))
	if err := read.Problems.Err(); err != nil {
		return nil, findingsError("%v", err)
	}
	if read.Bytes == nil {
		return new(lockfile.Lock), nil
	}
	lock, err := lockfile.Parse(read.Bytes)
	if err != nil {
		return nil, findingsError("%s: %v", c.lockPath(), err)
	}
	d.LockText = read.Bytes
	return lock, nil
}

// missing reports all required flags at once if no mcpd version is known. Otherwise
// [compose.Files] reports what is missing.
func (c *composeFlags) missing(d compose.Deployment) error {
	if d.Version != "" {
		return nil
	}
	asks := []string{fmt.Sprintf("this mcpd is %s, not a release: set the version for the image with --version", version())}
	if d.Open() {
		asks = append(asks, compose.OpenListen)
	}
	return usageError("%s", strings.Join(asks, "\n"))
}

// deployment builds the deployment from the flags and from the files of mcpd.
func (c *composeFlags) deployment(e env, s *engine.Snapshot) (d compose.Deployment, err error) {
	block := s.Inside().Definitions().Config.State != nil
	d = compose.Deployment{
		Name: c.name, Image: c.image, Insecure: c.insecure, Replicas: c.replicas, Grace: c.grace, Helm: c.helm,
		State: c.state != "memory", Database: c.state == "" && block,
	}
	switch {
	case c.state != "" && c.state != "volume" && c.state != "memory":
		return d, usageError("--state is volume or memory, not %q", c.state)
	case c.state == "memory" && block:
		return d, usageError("--state memory contradicts the state block of %s", filepath.ToSlash(filepath.Clean(c.config)))
	case c.replicas < 1 || c.replicas > compose.MaxReplicas:
		return d, usageError("--replicas takes a number from 1 to %d", compose.MaxReplicas)
	case c.grace <= 0:
		return d, usageError("--grace takes a number of seconds, such as 30s")
	}
	d.Version = c.release()
	if d.Name == "" {
		d.Name = labelOf(s.Info().Name)
	}
	if d.Image == "" {
		d.Image = d.Name + ":" + strings.ReplaceAll(d.Version, "+", "-")
	}
	if d.Port = c.port; d.Port == 0 {
		_, port, _ := net.SplitHostPort(s.Listen().Address)
		d.Port, _ = strconv.Atoi(port) // 0, the default, for a socket
	}
	if d.Limits, err = c.limits(); err != nil {
		return d, err
	}
	for _, flag := range c.env {
		name, value, ok := strings.Cut(flag, "=")
		if !ok || name == "" {
			return d, usageError("--env takes NAME=VALUE")
		}
		d.Env = append(d.Env, compose.Variable{Name: name, Value: value})
	}
	if d.Config, d.Tools, err = c.places(e); err != nil {
		return d, err
	}
	if d.ConfigText, err = e.disk.readFile(c.config); err != nil {
		return d, usageError("read configuration file: %v", err)
	}
	if d.ToolFiles, err = deployment.Tools(engine.Dir(e.resolve(c.tools))); err != nil {
		return d, findingsError("%v", err)
	}
	return d, nil
}

// release returns the version of mcpd to build the image from, or "" if this program is
// not a release.
func (c *composeFlags) release() string {
	if c.version != "" {
		return c.version
	}
	if v := version(); strings.HasPrefix(v, "v") && !strings.Contains(v, "+dirty") {
		return v
	}
	return ""
}

// memorySize matches the value of --memory.
var memorySize = regexp.MustCompile(`^([1-9][0-9]{0,6})([MG])iB$`)

func (c *composeFlags) limits() (compose.Limits, error) {
	written := memorySize.FindStringSubmatch(c.memory)
	if written == nil {
		return compose.Limits{}, usageError("--memory takes a whole number with a unit, such as 512MiB or 4GiB")
	}
	if !(c.cpus >= 0.001 && c.cpus <= 1000) {
		return compose.Limits{}, usageError("--cpus takes a number of processors from 0.001 to 1000")
	}
	n, _ := strconv.ParseInt(written[1], 10, 64) // at most 7 digits
	shift := 20
	if written[2] == "G" {
		shift = 30
	}
	return compose.Limits{Memory: n << shift, CPU: int(math.Round(c.cpus * 1000))}, nil
}

// places returns the paths of the configuration file and of the tools, relative to the
// directory of docker-compose.yml.
func (c *composeFlags) places(e env) (config, tools string, err error) {
	out, err := filepath.Abs(e.resolve(c.out))
	if err != nil {
		return "", "", findingsError("%v", err)
	}
	var seen [2]string
	for i, name := range []string{c.config, c.tools} {
		if name, err = filepath.Abs(e.resolve(name)); err == nil {
			name, err = filepath.Rel(out, name)
		}
		if err != nil {
			return "", "", findingsError("%v", err)
		}
		seen[i] = filepath.ToSlash(name)
	}
	if seen[1] == "." || strings.Trim(seen[1], "./") == "" {
		return "", "", usageError("--out is inside the tools directory; choose a directory outside of it")
	}
	return seen[0], seen[1], nil
}

// labelOf returns a DNS label made from the name of a server.
func labelOf(name string) string {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	label = strings.TrimLeft(label, "-0123456789")
	label = strings.Trim(label[:min(len(label), 63)], "-")
	if label == "" {
		return "mcpd"
	}
	return label
}

// composedFile is the JSON row of a file.
type composedFile struct {
	Path  string `json:"path"`
	State string `json:"state"`
	Line  int    `json:"line,omitempty"` // the first line that differs, with --check
}

// writeFiles writes the files, or with --check reports the differences.
func (c *composeFlags) writeFiles(e env, files []compose.File) error {
	have := map[string][]byte{}
	differences, err := compose.Drift(files, func(name string) ([]byte, error) {
		content, err := e.disk.readFile(c.at(name))
		have[name] = content
		return content, err
	})
	if err != nil {
		return findingsError("%v", err)
	}
	if c.check {
		return c.report(e, files, differences)
	}
	var foreign []string
	for _, d := range differences {
		if d.Kind != compose.Missing && !compose.Written(have[d.Name]) && !c.force {
			foreign = append(foreign, filepath.ToSlash(c.at(d.Name)))
		}
	}
	if len(foreign) > 0 {
		return findingsError("mcpd compose did not write %s, so no file was changed; move it away, or replace it with --force", strings.Join(foreign, ", "))
	}
	for i := range differences {
		if err := c.change(e, files, differences[i]); err != nil {
			return findingsError("%v", err)
		}
	}
	return c.report(e, files, differences)
}

func (c *composeFlags) at(name string) string { return filepath.Join(c.out, filepath.FromSlash(name)) }

func (c *composeFlags) change(e env, files []compose.File, d compose.Difference) error {
	to := c.at(d.Name)
	if d.Kind == compose.Stale {
		return e.disk.remove(to)
	}
	content := files[slices.IndexFunc(files, func(f compose.File) bool { return f.Name == d.Name })].Content
	if d.Kind == compose.Changed {
		return e.disk.replaceFile(to, content)
	}
	if err := e.disk.mkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return e.disk.writeFile(to, content, 0o644)
}

func (c *composeFlags) states(files []compose.File, differences []compose.Difference) []composedFile {
	names := map[compose.Kind]string{compose.Missing: "written", compose.Changed: "written", compose.Stale: "removed"}
	if c.check {
		names = map[compose.Kind]string{compose.Missing: "missing", compose.Changed: "changed", compose.Stale: "stale"}
	}
	told := map[string]bool{}
	var list []composedFile
	for _, d := range differences {
		told[d.Name] = true
		row := composedFile{Path: path.Clean(filepath.ToSlash(c.at(d.Name))), State: names[d.Kind]}
		if c.check {
			row.Line = d.Line
		}
		list = append(list, row)
	}
	for _, f := range files {
		if !told[f.Name] {
			list = append(list, composedFile{Path: filepath.ToSlash(c.at(f.Name)), State: "unchanged"})
		}
	}
	return list
}

// report prints the files that were written and removed. With --check it prints the
// differences and returns an error if there are any.
func (c *composeFlags) report(e env, files []compose.File, differences []compose.Difference) error {
	differ := len(differences) > 0
	rows := c.states(files, differences)
	switch {
	case c.asJSON:
		if err := printJSON(e.stdout, struct {
			Changed bool           `json:"changed"`
			Files   []composedFile `json:"files"`
		}{differ, rows}); err != nil || !c.check || !differ {
			return err
		}
		return &exitError{code: exitFindings} // the JSON was printed
	case !c.check && !differ:
		_, err := fmt.Fprintln(e.stdout, "no changes")
		return err
	}
	var b strings.Builder
	for _, row := range rows[:len(differences)] {
		switch {
		case c.check && row.Line > 0:
			fmt.Fprintf(&b, "%s:%d: %s\n", row.Path, row.Line, row.State)
		case c.check:
			fmt.Fprintf(&b, "%s: %s\n", row.Path, row.State)
		case row.State == "removed":
			fmt.Fprintf(&b, "removed %s\n", row.Path)
		default:
			fmt.Fprintf(&b, "wrote %s\n", row.Path)
		}
	}
	if _, err := fmt.Fprint(e.stdout, b.String()); err != nil || !c.check || !differ {
		return err
	}
	return findingsError("%s would change; run mcpd compose", count(len(differences), "file"))
}
