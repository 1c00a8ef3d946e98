package egress

import (
	"net/netip"
	"syscall"
)

// addressClass says who may reach an address. Greater classes are more restricted.
type addressClass int

const (
	// classPublic addresses are reachable under every grant.
	classPublic addressClass = iota
	// classPrivate addresses need private_networks.
	classPrivate
	// classMetadata addresses are metadata services, which return credentials of the machine.
	// They need private_networks and the literal address in the URL.
	classMetadata
	// classForbidden addresses are never reachable: they belong to no single server.
	classForbidden
)

// addressRange is a range of addresses in one class.
type addressRange struct {
	prefix netip.Prefix
	class  addressClass
}

// addressRanges returns the special-purpose address ranges, from the IANA registries (RFC 6890)
// and the cited documents. The first matching range applies.
func addressRanges() []addressRange {
	list := []struct {
		prefix string
		class  addressClass
	}{
		{"169.254.169.254/32", classMetadata}, // AWS, Azure, Google and most others
		{"169.254.170.2/32", classMetadata},   // AWS containers
		{"169.254.170.23/32", classMetadata},  // AWS pods
		{"100.100.100.200/32", classMetadata}, // Alibaba
		{"168.63.129.16/32", classMetadata},   // Azure
		{"192.0.0.192/32", classMetadata},     // Oracle
		{"fd00:ec2::254/128", classMetadata},  // AWS
		{"fd00:ec2::23/128", classMetadata},   // AWS pods
		{"fd20:ce::254/128", classMetadata},   // Google

		{"0.0.0.0/8", classForbidden},         // this network, RFC 1122
		{"10.0.0.0/8", classPrivate},          // RFC 1918
		{"100.64.0.0/10", classPrivate},       // carrier-grade NAT, RFC 6598
		{"127.0.0.0/8", classPrivate},         // loopback, RFC 1122
		{"169.254.0.0/16", classPrivate},      // link-local, RFC 3927
		{"172.16.0.0/12", classPrivate},       // RFC 1918
		{"192.0.0.0/24", classForbidden},      // protocol assignments, RFC 6890
		{"192.0.2.0/24", classForbidden},      // documentation, RFC 5737
		{"192.31.196.0/24", classForbidden},   // AS112, RFC 7535
		{"192.52.193.0/24", classForbidden},   // AMT, RFC 7450
		{"192.88.99.0/24", classForbidden},    // 6to4 relay, RFC 7526
		{"192.168.0.0/16", classPrivate},      // RFC 1918
		{"192.175.48.0/24", classForbidden},   // AS112, RFC 7534
		{"198.18.0.0/15", classPrivate},       // benchmarks, RFC 2544
		{"198.51.100.0/24", classForbidden},   // documentation, RFC 5737
		{"203.0.113.0/24", classForbidden},    // documentation, RFC 5737
		{"224.0.0.0/4", classForbidden},       // multicast, RFC 5771
		{"240.0.0.0/4", classForbidden},       // reserved and broadcast, RFC 1112
		{"::1/128", classPrivate},             // loopback, RFC 4291
		{"::/96", classForbidden},             // unspecified and IPv4-compatible, RFC 4291
		{"::ffff:0:0:0/96", classForbidden},   // IPv4-translated, RFC 2765
		{"64:ff9b::/96", classPrivate},        // NAT64, RFC 6052
		{"64:ff9b:1::/48", classPrivate},      // local NAT64, RFC 8215
		{"100::/64", classForbidden},          // discard, RFC 6666
		{"100:0:0:1::/64", classForbidden},    // dummy, RFC 9780
		{"2001::/23", classForbidden},         // Teredo, ORCHID and others, RFC 2928
		{"2001:db8::/32", classForbidden},     // documentation, RFC 3849
		{"2002::/16", classForbidden},         // 6to4, RFC 3056
		{"2620:4f:8000::/48", classForbidden}, // AS112, RFC 7534
		{"3fff::/20", classForbidden},         // documentation, RFC 9637
		{"5f00::/16", classForbidden},         // segment routing, RFC 9602
		{"fc00::/7", classPrivate},            // unique local, RFC 4193
		{"fe80::/10", classPrivate},           // link-local, RFC 4291
		{"fec0::/10", classPrivate},           // site-local, RFC 3879
		{"ff00::/8", classForbidden},          // multicast, RFC 4291
		{"2000::/3", classPublic},             // global unicast, RFC 4291
		{"::/0", classForbidden},              // not assigned
	}
	all := make([]addressRange, len(list))
	for i, b := range list {
		all[i] = addressRange{netip.MustParsePrefix(b.prefix), b.class}
	}
	return all
}

type addressClassifier struct {
	ranges []addressRange
	nat64  netip.Prefix // its last 32 bits hold an IPv4 address
}

func newAddressClassifier() addressClassifier {
	return addressClassifier{addressRanges(), netip.MustParsePrefix("64:ff9b::/32")}
}

// classOf returns the class of an address. An IPv4 address mapped into IPv6 counts as IPv4. An
// address behind NAT64 is at least private.
func (c addressClassifier) classOf(ip netip.Addr) addressClass {
	ip = ip.WithZone("").Unmap()
	class := classPublic
	for _, b := range c.ranges {
		if b.prefix.Contains(ip) {
			class = b.class
			break
		}
	}
	if c.nat64.Contains(ip) {
		all := ip.As16()
		class = max(class, c.classOf(netip.AddrFrom4([4]byte(all[12:]))))
	}
	return class
}

// dialControl returns the Control hook of the dialer, which checks each address before
// connecting. named is the literal address in the URL, if any.
func (c addressClassifier) dialControl(privateNetworks bool, named netip.Addr) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return errNetwork
		}
		ip := to.Addr()
		reach := classPublic
		switch {
		case privateNetworks && ip.Unmap() == named:
			reach = classMetadata
		case privateNetworks:
			reach = classPrivate
		}
		if c.classOf(ip) > reach {
			return errNetwork
		}
		return nil
	}
}
