package workqueue_test

import (
	"hash/maphash"
	"net/netip"
	"testing"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/workqueue"
)

func TestClientOf_same(t *testing.T) {
	anonymous := identity.Anonymous()
	key := &identity.Principal{Kind: identity.KindKey, ID: "ann"}
	token := &identity.Principal{Kind: identity.KindToken, Issuer: "https://a", ID: "ann"}
	other := &identity.Principal{Kind: identity.KindToken, Issuer: "https://b", ID: "ann"}
	seed := maphash.MakeSeed()
	of := func(p *identity.Principal, address, listener string) workqueue.Client {
		ip, _ := netip.ParseAddr(address)
		return workqueue.ClientOf(p, ip, listener)
	}
	for name, row := range map[string]struct {
		a, b workqueue.Client
		same bool
	}{
		"one address":              {of(nil, "10.0.0.1", "x"), of(&anonymous, "10.0.0.1", "y"), true},
		"mapped to IPv6":           {of(nil, "10.0.0.1", ""), of(nil, "::ffff:10.0.0.1", ""), true},
		"two addresses":            {of(nil, "10.0.0.1", ""), of(nil, "10.0.0.2", ""), false},
		"one network":              {of(nil, "2a00::1", ""), of(nil, "2a00::ffff:1%eth0", ""), true},
		"two networks":             {of(nil, "2a00::1", ""), of(nil, "2a00:0:0:1::1", ""), false},
		"one listener":             {of(nil, "", "stdio"), of(&anonymous, "?", "stdio"), true},
		"two listeners":            {of(nil, "", "stdio"), of(nil, "", "local"), false},
		"a principal anywhere":     {of(key, "10.0.0.1", "x"), of(key, "10.0.0.2", "y"), true},
		"a principal of two kinds": {of(key, "", ""), of(token, "", ""), false},
		"one id of two issuers":    {of(token, "", ""), of(other, "", ""), false},
		"a principal without id":   {of(&identity.Principal{Kind: identity.KindKey}, "10.0.0.1", ""), of(nil, "10.0.0.1", ""), true},
	} {
		if (row.a == row.b) != row.same || (row.a.Number(seed) == row.b.Number(seed)) != row.same {
			t.Errorf("%s: the same client is %v, want %v", name, row.a == row.b, row.same)
		}
	}
	if !of(key, "", "").Proved() || of(&anonymous, "10.0.0.1", "").Proved() || (workqueue.Client{}).Proved() {
		t.Error("a client has proved who it is")
	}
}

func TestClient_Number_allocatesNothing(t *testing.T) {
	seed, ip := maphash.MakeSeed(), netip.MustParseAddr("2a00::1")
	anonymous := identity.Anonymous()
	if n := testing.AllocsPerRun(100, func() { workqueue.ClientOf(&anonymous, ip, "http").Number(seed) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
