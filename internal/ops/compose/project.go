package compose

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/base/yaml"
	"github.com/mcpd/mcpd/internal/language/container"
)

// project returns docker-compose.yml according to the Compose Specification.
func (d *Deployment) project() (File, error) {
	services, networks := mapping(is("mcpd", d.service())), mapping(is("front", mapping()))
	for i := range d.Upstreams {
		u := &d.Upstreams[i]
		services = joined(services, is(u.host(), u.service(d)))
		networks = joined(networks, is(u.network(), mapping(is("internal", true).when(!u.Internet))))
	}
	networks.Notes[0] = "Clients reach mcpd through front, and mcpd reaches the hosts of its tools through it.\n" +
		"Each other network connects one upstream with mcpd; internal ones have no other access."
	return file(composeFile, written+d.wanted(), mapping(
		is("name", d.Name),
		is("services", services),
		is("networks", networks),
		is("volumes", d.volumes()).because(d.ownership()),
		is("secrets", d.sources()).because("A service reads these files as /run/secrets/NAME. They keep owner and mode, so the\nuser of the service needs read permission."),
	))
}

// joined returns a mapping with one more member.
func joined(m *yaml.Map, more member) *yaml.Map {
	m.Names, m.Values, m.Notes = append(m.Names, more.name), append(m.Values, more.value), append(m.Notes, more.note)
	return m
}

func (d *Deployment) service() *yaml.Map {
	networks := mapping(is("front", mapping()))
	for i := range d.Upstreams {
		joined(networks, is(d.Upstreams[i].network(), mapping()))
	}
	unreachable := "an upstream is unreachable. For details run docker compose exec mcpd /mcpd status\n--control "
	if d.Database {
		unreachable = "an upstream or the state database is unreachable. For details run\ndocker compose exec mcpd /mcpd status --control "
	}
	return mapping(append([]member{
		is("image", d.Image),
		is("build", mapping(is("context", "."), is("dockerfile", dockerFile))),
		is("pull_policy", "build").because("Never pull a published image with this name."),
		is("command", literals(d.arguments())),
		is("environment", d.variables(d.Env)),
		is("ports", []any{d.published()}).because(d.reached()),
		is("networks", networks),
		is("depends_on", d.dependencies()).because("If an upstream does not start, mcpd serves without it and retries."),
		is("volumes", d.mounts()),
		is("secrets", texts(d.Reads...)),
		is("tmpfs", scratches("/tmp", runFolder)),
		is("healthcheck", health([]string{"/mcpd", "status", "--control", controlPath})).
			because("mcpd is also unhealthy if its files have errors, so that it serves the previous version,\nor if " + unreachable + controlPath + "."),
		is("stop_grace_period", fmt.Sprintf("%ds", d.stop())),
	}, confined(DefaultUser, d.Limits, serverTasks, d.copies())...)...)
}

// copies returns the number of replicas on this machine. Compose cannot give each one a
// volume of its own.
func (d *Deployment) copies() int {
	if d.State {
		return 1
	}
	return d.Replicas
}

// published returns the published port of mcpd, or a range with a port for each replica.
func (d *Deployment) published() *yaml.Map {
	ports := fmt.Sprint(d.Port)
	if n := d.copies(); n > 1 {
		ports += fmt.Sprint("-", d.Port+n-1)
	}
	return mapping(
		is("target", number(d.Port)),
		is("published", ports),
		is("host_ip", "127.0.0.1").when(d.Insecure),
	)
}

func (d *Deployment) reached() string {
	note := d.reachedBy()
	switch {
	case d.copies() > 1:
		note += "\nEach replica gets one of these ports. A load balancer for them is up to you."
	case d.Replicas > 1:
		note += "\nOnly one replica runs here, because each needs a volume of its own. Run this file on\nseveral machines."
	}
	return note
}

func (d *Deployment) reachedBy() string {
	switch {
	case d.Insecure && d.Auth:
		return "Only this machine: credentials would cross the network in clear text."
	case d.Insecure:
		return "Only this machine: mcpd requires no credential. Upstreams can connect too, so trust\ntheir images, or add auth blocks to mcpd.hcl."
	}
	return "List the host names that clients use, except localhost, in listen { hosts }."
}

// dependencies returns the upstreams that mcpd waits for, as far as Compose can check
// them.
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
		bound(d.Config, configPath, true, "After an editor has replaced this file, run\ndocker compose up --detach --force-recreate mcpd."),
		bound(d.Tools, toolsFolder, true, ""),
	}
	if d.LockText != nil {
		list = append(list, bound(path.Join(path.Dir(d.Config), lockFile), lockPath, true, "mcpd lock accept and git replace this file too. The container does not write it."))
	}
	if d.State {
		list = append(list, mapping(is("type", "volume"), is("source", stateVolume), is("target", stateFolder)))
	}
	return list
}

