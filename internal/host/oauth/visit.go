package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpd/mcpd/scripting"
)

// visit is one user on the way to the authorization server and back.
type visit struct {
	user, verifier, url, id string
	expires                 time.Time
	// back says that the user is back, and the token on its way; guarded by the
	// mutex of the Users.
	back bool
	done chan struct{}
	err  error // may be read when done is closed
}

// stage is how far a user is on a visit.
type stage int

const (
	sent stage = iota // just now
	away
	arrived
)

// life is how long a user may take to come back.
const life = 10 * time.Minute

// newVisit returns a visit, and the state by which it is known when the user is back.
func (u *Users) newVisit(user string) (v *visit, state [sha256.Size]byte) {
	random := make([]byte, 32)
	rand.Read(random)
	text := base64.RawURLEncoding.EncodeToString(random)
	v = &visit{
		user: user, verifier: oauth2.GenerateVerifier(), id: rand.Text(),
		expires: u.issuer.options.Now().Add(life), done: make(chan struct{}),
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(v.verifier)}
	for name, value := range u.client.Params {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	v.url = u.client.config("").AuthCodeURL(text, options...)
	return v, sha256.Sum256([]byte(text))
}

// question is what the user of a visit is asked.
func (v *visit) question(c Client) error {
	message := "Allow this server to act for you."
	if at, err := url.Parse(c.AuthorizeURL); err == nil {
		message = fmt.Sprintf("Allow this server, which %s knows as %q, to act for you.", at.Host, c.ID)
	}
	// Plain data always encodes.
	details, _ := json.Marshal(map[string]string{"mode": "url", "url": v.url, "elicitationId": v.id, "message": message})
	return &scripting.HostError{Code: scripting.Consent, Message: "the user has not allowed it yet", Details: details}
}
