package telemetry

import (
	"time"

	"github.com/mcpd/mcpd/internal/base/observe"
)

// Publish tells what the new snapshot names. Series of names that are gone are kept
// for ten minutes, for calls that still run and for who reads metrics now and then.
func (m *Metrics) Publish(c observe.Catalog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replace(c, m.now())
}

// replace is Publish; mu is held.
func (m *Metrics) replace(c observe.Catalog, now time.Time) {
	was := m.named.Load()
	next := &named{crowd: map[observe.Item]bool{}}
	var items []*counted
	var rules, more []*ruled
	next.items, items = was.items.with(c.Items, now, m.begin)
	next.policies, rules = was.policies.with(c.Policies, now, func(name string) *ruled { return m.rule(m.denied, name) })
	next.limits, more = was.limits.with(c.Limits, now, func(name string) *ruled { return m.rule(m.limited, name) })
	for _, i := range c.Items {
		if _, known := next.items.known[i]; !known {
			next.crowd[i] = true
		}
	}
	m.named.Store(next)
	for _, i := range items {
		i.drop()
	}
	for _, r := range append(rules, more...) {
		r.drop()
	}
}

// begin returns what counts a new item. One that is called like that of the rest is
// part of it.
func (m *Metrics) begin(i observe.Item) *counted {
	kind := m.words.kinds.of(i.Kind)
	switch i.Name {
	case "":
		return m.nowhere[kind]
	case other:
		return m.rest[kind]
	}
	return m.vectors.item(&m.words, observe.Item{Kind: m.words.kinds.list[kind], Name: label(i.Name)})
}

// rule returns what counts a new policy or limit. One that is called like the rest
// is part of it.
func (m *Metrics) rule(rest *ruled, name string) *ruled {
	if name == rest.name {
		return rest
	}
	return newRuled(rest.counts, label(name))
}

// expire lets go of the names that are gone for long enough.
func (m *Metrics) expire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, now := m.named.Load(), m.now()
	if !n.items.overdue(now) && !n.policies.overdue(now) && !n.limits.overdue(now) {
		return
	}
	c := observe.Catalog{Items: n.items.present(), Policies: n.policies.present(), Limits: n.limits.present()}
	for i := range n.crowd {
		c.Items = append(c.Items, i)
	}
	m.replace(c, now)
}
