package configcheck_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

func TestNoGrantIsOfADomainWhereAnyoneCanHaveAHost(t *testing.T) {
	const (
		granting = `tool "t" {
  allow {
    http "h" { hosts = ["api.example.com:443", "*.com:443", "*.example.com:443", "*.github.io:443"] }
  }
  run = "return http.h;"
}
`
		operators = `hook "o" {
  on = ["end"]
  allow {
    http "h" { hosts = ["*.co.uk:443"] }
  }
  run = "http.h;"
}
`
		advice  = `; name the hosts, or a domain that has one owner, as in "*.example.com:443"; what is meant as it is, the operator names in ceiling.http_hosts`
		com     = `a.hcl:3:48: error: tool "t" is granted every host below com, where anyone can have one` + advice
		github  = `a.hcl:3:82: error: tool "t" is granted every host below github.io, where anyone can have one` + advice
		country = `mcpd.hcl:4:25: error: hook "o" is granted every host below co.uk, where anyone can have one` + advice
	)
	for operator, want := range map[string][]string{
		"":                                       {com, github},
		"ceiling { http_hosts = [\"*:443\"] }\n": {com, github},
		"ceiling { http_hosts = [\"*:443\", \"*.github.io:443\"] }\n":     {com},
		"ceiling { http_hosts = [\"*.com:443\", \"*.GitHub.io:443\"] }\n": nil,
		operators: {com, github, country},
	} {
		got := said(configcheck.CheckPlaces(config(t, operator), []*hclfile.Definitions{tools(t, "a.hcl", granting)}, machine(nil)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s(-want +got)\n%s", operator, diff)
		}
	}
}
