package compose

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/yaml"
	"github.com/mcpd/mcpd/internal/language/container"
)

// project returns docker-compose.yml, after the Compose Specification.
func project(d *Deployment) (File, error) {
	services, networks := mapping(is("mcpd", d.service())), mapping(is("front", mapping()))
	for i := range d.Upstreams {
		u := &d.Upstreams[i]
		services = joined(services, is(u.host(), u.service(d)))
		networks = joined(networks, is(u.network(), mapping(is("internal", true).when(!u.Internet))))
	}
	networks.Notes[0] = "front leads to the clients of mcpd, and mcpd to the hosts of its tools. On each of\n" +
		"the others one upstream meets mcpd alone; internal ones lead nowhere else."
	return file(composeFile, written+d.wanted(), mapping(
		is("name", d.Name),
		is("services", services),
		is("networks", networks),
		is("volumes", d.volumes()).because(d.ownership()),
		is("secrets", d.sources()).because("The user of a service that reads one of these files, as /run/secrets/NAME, has to be\nallowed to: they keep their owners and their rights."),
	))
}

// joined returns a mapping with a member more.
func joined(m *yaml.Map, more member) *yaml.Map {
	m.Names, m.Values, m.Notes = append(m.Names, more.name), append(m.Values, more.value), append(m.Notes, more.note)
	return m
}

func (d *Deployment) service() *yaml.Map {
	networks := mapping(is("front", mapping()))
	for i := range d.Upstreams {
		joined(networks, is(d.Upstreams[i].network(), mapping()))
	}
	return mapping(append([]member{
		is("image", d.Image),
		is("build", mapping(is("context", "."), is("dockerfile", dockerFile))),
		is("pull_policy", "build").because("An image of this name that somebody else has published is not what is meant."),
		is("command", literals(d.arguments())),
		is("environment", d.variables(d.Env)),
		is("ports", []any{d.published()}).because(d.reached()),
		is("networks", networks),
		is("depends_on", d.dependencies()).because("mcpd serves without an upstream that does not come up, and tries it again."),
		is("volumes", d.mounts()),
		is("secrets", texts(d.Reads...)),
		is("tmpfs", scratches("/tmp", runFolder)),
		is("healthcheck", health([]string{"/mcpd", "status", "--control", controlPath})).
			because("Unhealthy is also an mcpd that goes on with what it served before its files had\nmistakes, or that does not reach an upstream: docker compose exec mcpd /mcpd status\n--control " + controlPath + " tells which."),
		is("stop_grace_period", fmt.Sprintf("%ds", grace)),
	}, confined(DefaultUser, d.Limits, serverTasks)...)...)
}

// published returns the port of mcpd as the machine has it.
func (d *Deployment) published() *yaml.Map {
	return mapping(
		is("target", number(d.Port)),
		is("published", fmt.Sprint(d.Port)),
		is("host_ip", "127.0.0.1").when(d.Insecure),
	)
}

func (d *Deployment) reached() string {
	switch {
	case d.Insecure && d.Auth:
		return "This machine alone: credentials would pass over the network as they are."
	case d.Insecure:
		return "This machine alone: nobody is asked for a credential. Upstreams could come in, too,\nso trust their images, or have auth blocks in mcpd.hcl."
	}
	return "Names by which clients call beside localhost have to stand in listen { hosts }."
}

// dependencies are the upstreams, as far as Compose can tell that they can be used.
func (d *Deployment) dependencies() any {
	if len(d.Upstreams) == 0 {
		return nil
	}
	m := mapping()
	for i := range d.Upstreams {
		u, condition := &d.Upstreams[i], "service_started"
		if len(u.Health) > 0 {
			condition = "service_healthy"
		}
		joined(m, is(u.host(), mapping(is("condition", condition), is("required", false))))
	}
	return m
}

