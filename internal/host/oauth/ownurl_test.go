package oauth

import "testing"

// The spelling of the address does not matter.
func TestIsOwnURL(t *testing.T) {
	h := newHall(t)
	issuer := h.users.broker
	for address, want := range map[string]bool{
		h.page("ada").String(): true, "https://login.example.com/authorize": true, "https://mcp.example.com/oauth/crm?state=x&code=y": true,
		"HTTPS://LOGIN.example.com.:443/./x/..//Authorize/?a#b": true, "https://ada@login.example.com/%61uthorize": true,
		`https:\\login.example.com\authorize`: true, "https:login.example.com/authorize": true, "https:///login.example.com/authorize": true,
		" https://login.example.com/authorize": true, "https://login.example.com/authorize ": true, `https://login.example.com/x\..\authorize`: true, "https://login%2eexample.com/authorize": true, "https://login。example.com/authorize": true,
		"https://login.example.com/help": false, "https://login.example.com/help/authorize": false, "https://login.example.com:8443/authorize": false, "https://pay.example.com/authorize": false,
		"https://mcp.example.com/oauth/mail": false, "mailto:ada@login.example.com": false, "https://pay.example.com/ü?to=https://x/": false,
	} {
		if got := issuer.IsOwnURL(address); got != want {
			t.Errorf("%s leads there: %v", address, got)
		}
	}
	issuer.KeepOnly(nil)
	for _, address := range []string{"https://login.example.com/authorize", "no address"} {
		if issuer.IsOwnURL(address) {
			t.Errorf("without a client %s leads there", address)
		}
	}
}
