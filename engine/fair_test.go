package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// Of 16 parallel calls, one principal, address or network may have 14. The rest is for other
// clients.
func TestConcurrency_isShared(t *testing.T) {
	key := func(issuer, id string) identity.Caller {
		return identity.Caller{Principal: identity.Principal{ID: id, Issuer: issuer, Kind: identity.KindToken}}
	}
	nobody := func(ip string) identity.Caller {
		return identity.Caller{Principal: identity.Anonymous(), Source: identity.Source{IP: ip, Listener: "127.0.0.1:8080"}}
	}
	for name, test := range map[string]struct {
		attacker []identity.Caller
		other    identity.Caller
	}{
		"principals":  {[]identity.Caller{key("a", "x")}, key("a", "y")},
		"issuers":     {[]identity.Caller{key("a", "x")}, key("b", "x")},
		"addresses":   {[]identity.Caller{nobody("192.0.2.1"), nobody("::ffff:192.0.2.1")}, nobody("192.0.2.2")},
		"networks":    {[]identity.Caller{nobody("2001:db8::1"), nobody("2001:db8::2:3"), nobody("2001:db8::ffff")}, nobody("2001:db8:0:1::1")},
		"no address":  {[]identity.Caller{{Source: identity.Source{Listener: "stdio"}}}, nobody("192.0.2.1")},
		"a principal": {[]identity.Caller{key("a", "anonymous")}, nobody("")},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", "limits { concurrency = 16 }\n")}})
			begun, over := make(chan struct{}, 100), make(chan struct{})
			wait := func(context.Context, identity.Agent, struct{}) (bool, error) {
				begun <- struct{}{}
				<-over
				return true, nil
			}
			if err := engine.AddTool(s, engine.ToolOptions{Name: "wait", Timeout: 1 << 40}, wait); err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			var refused atomic.Int64
			call := func(c identity.Caller) {
				done := make(chan struct{})
				all.Go(func() {
					defer close(done)
					if r := s.Execute(t.Context(), call.Request{Name: "wait", Caller: c}); r.Err != nil {
						if !r.Err.Overloaded {
							t.Error(r.Err)
						}
						refused.Add(1)
					}
				})
				select {
				case <-begun:
				case <-done:
				}
			}
			for n := range 20 {
				call(test.attacker[n%len(test.attacker)])
			}
			if got := refused.Load(); got != 6 {
				t.Errorf("%d of 20 calls were rejected, want 6", got)
			}
			call(test.other)
			call(test.other)
			if got := refused.Load(); got != 6 {
				t.Error("calls of another client are rejected")
			}
			call(test.other)
			if got := refused.Load(); got != 7 {
				t.Error("more calls run than may")
			}
			close(over)
			all.Wait()
			call(test.attacker[0]) // all slots were released
			all.Wait()
			if got := fmt.Sprint(refused.Load(), s.Status().Running); got != "7 0" {
				t.Errorf("in the end: %s", got)
			}
		})
	}
}
