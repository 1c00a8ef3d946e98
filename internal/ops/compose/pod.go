package compose

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/yaml"
	"github.com/mcpd/mcpd/internal/language/container"
)

// Resource requests of a pod, unless its limits are lower.
const (
	leastMemory = 64 << 20
	leastCPU    = 50
	// scratch is the size limit of each empty directory of a pod or container.
	scratch = 64 << 20
)

// pod is a pod with one container.
type pod struct {
	name   string
	server bool   // mcpd
	alone  string // reason for the Recreate strategy, or ""
	image  any
	args   []string
	env    []any
	port   int
	peers  int // the port for other replicas, or 0
	probes []member
	user   int
	// resources are the requests and limits.
	resources any
	mounts    []mount
	// settings are more members of the spec.
	settings []member
	// linger is the time in seconds for which the container goes on as before when the
	// pod is deleted, until no request is sent to it any more. stop is the time in which
	// it must stop afterwards.
	linger, stop int
}

// mount is a volume of a pod with its mount path. Without a source it is the claim of a
// StatefulSet with the name stateVolume.
type mount struct {
	target   string
	readOnly bool
	source   member
}

func (o *objects) serverPod() pod {
	p := pod{
		name: "mcpd", server: true, image: o.value(".Values.image | quote", o.Image), args: o.arguments(), env: o.podEnvironment(o.Env), port: o.Port, user: DefaultUser, stop: o.stop(),
		resources: o.value("toJson .Values.resources", o.Limits.resources()),
		probes: []member{
			is("startupProbe", o.probe("/healthz", 1, 60)).because("mcpd accepts this Host."),
			is("livenessProbe", o.probe("/healthz", 10, 3)),
			is("readinessProbe", o.probe("/readyz", 5, 2)),
		},
		mounts: append([]mount{
			{configFolder, true, is("configMap", mapping(is("name", configName)))},
			{toolsFolder, true, is("projected", mapping(is("sources", each(packed(o.ToolFiles), func(b bundle) any { return b.projection() }))))},
		}, emptied("/tmp", runFolder)...),
		settings: []member{
			is("nodeSelector", o.setting("toJson .Values.nodeSelector")),
			is("tolerations", o.setting("toJson .Values.tolerations")),
		},
	}
	if o.Database {
		p.linger, p.peers = linger, o.Peers
		p.settings = append(p.settings, is("topologySpreadConstraints", []any{spread("topology.kubernetes.io/zone"), spread("kubernetes.io/hostname")}))
	}
	switch {
	case o.State && o.Database:
		p.mounts = append(p.mounts, mount{stateFolder, false, member{}})
	case o.State:
		p.alone = "Only one process can use the state: the old pod stops before a new one starts."
		p.mounts = append(p.mounts, mount{stateFolder, false, claimed(stateVolume)})
	}
	p.mounts = append(p.mounts, o.secretMount(o.Reads)...)
	return p
}

// spread returns a constraint that prefers replicas in different domains.
func spread(domain string) *yaml.Map {
	return mapping(
		is("topologyKey", domain),
		is("maxSkew", number(1)),
		is("whenUnsatisfiable", "ScheduleAnyway"),
		is("labelSelector", selected("mcpd")),
	)
}

// probe returns a Kubernetes probe of mcpd.
func (o *objects) probe(path string, period, failures int) *yaml.Map {
	return mapping(
		is("httpGet", mapping(
			is("path", path),
			is("port", "http"),
			is("scheme", "HTTPS").when(o.TLS),
			is("httpHeaders", []any{mapping(is("name", "Host"), is("value", fmt.Sprintf("localhost:%d", o.Port)))}),
		)),
		is("periodSeconds", number(period)),
		is("failureThreshold", number(failures)),
		is("timeoutSeconds", number(5)),
	)
}

