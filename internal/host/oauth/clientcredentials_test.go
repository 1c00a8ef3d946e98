package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

const clientSecret = "s3cret/of the+client"

// desk is a token server without a network: it is the transport.
type desk struct {
	mu     sync.Mutex
	asked  []string // the credential and parameters of each request
	status int
	kind   string
	answer string // %d is the number of the request
	err    error
	hold   chan struct{} // closed when the desk may answer; nil does not block
}

func (d *desk) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	id, secret, _ := r.BasicAuth()
	d.asked = append(d.asked, fmt.Sprintf("%s %s %s:%s %s", r.Method, r.URL, id, secret, body))
	number, hold := len(d.asked), d.hold
	resp := &http.Response{StatusCode: d.status, Header: http.Header{"Content-Type": {d.kind}}, Request: r}
	text, fail := strings.ReplaceAll(d.answer, "%d", fmt.Sprint(number)), d.err
	d.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	resp.Body = io.NopCloser(strings.NewReader(text))
	return resp, fail
}

func (d *desk) say(status int, answer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status, d.answer = status, answer
}

func (d *desk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.asked)
}

var theClient = Client{
	TokenURL: "https://login.example.com/token", ID: "mcpd", Secret: "client#1",
	Scopes: []string{"read", "write"}, Params: map[string]string{"audience": "https://crm.example.com"},
}

// open returns a desk with tokens that last an hour, and a source for it.
func open(t *testing.T, c Client) (*desk, *ClientCredentials) {
	t.Helper()
	d := &desk{status: 200, kind: "application/json;charset=UTF-8", answer: `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`}
	issuer := New(Options{Transport: func(Client) http.RoundTripper { return d }})
	t.Cleanup(issuer.Close)
	return d, issuer.ClientCredentials(c, func(_ context.Context, key string) (string, error) {
		if key != "client#1" {
			return "", errors.New("another secret was asked for")
		}
		return clientSecret, nil
	})
}

func TestClientCredentials_cache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := open(t, theClient)
		want := func(token string, asked int) {
			t.Helper()
			got, err := s.Token(t.Context())
			synctest.Wait()
			if got != token || err != nil || d.count() != asked {
				t.Fatalf("got %q and %v after %d requests, want %q after %d", got, err, d.count(), token, asked)
			}
		}
		want("token-1", 1)
		time.Sleep(58 * time.Minute)
		want("token-1", 1)
		time.Sleep(61 * time.Second) // less than a minute is left
		want("token-1", 2)           // the next one is being fetched
		want("token-2", 2)
		time.Sleep(2 * time.Hour) // no calls in the meantime
		want("token-3", 3)
	})
}

func TestClientCredentials_unauthorized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := open(t, theClient)
		get := func() string {
			got, err := s.Token(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return got
		}
		var seen []string
		for range 3 {
			seen = append(seen, get(), get())
			s.ReportUnauthorized()
			time.Sleep(20 * time.Second)
		}
		time.Sleep(time.Minute)
		s.ReportUnauthorized()
		seen = append(seen, get(), get())
		if got, want := strings.Join(seen, " "), "token-1 token-1 token-1 token-2 token-2 token-2 token-2 token-3"; got != want || d.count() != 3 {
			t.Errorf("got %s after %d requests, want %s", got, d.count(), want)
		}
	})
}

func TestClientCredentials_request(t *testing.T) {
	for _, inBody := range []bool{false, true} {
		c := theClient
		c.InBody = inBody
		d, s := open(t, c)
		if _, err := s.Token(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := "POST https://login.example.com/token mcpd:s3cret%2Fof+the%2Bclient audience=https%3A%2F%2Fcrm.example.com&grant_type=client_credentials&scope=read+write"
		if inBody {
			want = "POST https://login.example.com/token : audience=https%3A%2F%2Fcrm.example.com&client_id=mcpd&client_secret=s3cret%2Fof+the%2Bclient&grant_type=client_credentials&scope=read+write"
		}
		if d.asked[0] != want {
			t.Errorf("asked\n%s\nwant\n%s", d.asked[0], want)
		}
	}
}

func TestClientCredentials_concurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := open(t, theClient)
		d.hold = make(chan struct{})
		hurried, cancel := context.WithCancelCause(t.Context())
		errHurry := errors.New("the call ended")
		got := make(chan error, 32)
		for i := range 32 {
			ctx := t.Context()
			if i == 0 {
				ctx = hurried
			}
			go func() {
				token, err := s.Token(ctx)
				if err == nil && token != "token-1" {
					err = errors.New("another token: " + token)
				}
				got <- err
			}()
		}
		synctest.Wait()
		cancel(errHurry)
		if err := <-got; !errors.Is(err, errHurry) {
			t.Errorf("a cancelled caller gets %v", err)
		}
		close(d.hold)
		for range 31 {
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		if d.count() != 1 {
			t.Errorf("%d requests, want 1", d.count())
		}
	})
}

func TestClientCredentials_backoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := open(t, theClient)
		d.say(503, `{}`)
		token := func() string {
			got, err := s.Token(t.Context())
			if err != nil {
				return err.Error()
			}
			return got
		}
		const failure = "https://login.example.com/token: the token server answered 503"
		for i, pause := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			if got := token(); got != failure || d.count() != i+1 {
				t.Fatalf("got %q after %d requests", got, d.count())
			}
			if got, want := token(), fmt.Sprintf("%s (next attempt in %s)", failure, pause*time.Second); got != want || d.count() != i+1 {
				t.Fatalf("got %q after %d requests, want %q", got, d.count(), want)
			}
			time.Sleep(pause * time.Second)
		}
		d.say(200, `{"access_token":"token-%d","token_type":"bearer","expires_in":"600"}`)
		if got := token(); got != "token-9" {
			t.Errorf("got %q", got)
		}
		// The token is used while the next one is not available, until it expires.
		d.say(500, `{}`)
		time.Sleep(9*time.Minute + 30*time.Second)
		if got := token(); got != "token-9" {
			t.Errorf("got %q", got)
		}
		time.Sleep(30 * time.Second)
		if got := token(); got != strings.Replace(failure, "503", "500", 1) {
			t.Errorf("got %q", got)
		}
	})
}

