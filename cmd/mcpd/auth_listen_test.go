package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/auth/apikey"
)

// writeCertificate writes a self-signed certificate for 127.0.0.1 and its key. It
// returns a pool that trusts it.
func writeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	leaf, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: leaf}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		text := pem.EncodeToMemory(block)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		pool.AppendCertsFromPEM(text)
	}
	return pool
}

// workplace creates a directory with a tool and a configuration file.
func workplace(t *testing.T, config string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tools.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"mcpd.hcl": config, "tools.d/who.hcl": "tool \"who\" {\n  input \"id\" {\n    type = string\n    from = \"principal.id\"\n  }\n  run = \"return input.id\"\n}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	keysBlock = "auth \"api_key\" \"ops\" {}\n"
	tlsBlock  = "listen {\n  tls {\n    cert_file = \"cert.pem\"\n    key_file  = \"key.pem\"\n  }\n}\n"
)

// addKey adds a key of a principal to the file that the api_key blocks read.
func addKey(t *testing.T, dir, principal string) apikey.Key {
	t.Helper()
	key, err := apikey.Add(filepath.Join(dir, "keys.json"), apikey.Record{Name: "a", Principal: principal, Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestServe_openAddressNeedsAuthAndTLS(t *testing.T) {
	t.Parallel()
	program := buildDaemon(t)
	for name, config := range map[string]string{
		"nothing": "", "authentication": keysBlock, "TLS": tlsBlock,
		"TLS, and nobody has to prove anything": keysBlock + "auth \"anonymous\" \"all\" {}\n" + tlsBlock,
	} {
		dir := workplace(t, config)
		writeCertificate(t, dir)
		addKey(t, dir, "a")
		d, err := startDaemon(program, dir, os.Environ(), []string{"--state", "memory", "--listen", "0.0.0.0:0"})
		if err == nil {
			d.kill()
		}
		if err == nil || !strings.Contains(err.Error(), "there is no authentication with TLS") {
			t.Errorf("with %s: %v", name, err)
		}
	}
}

// A reload without the auth block keeps the previous authentication in force.
func TestReload_keepsAuthAndTLS(t *testing.T) {
	t.Parallel()
	dir := workplace(t, keysBlock+tlsBlock)
	trusted := writeCertificate(t, dir)
	key := addKey(t, dir, "ada")
	d, err := startDaemon(buildDaemon(t), dir, os.Environ(), []string{"--state", "memory", "--listen", "0.0.0.0:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(d.url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	d.url = "https://127.0.0.1:" + port
	d.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	t.Cleanup(d.client.CloseIdleConnections)
	judge := func(when string) {
		t.Helper()
		for credential, want := range map[string]int{"": 401, key.Plaintext(): 200} {
			status, _, err := d.exchange("POST", "/mcp/execute", []byte(`{"tool":"who","arguments":{}}`), http.Header{"Authorization": {"Bearer " + credential}})
			if err != nil || status != want {
				t.Errorf("%s: %d, want %d: %v", when, status, want, err)
			}
		}
	}
	judge("at the start")
	if response, err := http.Get("http://127.0.0.1:" + port + "/healthz"); err == nil {
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			t.Error("the server answers without TLS")
		}
	}
	save(t, filepath.Join(dir, "mcpd.hcl"), tlsBlock)
	if _, err := d.waitFor(regexp.MustCompile("reloaded")); err != nil {
		t.Fatal(err)
	}
	judge("without the block")
	if _, err := d.waitFor(regexp.MustCompile("keeping the previous blocks")); err != nil {
		t.Error(err)
	}
}

// A reload that removes authentication fails on an open address, even if the operator
// accepts the address without TLS.
func TestReload_keepsAuthOnOpenAddress(t *testing.T) {
	t.Parallel()
	dir := workplace(t, keysBlock)
	addKey(t, dir, "ada")
	d, err := startDaemon(buildDaemon(t), dir, os.Environ(), []string{"--state", "memory", "--listen", "0.0.0.0:0", "--insecure-listen"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	d.url = "http://127.0.0.1:" + port
	for _, config := range []string{"", "server {}\n", "auth \"anonymous\" \"all\" {}\n"} {
		if config != "" {
			save(t, filepath.Join(dir, "mcpd.hcl"), config)
			if _, err := d.waitFor(regexp.MustCompile("reloaded")); err != nil {
				t.Fatal(err)
			}
		}
		if status, body, err := d.exchange("POST", "/mcp/execute", []byte(`{"tool":"who","arguments":{}}`), nil); err != nil || status != http.StatusUnauthorized {
			t.Errorf("with %q: %d %s, %v", config, status, body, err)
		}
	}
}

// Users of a Unix socket get their own principals; unknown users are rejected.
func TestSocket_peerPrincipals(t *testing.T) {
	t.Parallel()
	if !knowsPeers {
		t.Skip("SKIPPED: this system does not report socket peers")
	}
	program := buildDaemon(t)
	me := os.Getuid()
	for uid, want := range map[int]int{me: 200, me + 1: 401} {
		dir := workplace(t, "auth \"unix\" \"me\" {\n  uids = ["+strconv.Itoa(uid)+"]\n}\n")
		d, err := startDaemon(program, dir, os.Environ(), []string{"--state", "memory", "--listen", "unix:s"})
		if err != nil {
			t.Fatal(err)
		}
		status, body, err := d.exchange("POST", "/mcp/execute", []byte(`{"tool":"who","arguments":{}}`), nil)
		if err != nil || status != want || want == 200 && string(body) != `{"result":"`+strconv.Itoa(me)+`"}` {
			t.Errorf("uid %d: %d %s, %v", uid, status, body, err)
		}
		if info, err := os.Stat(filepath.Join(dir, "s")); err != nil || info.Mode().Perm() != 0o666 {
			t.Errorf("socket %v: %v", info.Mode(), err)
		}
		if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		_ = d.cmd.Wait()
	}
}

// knowsPeers reports whether the system supports socket peer credentials.
const knowsPeers = runtime.GOOS == "linux"