func (u *Upstream) pod(o *objects) pod {
	how := is("tcpSocket", mapping(is("port", "http")))
	if len(u.Health) > 0 {
		how = is("exec", mapping(is("command", texts(u.Health...))))
	}
	p := pod{
		name: u.host(), image: o.value(u.values()+".image | quote", u.Image), args: u.Command, env: o.podEnvironment(u.Env), port: u.Port, user: u.User, stop: stopTime,
		resources: o.value("toJson "+u.values()+".resources", u.Limits.resources()),
		probes: []member{
			is("startupProbe", mapping(how, is("periodSeconds", number(2)), is("failureThreshold", number(60)), is("timeoutSeconds", number(5)))),
			is("readinessProbe", mapping(how, is("periodSeconds", number(10)), is("timeoutSeconds", number(5)))),
		},
		mounts: emptied(append([]string{"/tmp"}, u.Writable...)...),
	}
	for _, v := range u.Volumes {
		p.mounts = append(p.mounts, mount{v.Target, v.ReadOnly, claimed(v.Name)})
		if !v.ReadOnly {
			p.alone = "It writes to a volume, which may not support two pods at a time."
		}
	}
	p.mounts = append(p.mounts, o.secretMount(u.Reads)...)
	return p
}

func claimed(name string) member {
	return is("persistentVolumeClaim", mapping(is("claimName", name)))
}

// emptied returns mounts of empty directories.
func emptied(folders ...string) []mount {
	var list []mount
	for _, folder := range folders {
		list = append(list, mount{folder, false, is("emptyDir", mapping(is("sizeLimit", amount(scratch, "Mi", ""))))})
	}
	return list
}

// secretMount returns the mount of the Secret keys that a pod may read, if any.
func (o *objects) secretMount(names []string) []mount {
	if len(names) == 0 {
		return nil
	}
	items := each(names, func(name string) any { return mapping(is("key", name), is("path", name)) })
	mode := is("defaultMode", number(0o400)).because("0400; the kubelet adds group access for the pod.")
	return []mount{{container.SecretFolder, true, is("secret", mapping(is("secretName", o.secretName()), mode, is("items", items)))}}
}

func (o *objects) secretName() any { return o.value(".Values.secret | quote", secretsName) }

func (o *objects) podEnvironment(list []Variable) []any {
	return each(list, func(v Variable) any {
		if v.Secret != "" {
			return mapping(is("name", v.Name), is("valueFrom", mapping(is("secretKeyRef", mapping(is("name", o.secretName()), is("key", v.Secret))))))
		}
		return mapping(is("name", v.Name), is("value", literal(v.Value)))
	})
}

// spec returns the pod spec, which complies with the restricted Kubernetes standard.
func (p pod) spec() *yaml.Map {
	var mounts, volumes []any
	for i, m := range p.mounts {
		name := fmt.Sprintf("volume-%d", i+1)
		if m.source.value == nil {
			name = stateVolume
		} else {
			volumes = append(volumes, mapping(is("name", name), m.source))
		}
		mounts = append(mounts, mapping(is("name", name), is("mountPath", m.target), is("readOnly", true).when(m.readOnly)))
	}
	return mapping(append([]member{
		is("automountServiceAccountToken", false),
		is("enableServiceLinks", false),
		is("terminationGracePeriodSeconds", number(p.linger+p.stop)),
		is("securityContext", mapping(
			is("runAsNonRoot", true),
			is("runAsUser", number(p.user)),
			is("runAsGroup", number(p.user)),
			is("fsGroup", number(p.user)),
			is("fsGroupChangePolicy", "OnRootMismatch"),
			is("seccompProfile", mapping(is("type", "RuntimeDefault"))),
		)),
		is("containers", []any{p.container(mounts)}),
		is("volumes", volumes),
	}, p.settings...)...)
}

func (p pod) container(mounts []any) *yaml.Map {
	ports := []any{mapping(is("name", "http"), is("containerPort", number(p.port)))}
	if p.peers != 0 {
		ports = append(ports, mapping(is("name", "peers"), is("containerPort", number(p.peers))))
	}
	return mapping(append(append([]member{
		is("name", p.name),
		is("image", p.image),
		is("args", literals(p.args)),
		is("env", p.env),
		is("ports", ports),
	}, p.probes...),
		is("lifecycle", mapping(is("preStop", mapping(is("sleep", mapping(is("seconds", number(p.linger)))))))).
			when(p.linger > 0).because("Kubernetes tells load balancers at the same time that this pod is going."),
		is("resources", p.resources),
		is("securityContext", mapping(
			is("allowPrivilegeEscalation", false),
			is("readOnlyRootFilesystem", true),
			is("capabilities", mapping(is("drop", texts("ALL")))),
		)),
		is("volumeMounts", mounts),
	)...)
}

