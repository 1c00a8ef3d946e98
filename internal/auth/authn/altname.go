package authn

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/wildcard"
)

// nameType is a type of alternative names (RFC 5280 section 4.2.1.6).
type nameType string

const (
	anyName   nameType = "" // but an address
	uriName   nameType = "uri"
	dnsName   nameType = "dns"
	emailName nameType = "email"
	ipName    nameType = "ip"
)

// altName is an alternative name of a certificate.
type altName struct {
	kind nameType
	text string
}

// namesOf returns the alternative names of a certificate: URIs, then hosts, then mail
// addresses, then IP addresses. A common name is none: nothing says what it is a name of.
func namesOf(leaf *x509.Certificate) []altName {
	var names []altName
	for _, u := range leaf.URIs {
		names = append(names, altName{uriName, u.String()})
	}
	for _, host := range leaf.DNSNames {
		names = append(names, altName{dnsName, host})
	}
	for _, address := range leaf.EmailAddresses {
		names = append(names, altName{emailName, address})
	}
	for _, address := range leaf.IPAddresses {
		if a, ok := netip.AddrFromSlice(address); ok {
			names = append(names, altName{ipName, a.Unmap().String()})
		}
	}
	return names
}

// namePattern is what an entry of [CertificateOptions.Allow] stands for.
type namePattern struct {
	kind nameType
	text string
	// network is that of ipName.
	network netip.Prefix
}

// parseName reads an entry. A type may stand before it; else its form says which it is.
func parseName(entry string) (namePattern, error) {
	kind, text, typed := strings.Cut(entry, ":")
	switch p := (namePattern{kind: nameType(kind), text: text}); {
	case typed && text == "":
		return p, fmt.Errorf("the name %q is empty", entry)
	case typed && p.kind == ipName:
		return networkOf(text)
	case typed && (p.kind == uriName || p.kind == dnsName || p.kind == emailName):
		return p, nil
	case entry == "*":
		return namePattern{kind: anyName, text: entry}, nil
	}
	if p, err := networkOf(entry); err == nil {
		return p, nil
	}
	switch {
	case strings.ContainsAny(entry, ":/"):
		return namePattern{kind: uriName, text: entry}, nil
	case strings.Contains(entry, "@"):
		return namePattern{kind: emailName, text: entry}, nil
	}
	return namePattern{kind: dnsName, text: entry}, nil
}

// networkOf reads an address, or a network of addresses.
func networkOf(text string) (namePattern, error) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		address, wrong := netip.ParseAddr(text)
		if wrong != nil || address.Zone() != "" {
			return namePattern{}, fmt.Errorf("%q is neither an IP address nor a network such as 10.0.0.0/8", text)
		}
		address = address.Unmap()
		network = netip.PrefixFrom(address, address.BitLen())
	}
	return namePattern{kind: ipName, network: network.Masked()}, nil
}

// matches reports whether a name is of the type of the pattern, and fits it.
func (p namePattern) matches(n altName) bool {
	switch {
	case p.kind == ipName:
		address, err := netip.ParseAddr(n.text)
		return n.kind == ipName && err == nil && p.network.Contains(address)
	case p.kind == anyName:
		return n.kind != ipName
	}
	return p.kind == n.kind && wildcard.Matches(p.text, n.text)
}

// certificateMethod is a [CertificateOptions] whose names were read.
type certificateMethod struct {
	allow []namePattern
	agent bool
}

func certificateMethodOf(o CertificateOptions) (certificateMethod, error) {
	m := certificateMethod{agent: o.Agent}
	var wrong []error
	for _, entry := range o.Allow {
		p, err := parseName(entry)
		m.allow, wrong = append(m.allow, p), append(wrong, err)
	}
	return m, errors.Join(wrong...)
}

// allows reports whether the name of a certificate may enter. An address enters only where
// an entry names it.
func (m certificateMethod) allows(n altName) bool {
	if n.text == "" || n.text == identity.AnonymousAgent {
		return false
	}
	if len(m.allow) == 0 {
		return n.kind != ipName
	}
	return slices.ContainsFunc(m.allow, func(p namePattern) bool { return p.matches(n) })
}