func (d *Deployment) mounts() []any {
	list := []any{
		bound(d.Config, configPath, true, "An editor that replaces this file leaves mcpd with the old one: run\ndocker compose up --detach --force-recreate mcpd then."),
		bound(d.Tools, toolsFolder, true, ""),
	}
	if d.LockText != nil {
		list = append(list, bound(path.Join(path.Dir(d.Config), lockFile), lockPath, true, "mcpd lock accept and git replace this file, too. What serves here does not write it."))
	}
	if d.State {
		list = append(list, mapping(is("type", "volume"), is("source", stateVolume), is("target", stateFolder)))
	}
	return list
}

// bound returns a file or folder of this machine, mounted.
func bound(source, target string, readOnly bool, note string) *yaml.Map {
	return mapping(
		is("type", "bind").because(note),
		is("source", literal(local(source))),
		is("target", target),
		is("read_only", true).when(readOnly),
		is("bind", mapping(is("create_host_path", false))),
	)
}

// service returns the service of an upstream. Its port is not published: who
// reached it there would pass mcpd by.
func (u *Upstream) service(d *Deployment) *yaml.Map {
	return mapping(append([]member{
		is("image", u.Image),
		is("command", literals(u.Command)),
		is("environment", d.variables(u.Env)),
		is("networks", mapping(is(u.network(), mapping()))),
		is("volumes", each(u.Volumes, func(v Volume) any { return v.mount() })),
		is("secrets", texts(u.Reads...)),
		is("tmpfs", scratches(append([]string{"/tmp"}, u.Writable...)...)),
		is("healthcheck", health(u.Health)).when(len(u.Health) > 0),
	}, confined(u.User, u.Limits, upstreamTasks)...)...)
}

// scratches returns folders that are empty when a container starts.
func scratches(folders ...string) []any {
	return each(folders, func(folder string) any { return folder + ":size=" + amount(scratch, "m", "b") })
}

// network returns the name of the network on which an upstream meets mcpd.
func (u *Upstream) network() string { return "to-" + u.host() }

func (v Volume) mount() *yaml.Map {
	if v.Host != "" {
		return bound(v.Host, v.Target, v.ReadOnly, "")
	}
	return mapping(
		is("type", "volume"),
		is("source", v.Name),
		is("target", v.Target),
		is("read_only", true).when(v.ReadOnly),
	)
}

// confined returns what a container may not do, and how much it may take.
func confined(user int, l Limits, tasks int) []member {
	return []member{
		is("user", fmt.Sprintf("%d:%d", user, user)),
		is("read_only", true),
		is("cap_drop", texts("ALL")),
		is("security_opt", texts("no-new-privileges:true")),
		is("init", true),
		is("restart", "unless-stopped"),
		is("deploy", mapping(is("resources", mapping(is("limits", mapping(
			is("cpus", fmt.Sprintf("%d.%03d", l.CPU/1000, l.CPU%1000)),
			is("memory", amount(l.Memory, "m", "b")),
			is("pids", number(tasks)),
		)))))),
	}
}

// amount returns bytes as text: in MiB where these are whole.
func amount(bytes int64, mebi, one string) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprint(bytes>>20, mebi)
	}
	return fmt.Sprint(bytes, one)
}

// health returns how Compose asks a container how it is.
func health(program []string) *yaml.Map {
	return mapping(
		is("test", append(texts("CMD"), literals(program)...)),
		is("interval", "10s"),
		is("timeout", "10s"),
		is("retries", number(3)),
		is("start_period", "30s"),
	)
}

// local returns a path as Compose has it, which takes ~ in front for a home.
func local(name string) string {
	if name[0] != '/' && name[0] != '.' {
		return "./" + name
	}
	return name
}

// variables returns the environment of a service. A secret is not in it: Compose
// takes the value from its own environment, and does not start without one.
func (d *Deployment) variables(list []Variable) any {
	if len(list) == 0 {
		return nil
	}
	m := mapping()
	for _, v := range list {
		value := literal(v.Value)
		if v.Secret != "" {
			value = fmt.Sprintf("${%s:?}", d.secret(v.Secret).Environment)
		}
		joined(m, is(v.Name, value))
	}
	return m
}