// resources returns the requests and limits of a container.
func (l Limits) resources() *yaml.Map {
	return mapping(is("requests", measured(Limits{min(l.Memory, leastMemory), min(l.CPU, leastCPU)})), is("limits", measured(l)))
}

func measured(l Limits) *yaml.Map {
	return mapping(is("cpu", fmt.Sprintf("%dm", l.CPU)), is("memory", amount(l.Memory, "Mi", "")))
}

const (
	// maxConfigMap is the maximum size of a ConfigMap of tools, and of mcpd.hcl; the
	// limit of Kubernetes is largestConfigMap.
	maxConfigMap     = 512 << 10
	largestConfigMap = 1 << 20
	// MaxTools is the maximum total size of the tool files, in bytes.
	MaxTools = 8 << 20
)

// bundle is a ConfigMap of tool files. Its keys cannot contain slashes; the mount maps
// keys to paths.
type bundle struct {
	name  string
	keys  []string
	paths []string
	texts [][]byte
	size  int
}

// packed distributes the tool files over ConfigMaps within the size limit. There is at
// least one.
func packed(files map[string][]byte) []bundle {
	list := []bundle{{name: toolsName}}
	taken := map[string]int{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		last := &list[len(list)-1]
		size := len(path) + len(files[path])
		if last.size > 0 && last.size+size > maxConfigMap {
			list = append(list, bundle{name: fmt.Sprintf("%s-%d", toolsName, len(list)+1)})
			last = &list[len(list)-1]
			clear(taken)
		}
		last.size += size
		last.keys, last.paths, last.texts = append(last.keys, key(path, taken)), append(last.paths, path), append(last.texts, files[path])
	}
	return list
}

// key returns a free key for the path of a file and marks it as taken. taken counts the
// paths per key, so that many equal keys cost no more than a few.
func key(path string, taken map[string]int) string {
	text := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.':
			return c
		}
		return '_'
	}, path)
	name := text
	for taken[name] > 0 {
		taken[text]++
		suffix := fmt.Sprintf("_%d", taken[text])
		name = text[:min(len(text), maxKey-len(suffix))] + suffix
	}
	taken[name] = 1
	return name
}

// projection returns the files as a source of a projected volume.
func (b bundle) projection() *yaml.Map {
	var items []any
	for i, key := range b.keys {
		items = append(items, mapping(is("key", key), is("path", b.paths[i])))
	}
	return mapping(is("configMap", mapping(is("name", b.name), is("items", items))))
}

// configMaps returns the ConfigMaps of mcpd.hcl, its lock file and the tools. The first
// two share one ConfigMap, so that mcpd always sees both.
func (o *objects) configMaps() (File, error) {
	config := bundle{name: configName, keys: []string{configFile}, texts: [][]byte{o.ConfigText}}
	if o.LockText != nil {
		config.keys, config.texts = append(config.keys, lockFile), append(config.texts, o.LockText)
	}
	documents := []*yaml.Map{o.configMap(config)}
	for _, b := range packed(o.ToolFiles) {
		documents = append(documents, o.configMap(b))
	}
	return o.file(configMapsFile, written+"\nmcpd loads changed files within two minutes, without a restart.", documents...)
}

// configMap returns the ConfigMap of a bundle. Binary content is in base64.
func (o *objects) configMap(b bundle) *yaml.Map {
	data, binary := mapping(), mapping()
	for i, key := range b.keys {
		if text := b.texts[i]; utf8.Valid(text) {
			joined(data, is(key, string(text)))
		} else {
			joined(binary, is(key, base64.StdEncoding.EncodeToString(text)))
		}
	}
	return o.object("v1", "ConfigMap", b.name,
		is("data", data).when(len(data.Names) > 0),
		is("binaryData", binary).when(len(binary.Names) > 0),
	)
}
