package grant

import "testing"

func TestADomainIsOpenWhereAnyoneCanHaveAName(t *testing.T) {
	for host, want := range map[string]string{
		"*.com:443": "com", "*.dev:443": "dev", "*.de:80": "de", "*.lan:80": "lan", "*.xn--p1ai:443": "xn--p1ai",
		"*.co.uk:443": "co.uk", "*.com.au:443": "com.au", "*.or.jp:443": "or.jp", "*.ac.nz:443": "ac.nz",
		"*.github.io:443": "github.io", "*.amazonaws.com:443": "amazonaws.com", "*.s3.amazonaws.com:443": "s3.amazonaws.com", "*.nip.io:80": "nip.io", "*.x.nip.io:80": "x.nip.io", "*.execute-api.us-east-1.amazonaws.com:443": "execute-api.us-east-1.amazonaws.com", "*.unip.io:80": "",
		"*.example.com:443": "", "*.mcpd.github.io:443": "", "*.shop.co.uk:443": "", "*.go.dev:443": "", "*.bbc.uk:443": "",
		"*.internal:443": "", "*.local:80": "", "*.test:80": "", "*.example:443": "",
		"com:443": "", "github.io:443": "", "api.com:443": "", "*.com": "", "*:443": "", "[::1]:443": "", "": "",
	} {
		if got := OpenDomain(host); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}
