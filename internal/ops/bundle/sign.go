package bundle

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// signatureType is the typ header of a signature. Without it, a JWS that a key signed for another
// purpose could count as the signature of a bundle.
const signatureType = "mcpd-bundle+jws"

// algorithms are the accepted signature algorithms. Each fits one kind of key.
var algorithms = []jose.SignatureAlgorithm{jose.EdDSA, jose.ES256, jose.ES384, jose.ES512}

// algorithmOf returns the algorithm of a public or private key, or "".
func algorithmOf(key any) jose.SignatureAlgorithm {
	curve := func(bits int) jose.SignatureAlgorithm {
		return map[int]jose.SignatureAlgorithm{256: jose.ES256, 384: jose.ES384, 521: jose.ES512}[bits]
	}
	switch key := key.(type) {
	case ed25519.PublicKey, ed25519.PrivateKey:
		return jose.EdDSA
	case *ecdsa.PublicKey:
		return curve(key.Params().BitSize)
	case *ecdsa.PrivateKey:
		return curve(key.Params().BitSize)
	}
	return ""
}

// keyID returns the thumbprint of a key (RFC 7638), which names it in signatures.
func keyID(key any) (string, error) {
	sum, err := (&jose.JSONWebKey{Key: key}).Thumbprint(crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("compute thumbprint: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sum), nil
}

// maxKeyFile bounds key and trust files, in bytes.
const maxKeyFile = 1 << 20

var errKey = errors.New("the file has no Ed25519 or ECDSA (P-256, P-384, P-521) private key in PEM, PKCS #8 or JWK without a password")

// Sign returns data, a bundle, with a signature by the private key in a key file. It replaces an
// earlier signature by that key and keeps all others.
func Sign(data, keyFile []byte) ([]byte, error) {
	b, err := Read(data)
	if err != nil {
		return nil, err
	}
	key, err := parsePrivateKey(keyFile)
	if err != nil {
		return nil, err
	}
	id, text, err := sign(b.manifest, key, signatureType)
	if err != nil {
		return nil, fmt.Errorf("sign bundle: %w", err)
	}
	b.signatures = append(slices.DeleteFunc(b.signatures, func(s string) bool { return signerOf(s, b.manifest) == id }), text)
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("sign bundle: %w", err)
	}
	return b.encode()
}

// sign returns a detached JWS (RFC 7515) of a manifest, and the ID of the key.
func sign(manifest []byte, key any, kind jose.ContentType) (id, text string, err error) {
	if id, err = keyID(key); err != nil {
		return "", "", err
	}
	options := (&jose.SignerOptions{}).WithType(kind).WithHeader("kid", id)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithmOf(key), Key: key}, options)
	if err != nil {
		return "", "", err
	}
	signed, err := signer.Sign(manifest)
	if err != nil {
		return "", "", err
	}
	text, err = signed.DetachedCompactSerialize()
	return id, text, err
}

func parsePrivateKey(text []byte) (any, error) {
	if len(text) > maxKeyFile {
		return nil, errKey
	}
	if jsonguard.IsObject(text) {
		var k jose.JSONWebKey
		if err := json.Unmarshal(text, &k); err != nil || k.IsPublic() || algorithmOf(k.Key) == "" {
			return nil, errKey // the error might contain parts of the key
		}
		return k.Key, nil
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		default:
			continue
		}
		if err != nil || algorithmOf(key) == "" {
			return nil, errKey
		}
		return key, nil
	}
	return nil, errKey
}

// Trust says which bundles are accepted. It is immutable.
type Trust struct {
	// name is the only accepted name; "" accepts every name.
	name      string
	threshold int
	keys      map[string]any // public keys by keyID
	digest    [sha256.Size]byte
}

// ParseTrust parses a trust file: a JWK set (RFC 7517) that may also have the members threshold
// and name, or public keys in PEM, of which one is enough.
func ParseTrust(text []byte) (*Trust, error) {
	t, err := parseTrust(text)
	if err != nil {
		return nil, fmt.Errorf("read trust file: %w", err)
	}
	t.digest = sha256.Sum256(text)
	return t, nil
}