func TestClientCredentials_safeErrors(t *testing.T) {
	const shown = "hunter2-of-the-server"
	for name, test := range map[string]struct {
		status       int
		kind, answer string
		err          error
		want         string
	}{
		"a known code":         {400, "application/json", `{"error":"invalid_client","error_description":"` + shown + `"}`, nil, "the token server answered 400 (invalid_client)"},
		"another code":         {401, "application/json", `{"error":"` + shown + `"}`, nil, "the token server answered 401"},
		"a page":               {500, "text/html", `<html>` + shown, nil, "the token server answered 500"},
		"a redirect":           {302, "text/plain", shown, nil, "the token server answered 302"},
		"an error with 200":    {200, "application/json", `{"error":"invalid_scope"}`, nil, "the token server answered 200 (invalid_scope)"},
		"a form":               {200, "application/x-www-form-urlencoded", `access_token=` + shown + `&token_type=bearer`, nil, errNotJSON.Error()},
		"a script":             {200, "text/javascript", `{"access_token":"` + shown + `","token_type":"bearer"}`, nil, errNotJSON.Error()},
		"half an object":       {200, "application/json", `{"access_token":"` + shown, nil, errMalformed.Error()},
		"deep nesting":         {200, "application/json", `{"access_token":"` + shown + `","x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, nil, errMalformed.Error()},
		"two tokens":           {200, "application/json", `{"access_token":"` + shown + `","access_token":"other"}`, nil, errMalformed.Error()},
		"a list":               {200, "application/json", `["` + shown + `"]`, nil, errMalformed.Error()},
		"no token":             {200, "application/json", `{"id_token":"` + shown + `"}`, nil, errMalformed.Error()},
		"a number as a token":  {200, "application/json", `{"access_token":1}`, nil, errMalformed.Error()},
		"a line break":         {200, "application/json", `{"access_token":"` + shown + `\r\nX: y","token_type":"bearer"}`, nil, errMalformed.Error()},
		"another type":         {200, "application/json", `{"access_token":"` + shown + `","token_type":"mac"}`, nil, errNotBearer.Error()},
		"a life in words":      {200, "application/json", `{"access_token":"` + shown + `","token_type":"bearer","expires_in":"` + shown + `"}`, nil, errMalformed.Error()},
		"a life that is over":  {200, "application/json", `{"access_token":"` + shown + `","token_type":"bearer","expires_in":-5}`, nil, errExpired.Error()},
		"a broken connection":  {0, "", "", errors.New("malformed HTTP response " + shown), errMalformed.Error()},
		"a refusal of egress":  {0, "", "", &scripting.HostError{Code: scripting.Unavailable, Message: "it refused the connection"}, "UNAVAILABLE: it refused the connection"},
		"more than is allowed": {200, "application/json", `{"access_token":"` + shown + strings.Repeat("x", maxAnswer) + `"}`, nil, errMalformed.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := open(t, theClient)
			d.kind, d.err = test.kind, test.err
			d.say(test.status, test.answer)
			_, err := s.Token(t.Context())
			if err == nil || err.Error() != "https://login.example.com/token: "+test.want {
				t.Fatalf("got %v, want %s", err, test.want)
			}
			for _, value := range []string{shown, clientSecret} {
				if strings.Contains(fmt.Sprintf("%+v", err), value) {
					t.Errorf("%q is repeated: %v", value, err)
				}
			}
		})
	}
}

func TestClientCredentials_defaultLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := open(t, theClient)
		d.say(200, `{"access_token":"token-%d"}`)
		for i := range 3 {
			if got, err := s.Token(t.Context()); got != fmt.Sprintf("token-%d", i+1) || err != nil {
				t.Fatalf("got %q and %v", got, err)
			}
			time.Sleep(defaultLife)
		}
	})
}

func TestClientCredentials_timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := open(t, theClient)
		d.hold = make(chan struct{})
		began := time.Now()
		_, err := s.Token(t.Context())
		if err == nil || time.Since(began) != requestTimeout {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
	})
}

func TestClose_cancelsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := open(t, theClient)
		d.hold = make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			_, err := s.Token(t.Context())
			ended <- err
		}()
		synctest.Wait()
		s.broker.Close()
		if err := <-ended; err == nil {
			t.Error("a token came")
		}
		if _, err := s.broker.ClientCredentials(theClient, s.secret).Token(t.Context()); !errors.Is(err, context.Canceled) {
			t.Errorf("a closed broker returns %v", err)
		}
	})
}

func TestClientGrant(t *testing.T) {
	for address, host := range map[string]string{
		"https://login.example.com/token":     "login.example.com:443",
		"https://login.example.com:8443/a/b":  "login.example.com:8443",
		"http://127.0.0.1/token":              "127.0.0.1:80",
		"https://[2001:db8::1]/token":         "[2001:db8::1]:443",
		"https://[2001:db8::1]:8443/oauth/v2": "[2001:db8::1]:8443",
	} {
		g := Client{TokenURL: address}.Grant()
		if len(g.Hosts) != 1 || g.Hosts[0] != host || g.PrivateNetworks || len(g.Methods) != 1 || g.Methods[0] != "POST" {
			t.Errorf("%s is granted %v", address, g)
		}
	}
}