// bound returns a bind mount of a file or directory of this machine.
func bound(source, target string, readOnly bool, note string) *yaml.Map {
	return mapping(
		is("type", "bind").because(note),
		is("source", literal(local(source))),
		is("target", target),
		is("read_only", true).when(readOnly),
		is("bind", mapping(is("create_host_path", false))),
	)
}

// service returns the service of an upstream. Its port is not published, so that all
// calls go through mcpd.
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
	}, confined(u.User, u.Limits, upstreamTasks, 1)...)...)
}

// scratches returns tmpfs mounts.
func scratches(folders ...string) []any {
	return each(folders, func(folder string) any { return folder + ":size=" + amount(scratch, "m", "b") })
}

// network returns the name of the network between an upstream and mcpd.
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

// confined returns the security options, resource limits and number of containers of a
// service.
func confined(user int, l Limits, tasks, replicas int) []member {
	return []member{
		is("user", fmt.Sprintf("%d:%d", user, user)),
		is("read_only", true),
		is("cap_drop", texts("ALL")),
		is("security_opt", texts("no-new-privileges:true")),
		is("init", true),
		is("restart", "unless-stopped"),
		is("deploy", mapping(
			is("replicas", number(replicas)).when(replicas > 1),
			is("resources", mapping(is("limits", mapping(
				is("cpus", fmt.Sprintf("%d.%03d", l.CPU/1000, l.CPU%1000)),
				is("memory", amount(l.Memory, "m", "b")),
				is("pids", number(tasks)),
			)))),
		)),
	}
}

// amount formats bytes, in MiB if they are whole.
func amount(bytes int64, mebi, one string) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprint(bytes>>20, mebi)
	}
	return fmt.Sprint(bytes, one)
}

// health returns a Compose health check.
func health(program []string) *yaml.Map {
	return mapping(
		is("test", append(texts("CMD"), literals(program)...)),
		is("interval", "10s"),
		is("timeout", "10s"),
		is("retries", number(3)),
		is("start_period", "30s"),
	)
}

// local escapes a path for Compose, which expands a leading ~.
func local(name string) string {
	if name[0] != '/' && name[0] != '.' {
		return "./" + name
	}
	return name
}

// variables returns the environment of a service. Secrets are references: Compose takes
// their values from its own environment, and fails if one is missing.
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

// wanted returns the comment in docker-compose.yml about the required environment
// variables, if any.
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
	return "\nEvery docker compose command needs these variables. Set them in its environment, or as lines\n" +
		"NAME='value' in a file .env in this directory. Keep that file private and out of repositories.\n" +
		"Variables: " + strings.Join(names, ", ") + "."
}

// sources returns the definitions of the secrets that are read as files.
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

// ownership returns the comment about the owners of writable volumes, if any. Compose
// cannot create a volume for a non-root user.
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
	return "A new volume belongs to root, or to the owner of the directory in the image. If that is not\n" +
		"the user of the service, change the owner before the first start:\n" +
		"  docker compose create\n" + strings.Join(lines, "\n")
}

// Paths of mcpd in a container. mcpd creates the directories of the state and the
// socket itself below the mount, because other users cannot write there.
const (
	configFolder = "/etc/mcpd/config"
	configPath   = configFolder + "/" + configFile
	lockPath     = configFolder + "/" + lockFile
	configFile   = "mcpd.hcl"
	lockFile     = "mcpd.lock" // in the directory of the configuration file
	toolsFolder  = "/etc/mcpd/tools.d"
	stateFolder  = "/var/lib/mcpd"
	statePath    = stateFolder + "/state/mcpd.db"
	runFolder    = "/run/mcpd"
	controlPath  = runFolder + "/control/mcpd.sock"
	stateVolume  = container.StateVolume
)

const (
	// stopTime is the time that an upstream has to stop, and spareTime the time that mcpd
	// has after --grace, in seconds.
	stopTime, spareTime = 20, 10
	// linger is the time for which a replica goes on as before when its pod is deleted.
	linger = 5 // seconds
	// maximum processes and threads of mcpd and of an upstream
	serverTasks, upstreamTasks = 512, 256
)

// stop returns the time in seconds after which mcpd is killed, longer than --grace.
func (d *Deployment) stop() int { return int(d.Grace/time.Second) + spareTime }

func (d *Deployment) arguments() []string {
	list := []string{"serve", "--config", configPath, "--tools", toolsFolder}
	switch {
	case d.Database: // named by mcpd.hcl
	case d.State:
		list = append(list, "--state", statePath)
	default:
		list = append(list, "--state", "memory")
	}
	list = append(list, "--control", controlPath, "--listen", fmt.Sprintf("0.0.0.0:%d", d.Port), "--log-format", "json")
	if d.Grace != DefaultGrace {
		list = append(list, "--grace", d.Grace.String())
	}
	if d.Insecure {
		list = append(list, "--insecure-listen")
	}
	return list
}
