package sqldb_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mcpd/mcpd/internal/host/sqldb/postgres"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// hostileEnvironment sets all variables and files in the home directory that libpq reads to
// unexpected values.
func hostileEnvironment(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	cert, key := certificate(t)
	files := map[string][]byte{
		".pgpass": []byte("*:*:*:*:wrong\n"), "service.conf": []byte("[evil]\nhost=evil.example\nport=1\nrole=postgres\nsslmode=disable\noptions=-c role=postgres\nkrbsrvname=evil\nkrbspn=evil\n"),
		".postgresql/postgresql.crt": cert, ".postgresql/postgresql.key": key, ".postgresql/root.crt": cert,
	}
	if err := os.Mkdir(filepath.Join(home, ".postgresql"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(home, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"HOME": home, "PGHOST": "evil.example", "PGHOSTADDR": "192.0.2.1", "PGPORT": "1", "PGDATABASE": "evil", "PGUSER": "evil", "PGPASSWORD": "wrong",
		"PGPASSFILE": filepath.Join(home, ".pgpass"), "PGSERVICE": "evil", "PGSERVICEFILE": filepath.Join(home, "service.conf"),
		"PGAPPNAME": "evil", "PGCONNECT_TIMEOUT": "1", "PGOPTIONS": "-c default_transaction_read_only=off -c role=postgres", "PGTZ": "Mars/Olympus",
		"PGSSLMODE": "disable", "PGSSLCERT": filepath.Join(home, ".postgresql/postgresql.crt"), "PGSSLKEY": filepath.Join(home, ".postgresql/postgresql.key"),
		"PGSSLROOTCERT": filepath.Join(home, ".postgresql/root.crt"), "PGSSLPASSWORD": "wrong", "PGSSLCERTMODE": "require", "PGSSLSNI": "0", "PGSSLNEGOTIATION": "direct",
		"PGTARGETSESSIONATTRS": "read-only", "PGMINPROTOCOLVERSION": "3.2", "PGMAXPROTOCOLVERSION": "3.2", "PGCHANNELBINDING": "require", "PGREQUIREAUTH": "none",
		"PGCLIENTENCODING": "LATIN1", "PGDATESTYLE": "German", "PGKRBSRVNAME": "evil",
	} {
		t.Setenv(name, value)
	}
}

// certificate returns a certificate and its key.
func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// outline is the comparable part of a configuration.
type outline struct {
	Host, Database, User, Password, Application string
	Port                                        uint16
	TLS, Checked, Roots, Own, Plain             bool
	Timeout                                     time.Duration
	Parameters                                  map[string]string
	Negotiation, CertMode, Oldest, Newest       string
	Binding, Auth, Kerberos                     string
	Chosen                                      bool
}

func outlined(c *pgconn.Config) outline {
	o := outline{
		Host: c.Host, Port: c.Port, Database: c.Database, User: c.User, Password: c.Password, Timeout: c.ConnectTimeout, Parameters: c.RuntimeParams, TLS: c.TLSConfig != nil,
		Negotiation: c.SSLNegotiation, CertMode: c.SSLCertMode, Oldest: c.MinProtocolVersion, Newest: c.MaxProtocolVersion, Binding: c.ChannelBinding, Auth: c.RequireAuth,
		Kerberos: c.KerberosSrvName + c.KerberosSpn,
		Chosen:   c.ValidateConnect != nil,
	}
	if c.TLSConfig != nil {
		o.Checked, o.Roots, o.Own = !c.TLSConfig.InsecureSkipVerify, c.TLSConfig.RootCAs != nil, len(c.TLSConfig.Certificates) > 0
	}
	for _, f := range c.Fallbacks {
		o.Plain = o.Plain || f.TLSConfig == nil
	}
	return o
}

// written returns a grant with a DSN in its file.
func written(before, after string) grant.SQL {
	return grant.SQL{Name: "pg", Driver: grant.PostgreSQL, Address: "db.example:5433",
		DSN: grant.Value{Parts: []grant.Part{{Literal: before}, {Secret: "pw"}, {Literal: after}}}}
}

func TestConfigure_isolated(t *testing.T) {
	fixed := map[string]string{
		"client_encoding": "UTF8", "standard_conforming_strings": "on", "bytea_output": "hex", "datestyle": "ISO",
		"application_name": "mcpd", "default_transaction_read_only": "on",
	}
	plain := outline{
		Host: "db.example", Port: 5433, Database: "shop", User: "app", Password: password, Parameters: fixed,
		CertMode: "allow", Oldest: "3.0", Newest: "3.0", Binding: "prefer",
	}
	checked, preferred, told := plain, plain, plain
	checked.TLS, checked.Checked = true, true
	preferred.TLS, preferred.Plain = true, true
	told.Timeout = 7 * time.Second
	told.Parameters = map[string]string{"search_path": "a'b, \\c"}
	for name, value := range fixed {
		told.Parameters[name] = value
	}
	told.Parameters["application_name"] = "shop"
	rows := map[string]struct {
		grant grant.SQL
		want  outline
	}{
		"plain":     {written("postgres://app:", "@db.example:5433/shop?sslmode=disable"), plain},
		"checked":   {written("postgres://app:", "@db.example:5433/shop?sslmode=verify-full"), checked},
		"preferred": {written("postgres://app:", "@db.example:5433/shop"), preferred},
		"told":      {written("postgres://app:", "@db.example:5433/shop?sslmode=disable&connect_timeout=7&application_name=shop&search_path=a%27b,%20%5Cc"), told},
	}
	try := func(t *testing.T) {
		for name, row := range rows {
			config, err := postgres.Configure(t.Context(), row.grant, resolve)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if diff := cmp.Diff(row.want, outlined(config)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", name, diff)
			}
		}
	}
	t.Run("in an empty environment", try)
	t.Run("in a hostile environment", func(t *testing.T) {
		hostileEnvironment(t)
		try(t)
	})
	t.Run("with a service that is not there", func(t *testing.T) {
		hostileEnvironment(t)
		temporary := t.TempDir()
		t.Setenv("TMPDIR", temporary)
		t.Setenv("PGSERVICE", "gone")
		try(t)
		if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
			t.Errorf("%d files remain, %v", len(left), err)
		}
	})
}
