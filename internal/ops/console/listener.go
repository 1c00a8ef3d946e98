package console

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// serveListener serves a request of the caller of a listener: see [Options.Base].
func (c *Console) serveListener(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && !c.readForm(w, r, c.sessionOf(r)) {
		return
	}
	if r.URL.Path == c.base+signOutPath && r.Method == http.MethodPost {
		c.options.SignOut()
		c.redirect(w, r, "/")
		return
	}
	c.serve(w, r)
}

// signOutPath is the path of the form that ends the session of a caller of a listener.
const signOutPath = "/sign-out"

// redirect sends a browser to a path of the console.
func (c *Console) redirect(w http.ResponseWriter, r *http.Request, path string) {
	http.Redirect(w, r, c.base+path, http.StatusSeeOther)
}

// ownPath matches the start of a path of the console in a rendered page. The value of another
// attribute, or text, cannot match: in both, quotes are escaped.
var ownPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(` (href|action|src|hx-get|hx-post|sse-connect)="/`)
})

// rebase returns a rendered page whose paths start with base.
func rebase(page []byte, base string) []byte {
	if base == "" {
		return page
	}
	return ownPath().ReplaceAll(page, []byte(` $1="`+base+`/`))
}

// SignIn writes the page that asks a caller of a listener for a credential, with why the last one was
// not accepted, or an asset that the page loads. The form posts to the path base.
func SignIn(w http.ResponseWriter, r *http.Request, base string, status int, problem string) {
	secureHeaders(w.Header())
	pages, err := parsedPages()
	if err != nil {
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	assets, err := packedAssets()
	if err != nil {
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	c := &Console{pages: pages, assets: assets, base: base, options: Options{Base: base}}
	if path, ok := strings.CutPrefix(r.URL.Path, base+"/assets/"); ok && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		hash, name, _ := strings.Cut(path, "/")
		r.SetPathValue("hash", hash)
		r.SetPathValue("name", name)
		w.Header().Del("WWW-Authenticate")
		c.serveAsset(w, r)
		return
	}
	c.show(w, r, status, "signin", "Sign in", "", problem)
}
