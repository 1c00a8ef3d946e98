package grant

import (
	"net"
	"slices"
	"strings"
)

// ownNames are the last parts of names that nobody sells (RFC 6761, RFC 6762, and
// the resolution of ICANN of 2024-07-29): whoever runs the network gives names
// below them.
var ownNames = []string{"internal", "local", "localhost", "test", "example", "invalid"}

// categories are what many countries sell names below: co.uk, com.au, or.jp.
var categories = []string{"ac", "co", "com", "edu", "go", "gob", "gouv", "gov", "ltd", "me", "mil", "ne", "net", "nom", "or", "org", "plc", "sch"}

// deep are domains below which anyone has names at any depth: of names that hold an
// address, and of a cloud that has a level for each region and service.
var deep = []string{"amazonaws.com", "nip.io", "sslip.io", "xip.io", "traefik.me", "lvh.me", "localtest.me"}

// anyones are domains right below which anyone has a name for the asking: those of
// places where people put pages and programs.
var anyones = []string{
	"cloudfront.net", "elasticbeanstalk.com", "azurewebsites.net", "cloudapp.azure.com", "blob.core.windows.net", "azureedge.net",
	"appspot.com", "run.app", "web.app", "firebaseapp.com", "cloudfunctions.net", "storage.googleapis.com", "googleusercontent.com", "blogspot.com",
	"github.io", "gitlab.io", "githubusercontent.com", "pages.dev", "workers.dev", "r2.dev", "trycloudflare.com", "vercel.app", "netlify.app", "herokuapp.com",
	"onrender.com", "fly.dev", "deno.dev", "surge.sh", "glitch.me", "repl.co", "ngrok.io", "ngrok.app", "ngrok-free.app", "loca.lt", "duckdns.org", "dyndns.org", "no-ip.org",
	"ddns.net", "supabase.co", "wordpress.com", "myshopify.com", "wixsite.com",
}

// OpenDomain returns the domain of a pattern of hosts with a port below which
// anyone can have a name, as com of "*.com:443"; "" of any other. It knows the
// categories of countries by their form, and other domains by name: no list of
// these is complete.
func OpenDomain(host string) string {
	name, _, err := net.SplitHostPort(host)
	domain, below := strings.CutPrefix(name, "*.")
	if err != nil || !below {
		return ""
	}
	labels := strings.Split(domain, ".")
	last := labels[len(labels)-1]
	switch {
	case len(labels) == 1 && !slices.Contains(ownNames, last),
		len(labels) == 2 && len(last) == 2 && slices.Contains(categories, labels[0]),
		slices.Contains(anyones, domain),
		slices.ContainsFunc(deep, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }):
		return domain
	}
	return ""
}