// wanted says, below the first line of docker-compose.yml, which variables Compose
// takes from its own environment, if any.
func (d *Deployment) wanted() string {
	var names []string
	for _, s := range d.used() {
		if s.Environment != "" && !slices.Contains(names, s.Environment) {
			names = append(names, s.Environment)
		}
	}
	if names == nil {
		return ""
	}
	return "\nEvery docker compose command wants variables, which are set where it is called, or stand as\n" +
		"lines NAME='value' in a file .env beside this one, which nobody else reads and no repository\n" +
		"has: " + strings.Join(names, ", ") + "."
}

// sources returns where Compose takes those secrets from that are read as files.
func (d *Deployment) sources() any {
	read := map[string]bool{}
	for _, name := range d.Reads {
		read[name] = true
	}
	for i := range d.Upstreams {
		for _, name := range d.Upstreams[i].Reads {
			read[name] = true
		}
	}
	m := mapping()
	for _, s := range d.Secrets {
		if read[s.Name] {
			joined(m, is(s.Name, mapping(is("file", literal(local(s.File))))))
		}
	}
	if len(m.Names) == 0 {
		return nil
	}
	return m
}

func (d *Deployment) volumes() any {
	m, seen := mapping(), map[string]bool{}
	if d.State {
		joined(m, is(stateVolume, mapping()))
	}
	for i := range d.Upstreams {
		for _, v := range d.Upstreams[i].Volumes {
			if v.Host == "" && !seen[v.Name] {
				seen[v.Name] = true
				joined(m, is(v.Name, mapping()))
			}
		}
	}
	if len(m.Names) == 0 {
		return nil
	}
	return m
}

// ownership says how upstreams come to own the volumes that they write to, if any do.
// Compose has nothing that makes a volume for a user who is not root.
func (d *Deployment) ownership() string {
	var lines, seen []string
	for i := range d.Upstreams {
		u := &d.Upstreams[i]
		for _, v := range u.Volumes {
			if v.Host == "" && !v.ReadOnly && !slices.Contains(seen, v.Name) {
				seen = append(seen, v.Name)
				lines = append(lines, fmt.Sprintf("  docker run --rm --volume %s_%s:/volume busybox:1.37 chown -R %d:%d /volume", d.Name, v.Name, u.User, u.User))
			}
		}
	}
	if lines == nil {
		return ""
	}
	return "A new volume belongs to root, or to whom the image has its folder belong. Where that\n" +
		"is not the user of the service, it cannot write there, unless before the first start:\n" +
		"  docker compose create\n" + strings.Join(lines, "\n")
}

// Where mcpd finds its files in a container. The folders of the state and the
// socket are made by mcpd below what is mounted, since nobody else may write
// there.
const (
	configFolder = "/etc/mcpd/config"
	configPath   = configFolder + "/" + configFile
	lockPath     = configFolder + "/" + lockFile
	configFile   = "mcpd.hcl"
	lockFile     = "mcpd.lock" // mcpd looks for it in the folder of the former
	toolsFolder  = "/etc/mcpd/tools.d"
	stateFolder  = "/var/lib/mcpd"
	statePath    = stateFolder + "/state/mcpd.db"
	runFolder    = "/run/mcpd"
	controlPath  = runFolder + "/control/mcpd.sock"
	stateVolume  = container.StateVolume
)

const (
	// grace is what mcpd is given to stop: longer than its --grace, which is 10 s.
	grace = 20 // seconds
	// tasks are the processes and threads of mcpd, and of an upstream.
	serverTasks, upstreamTasks = 512, 256
)

func (d *Deployment) arguments() []string {
	state := "memory"
	if d.State {
		state = statePath
	}
	list := []string{
		"serve", "--config", configPath, "--tools", toolsFolder, "--state", state, "--control", controlPath,
		"--listen", fmt.Sprintf("0.0.0.0:%d", d.Port), "--log-format", "json",
	}
	if d.Insecure {
		list = append(list, "--insecure-listen")
	}
	return list
}
