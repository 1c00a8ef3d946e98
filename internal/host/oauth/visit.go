package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpd/mcpd/scripting"
)

// visit is one user on the way to the authorization server and back.
type visit struct {
	// Fixed at creation. page are the parameters of the question that sends the
	// user away.
	caller   Caller
	verifier string
	page     []byte
	state    [sha256.Size]byte

	// Guarded by the mutex of the Users. expires is when it is forgotten, and further is closed when the stage is
	// another one; err is how the visit failed that is over.
	expires time.Time
	stage   stage
	further chan struct{}
	err     error
	// token, code, left and forms are of the stage shown: what the user would have
	// the client have, what proves that they are the one who was asked, how often it
	// may be typed, and the parameters of the questions for it, by how many tries are
	// left, less one.
	token token
	code  string
	left  int
	forms [tries][]byte
}

// stage is how far a user is on a visit.
type stage int

const (
	sent    stage = iota // just now: what somebody is told who makes a visit
	away                 // at the authorization server
	arrived              // back, and the token is asked for
	shown                // a page shows the code for which the user is asked
	joining              // the token is being kept
	over
)

// life is how long a user may take to come back, and again to type the code.
const life = 10 * time.Minute

// newVisit returns a visit, and the hash of the state by which it is known when
// the user is back.
func (u *Users) newVisit(who Caller) (v *visit, state [sha256.Size]byte) {
	random := make([]byte, 32)
	rand.Read(random)
	text := base64.RawURLEncoding.EncodeToString(random)
	v = &visit{
		caller: who, verifier: oauth2.GenerateVerifier(), state: sha256.Sum256([]byte(text)),
		expires: u.issuer.options.Now().Add(life), stage: away, further: make(chan struct{}),
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(v.verifier)}
	for name, value := range u.client.Params {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	// Plain data always encodes.
	v.page, _ = json.Marshal(map[string]string{
		"mode": "url", "url": u.client.config("").AuthCodeURL(text, options...), "elicitationId": rand.Text(),
		"message": fmt.Sprintf("Allow this server, which %s knows as %q, to act for you.", hostIn(u.client.AuthorizeURL), u.client.ID),
	})
	return v, v.state
}

// question is what the user of a visit is asked.
func (v *visit) question() error {
	return &scripting.HostError{Code: scripting.Consent, Message: "the user has not allowed it yet", Details: v.page}
}
