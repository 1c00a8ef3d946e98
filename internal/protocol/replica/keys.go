// Package replica lets the replicas of a fleet recognize each other and the sessions of each other.
//
// [Keys] come from the secret that all replicas share. Their TLS configurations accept only a peer with
// the same secret, so that no certificates need to be distributed. A [SessionID] seals the process that
// has a legacy session, and the principal of the session: a client can neither read nor choose them, and
// a replica knows without a look-up where to forward a request, and for whom. A [Forwarder] sends
// requests for sessions of other processes to their owner.
package replica

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Keys are the keys of one replica. They are safe for concurrent use and print nothing.
type Keys struct {
	// fixed at creation; the present secret first, then the old one
	certificates []tls.Certificate
	trusted      []ed25519.PublicKey
	ids          []cipher.AEAD
}

// Format never prints a key.
func (k *Keys) Format(out fmt.State, _ rune) { fmt.Fprint(out, "[replica keys]") }

// The labels of derived keys. A key for one purpose is useless for another, and none is a key of the
// stored state.
const (
	labelTLS = "mcpd replica tls 1"
	labelID  = "mcpd replica session id 1"
)

// ErrNoSecret is the error for keys without a secret.
var ErrNoSecret = errors.New("replicas need a shared secret: set key in the state block")

// NewKeys derives keys from secrets of any length. The first one proves who this replica is and seals
// session ids; all of them recognize others. An empty secret is ignored.
func NewKeys(secrets ...string) (*Keys, error) {
	k := &Keys{}
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		seed, err := hkdf.Key(sha256.New, []byte(secret), nil, labelTLS, ed25519.SeedSize)
		var key []byte
		if err == nil {
			key, err = hkdf.Key(sha256.New, []byte(secret), nil, labelID, 32)
		}
		if err != nil {
			return nil, fmt.Errorf("derive the keys of replicas: %w", err)
		}
		private := ed25519.NewKeyFromSeed(seed)
		block, blockErr := aes.NewCipher(key)
		if blockErr != nil {
			return nil, fmt.Errorf("derive the keys of replicas: %w", blockErr)
		}
		sealer, sealerErr := cipher.NewGCMWithRandomNonce(block)
		if sealerErr != nil {
			return nil, fmt.Errorf("derive the keys of replicas: %w", sealerErr)
		}
		certificate, certificateErr := selfSigned(private)
		if certificateErr != nil {
			return nil, fmt.Errorf("create the certificate of a replica: %w", certificateErr)
		}
		k.certificates = append(k.certificates, certificate)
		k.trusted, k.ids = append(k.trusted, private.Public().(ed25519.PublicKey)), append(k.ids, sealer)
	}
	if len(k.ids) == 0 {
		return nil, ErrNoSecret
	}
	return k, nil
}

// selfSigned returns a certificate that carries the public key. Peers look at nothing else in it.
func selfSigned(private ed25519.PrivateKey) (tls.Certificate, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}

// ServerTLS returns the configuration of the listener for other replicas: TLS 1.3, and only for clients
// that have one of the secrets.
func (k *Keys) ServerTLS() *tls.Config {
	c := config()
	c.Certificates, c.ClientAuth = k.certificates[:1], tls.RequireAnyClientCert
	c.VerifyConnection = func(s tls.ConnectionState) error {
		_, err := k.recognize(s)
		return err
	}
	return c
}

// ClientTLS returns the configuration for one connection to another replica: TLS 1.3, and only to a server
// that has one of the secrets. The client proves that it has the same one, because the server may know
// no other yet. The name of the server does not matter.
func (k *Keys) ClientTLS() *tls.Config {
	c := config()
	c.InsecureSkipVerify = true // VerifyConnection compares the key, and there is no authority
	secret := 0
	c.VerifyConnection = func(s tls.ConnectionState) (err error) {
		secret, err = k.recognize(s)
		return err
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &k.certificates[secret], nil }
	return c
}

// config disables session tickets: each connection proves possession of the key.
func config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true}
}

var errStranger = errors.New("the peer is not a replica with the same state key")

// recognize returns the number of the secret that a peer has, by the key in its certificate. The handshake
// proves that the peer has the private key.
func (k *Keys) recognize(s tls.ConnectionState) (secret int, err error) {
	if len(s.PeerCertificates) == 0 {
		return 0, errStranger
	}
	key, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	for i, trusted := range k.trusted {
		if ok && bytes.Equal(key, trusted) {
			return i, nil
		}
	}
	return 0, errStranger
}
