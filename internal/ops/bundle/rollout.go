package bundle

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/language/definition"
)

// Rollout limits which appliances take a bundle. Each of them decides by itself, so that a server
// of files is enough.
type Rollout struct {
	// Percent is the share of appliances, from 1 to 100.
	Percent int `json:"percent"`
	// Labels are labels that an appliance must have, all of them.
	Labels map[string]string `json:"labels,omitempty"`
}

func (r *Rollout) check() error {
	switch {
	case r == nil:
		return nil
	case r.Percent < 1 || r.Percent > 100:
		return errors.New("the percentage of the rollout is not between 1 and 100")
	case len(r.Labels) > definition.MaxApplianceLabels:
		return fmt.Errorf("the rollout has more than %d labels", definition.MaxApplianceLabels)
	}
	for name, value := range r.Labels {
		if !definition.IsApplianceLabel(name) || !definition.IsApplianceLabel(value) {
			return fmt.Errorf("a label of the rollout is not 1 to %d letters, digits, \".\", \"_\", \"/\" and \"-\"", definition.MaxApplianceLabel)
		}
	}
	return nil
}

// String describes the rollout, as in "10 % with site=lab"; "everywhere" for nil.
func (r *Rollout) String() string {
	if r == nil {
		return "everywhere"
	}
	text := fmt.Sprintf("%d %%", r.Percent)
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		labels = append(labels, name+"="+r.Labels[name])
	}
	if len(labels) > 0 {
		text += " with " + strings.Join(labels, ", ")
	}
	return text
}

// Selects reports whether an appliance is in the rollout of the bundle. It depends on the name
// and files of the bundle and on the ID: with the same files, an appliance that is in a rollout
// is in each with a higher percentage, whatever their serial numbers. With other files, other
// appliances are first.
func (m *Manifest) Selects(id string, labels map[string]string) bool {
	if m.Rollout == nil {
		return true
	}
	for name, value := range m.Rollout.Labels {
		if labels[name] != value {
			return false
		}
	}
	return m.percentile(id) < uint64(m.Rollout.Percent)
}

// percentile returns a number from 0 to 99 for an appliance. It is the SHA-256 of these lines,
// whose first 8 bytes are a big-endian number, modulo 100: "mcpd-rollout/1", the name of the
// bundle, the path, a space and the digest of each file, and the ID without a line feed.
func (m *Manifest) percentile(id string) uint64 {
	var text strings.Builder
	text.WriteString("mcpd-rollout/1\n" + m.Name + "\n")
	for _, f := range m.Files {
		text.WriteString(f.Path + " " + f.SHA256 + "\n")
	}
	text.WriteString(id)
	sum := sha256.Sum256([]byte(text.String()))
	return binary.BigEndian.Uint64(sum[:8]) % 100
}

// pending is a newer bundle whose rollout does not include this appliance.
type pending struct {
	tag    string
	serial int64 // 0 for none
}

// setPending publishes a newer bundle that is for others, and logs it when it is new.
func (f *Follower) setPending(m *Manifest, tag string) {
	before := f.pending.serial
	f.pending = pending{tag, m.Serial}
	f.publishPending()
	if before != m.Serial {
		f.options.Logger.Info("bundle rolled out to others", slog.String("name", m.Name), slog.Int64("serial", m.Serial), slog.String("rollout", m.Rollout.String()))
	}
}

func (f *Follower) clearPending() {
	f.pending = pending{}
	f.publishPending()
}

func (f *Follower) publishPending() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Pending = f.pending.serial
}