func parseTrust(text []byte) (*Trust, error) {
	if len(text) > maxKeyFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxKeyFile)
	}
	t := &Trust{threshold: 1, keys: map[string]any{}}
	if !jsonguard.IsObject(text) {
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			if block.Type != "PUBLIC KEY" {
				return nil, errors.New("a PEM block is not a PUBLIC KEY")
			}
			key, err := x509.ParsePKIXPublicKey(block.Bytes)
			if err != nil {
				return nil, errors.New("a PEM block is not a valid public key")
			}
			if err := t.add(key); err != nil {
				return nil, err
			}
		}
		return t, t.check()
	}
	if err := jsonguard.Check(text, jsonguard.Limits{Bytes: maxKeyFile}); err != nil {
		return nil, err
	}
	var file struct {
		Name      string            `json:"name"`
		Threshold *int              `json:"threshold"`
		Keys      []jose.JSONWebKey `json:"keys"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("it is neither PEM nor a JWK set: %w", err)
	}
	for i := range file.Keys {
		k := &file.Keys[i]
		switch {
		case !k.IsPublic():
			return nil, errors.New("a key is private; publish only its public part")
		case k.Use != "" && k.Use != "sig" || k.Algorithm != "" && k.Algorithm != string(algorithmOf(k.Key)):
			return nil, errors.New("a key is for another use or algorithm")
		}
		if err := t.add(k.Key); err != nil {
			return nil, err
		}
	}
	if t.name = file.Name; file.Threshold != nil {
		t.threshold = *file.Threshold
	}
	if t.name != "" && !isName(t.name) {
		return nil, errors.New("the name is not the name of a bundle")
	}
	return t, t.check()
}

// NewTrust returns a trust file with the public keys of other trust files, which may be in PEM. It
// accepts bundles with a name, "" for every name, that at least threshold keys signed.
func NewTrust(keyFiles [][]byte, threshold int, name string) ([]byte, error) {
	file := struct {
		Name      string            `json:"name,omitempty"`
		Threshold int               `json:"threshold"`
		Keys      []jose.JSONWebKey `json:"keys"`
	}{Name: name, Threshold: threshold}
	for _, text := range keyFiles {
		t, err := ParseTrust(text)
		if err != nil {
			return nil, err
		}
		for _, id := range slices.Sorted(maps.Keys(t.keys)) {
			file.Keys = append(file.Keys, jose.JSONWebKey{Key: t.keys[id], KeyID: id, Use: "sig"})
		}
	}
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode trust file: %w", err)
	}
	_, err = ParseTrust(text)
	return append(text, '\n'), err
}

func (t *Trust) add(key any) error {
	if algorithmOf(key) == "" {
		return errors.New("a key is neither Ed25519 nor ECDSA (P-256, P-384, P-521)")
	}
	id, err := keyID(key)
	if err != nil {
		return err
	}
	if _, twice := t.keys[id]; twice {
		return errors.New("it has a key twice")
	}
	t.keys[id] = key
	return nil
}

func (t *Trust) check() error {
	switch {
	case len(t.keys) == 0:
		return errors.New("it has no key")
	case t.threshold < 1 || t.threshold > len(t.keys):
		return fmt.Errorf("the threshold is not between 1 and the number of keys, %d", len(t.keys))
	}
	return nil
}

// Verify returns an error unless enough different trusted keys signed the bundle, and its name is
// the accepted one. Signatures by other keys do not count and do no harm, so that a bundle can
// have signatures by an old and a new key.
func (t *Trust) Verify(b *Bundle) error {
	if t.name != "" && b.Manifest.Name != t.name {
		return fmt.Errorf("verify bundle: its name is %s, and only %s is trusted", b.Manifest.Name, t.name)
	}
	valid, unknown, bad := map[string]bool{}, 0, 0
	for _, text := range b.signatures {
		id := signerOf(text, b.manifest)
		key, known := t.keys[id]
		switch {
		case !known:
			unknown++
		case verifies(text, b.manifest, key):
			valid[id] = true
		default:
			bad++
		}
	}
	if len(valid) >= t.threshold {
		return nil
	}
	var also strings.Builder
	if unknown > 0 {
		fmt.Fprintf(&also, ", %d by keys that are not trusted", unknown)
	}
	if bad > 0 {
		fmt.Fprintf(&also, ", %d that do not fit the manifest", bad)
	}
	return fmt.Errorf("verify bundle: %d of %d required signatures by trusted keys%s", len(valid), t.threshold, also.String())
}

// merge returns a bundle with the signatures of another copy of it. It removes a signature only to
// make room for one by a trusted key. It returns b if the other copy adds nothing.
func (t *Trust) merge(b, other *Bundle) *Bundle {
	list := slices.Clone(b.signatures)
	for _, text := range other.signatures {
		signer := t.signer(text, b.manifest)
		useless := func(s string) bool { return t.signer(s, b.manifest) == "" }
		switch {
		case slices.Contains(list, text), signer != "" && slices.ContainsFunc(list, func(s string) bool { return t.signer(s, b.manifest) == signer }):
		case len(list) < maxSignatures:
			list = append(list, text)
		case signer != "" && slices.ContainsFunc(list, useless):
			list[slices.IndexFunc(list, useless)] = text
		}
	}
	if slices.Equal(list, b.signatures) {
		return b
	}
	merged := *b
	merged.signatures = list
	return &merged
}

// signer returns the ID of the trusted key that made a signature, or "".
func (t *Trust) signer(signature string, manifest []byte) string {
	id := signerOf(signature, manifest)
	if key, known := t.keys[id]; known && verifies(signature, manifest, key) {
		return id
	}
	return ""
}

// signerOf returns the key ID in a signature, or "".
func signerOf(signature string, manifest []byte) string {
	parsed, err := jose.ParseDetached(signature, manifest, algorithms)
	if err != nil || len(parsed.Signatures) != 1 {
		return ""
	}
	return parsed.Signatures[0].Protected.KeyID
}

// verifies reports whether a key made a signature of the manifest of a bundle.
func verifies(signature string, manifest []byte, key any) bool {
	parsed, err := jose.ParseDetached(signature, manifest, []jose.SignatureAlgorithm{algorithmOf(key)})
	if err != nil || len(parsed.Signatures) != 1 {
		return false
	}
	kind, _ := parsed.Signatures[0].Protected.ExtraHeaders[jose.HeaderType].(string)
	return kind == signatureType && parsed.DetachedVerify(manifest, key) == nil
}

// Signers returns the IDs of the keys that the signatures name, whether or not they are valid.
func (b *Bundle) Signers() []string {
	ids := make([]string, len(b.signatures))
	for i, text := range b.signatures {
		ids[i] = signerOf(text, b.manifest)
	}
	return ids
}
