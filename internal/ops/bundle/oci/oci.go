// Package oci pushes bundles to OCI registries, and takes them from there.
//
// A bundle is an artifact: an image manifest with one layer, which is the bundle. A [Repository] is
// its place at a registry. The registry is not trusted: all sizes are bounded before anything is
// read, all content must have its digest, and only the signatures in the bundle say who made it.
package oci

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/ops/bundle"
)

// Scheme begins the reference of a bundle at a registry, as in oci://ghcr.io/acme/shop:stable.
const Scheme = "oci://"

// Media types of the artifact and of its layer.
const (
	ArtifactType = "application/vnd.mcpd.bundle.v1"
	LayerType    = "application/vnd.mcpd.bundle.v1.tar"
)

// maxManifest bounds the manifest of an artifact, in bytes.
const maxManifest = 64 << 10

// Repository is the place of a bundle at a registry. It is safe for concurrent use.
type Repository struct {
	reference registry.Reference
	plain     bool // plain HTTP
	client    *http.Client
	authFile  string
	agent     string // User-Agent
}

// Open returns the repository of a reference, oci://registry/repository:tag or with @digest. It
// sends no request. authFile is a configuration file of Docker with credentials, which is read when
// a registry asks for them; if it is missing or "", requests are anonymous. version is the version of mcpd.
//
// A registry on this machine is asked over plain HTTP, and all others over HTTPS.
func Open(reference, authFile, version string) (*Repository, error) {
	name, ok := strings.CutPrefix(reference, Scheme)
	parsed, err := registry.ParseReference(name)
	if !ok || err != nil || parsed.Reference == "" { // the error may have a password
		return nil, errors.New("the reference of a bundle at a registry has the form oci://registry/repository:tag or oci://registry/repository@digest")
	}
	host, _, _ := strings.Cut(parsed.Registry, ":")
	if strings.HasPrefix(parsed.Registry, "[") {
		host, _, _ = strings.Cut(parsed.Registry[1:], "]")
	}
	return &Repository{reference: parsed, plain: bundle.IsLoopback(host), client: bundle.NewClient(0), authFile: authFile, agent: "mcpd/" + version}, nil
}

// connect returns a client for one operation. It keeps the tokens of that operation: a registry
// could make it keep any number of them.
func (r *Repository) connect() *remote.Repository {
	client := &auth.Client{Client: r.client, Header: http.Header{"User-Agent": {r.agent}}, Cache: auth.NewCache(), ClientID: "mcpd"}
	if r.authFile != "" {
		client.Credential = func(ctx context.Context, host string) (auth.Credential, error) {
			store, err := credentials.NewStore(r.authFile, credentials.StoreOptions{})
			if err != nil {
				return auth.EmptyCredential, fmt.Errorf("read credentials of registries: %w", err)
			}
			return credentials.Credential(store)(ctx, host)
		}
	}
	return &remote.Repository{Client: client, Reference: r.reference, PlainHTTP: r.plain, ManifestMediaTypes: []string{ocispec.MediaTypeImageManifest}, MaxMetadataBytes: maxManifest}
}

// String returns the reference.
func (r *Repository) String() string { return Scheme + r.reference.String() }

// isPinned reports whether the reference has a digest, so that its content never changes.
func (r *Repository) isPinned() bool {
	_, err := r.reference.Digest()
	return err == nil
}

// Fetch returns the bundle of the reference. Its tag is the digest of the manifest. If that is the
// given tag, only the digest is requested, or nothing if the reference has it.
func (r *Repository) Fetch(ctx context.Context, tag string) (bundle.Fetched, error) {
	if r.isPinned() && r.reference.Reference == tag {
		return bundle.Fetched{Tag: tag, Unchanged: true}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(bundle.Idle, func() { cancel(fmt.Errorf("the registry sent nothing for %s", bundle.Idle)) })
	defer stalled.Stop()
	got, err := fetch(ctx, r.connect(), tag, stalled)
	if err != nil {
		return bundle.Fetched{}, clean(cmp.Or(context.Cause(ctx), err))
	}
	return got, nil
}

// fetch is Fetch. stalled is reset whenever the registry sends something of the bundle.
func fetch(ctx context.Context, from *remote.Repository, tag string, stalled *time.Timer) (bundle.Fetched, error) {
	manifest, err := from.Manifests().Resolve(ctx, from.Reference.Reference)
	switch {
	case err != nil:
		return bundle.Fetched{}, err
	case manifest.Digest.String() == tag:
		return bundle.Fetched{Tag: tag, Unchanged: true}, nil
	case manifest.MediaType != ocispec.MediaTypeImageManifest || manifest.Size > maxManifest:
		return bundle.Fetched{}, fmt.Errorf("the reference is not an image manifest of at most %d bytes", maxManifest)
	}
	text, err := content.FetchAll(ctx, from.Manifests(), manifest)
	if err != nil {
		return bundle.Fetched{}, fmt.Errorf("fetch manifest: %w", err)
	}
	layer, err := layerOf(text)
	if err != nil {
		return bundle.Fetched{}, fmt.Errorf("the manifest describes no bundle: %w", err)
	}
	stalled.Reset(bundle.Idle)
	body, err := from.Blobs().Fetch(ctx, layer)
	if err != nil {
		return bundle.Fetched{}, fmt.Errorf("fetch layer: %w", err)
	}
	defer body.Close()
	data, err := content.ReadAll(progress{body, stalled}, layer)
	if err != nil {
		return bundle.Fetched{}, fmt.Errorf("fetch layer: %w", err)
	}
	return bundle.Fetched{Data: data, Tag: manifest.Digest.String(), Exact: true}, nil
}

// progress postpones a timer at each read.
type progress struct {
	io.Reader
	timer *time.Timer
}

func (p progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.timer.Reset(bundle.Idle)
	return n, err
}

// layerOf returns the layer of the manifest of an artifact.
func layerOf(text []byte) (layer ocispec.Descriptor, err error) {
	if err := jsonguard.Check(text, jsonguard.Limits{Bytes: maxManifest}); err != nil {
		return layer, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return layer, errors.New("it does not have the members of an image manifest")
	}
	if len(m.Layers) != 1 {
		return layer, fmt.Errorf("it has %d layers instead of 1", len(m.Layers))
	}
	layer = m.Layers[0]
	switch {
	case layer.MediaType != LayerType:
		return layer, fmt.Errorf("the media type of its layer is not %s", LayerType)
	case layer.Size < 1 || layer.Size > bundle.MaxSize:
		return layer, fmt.Errorf("its layer does not have 1 to %d bytes", bundle.MaxSize)
	case layer.Digest.Validate() != nil || layer.Digest.Algorithm() != digest.SHA256:
		return layer, errors.New("its layer has no SHA-256 digest")
	}
	return layer, nil
}

// Push pushes data, the bundle with a manifest, and makes the tag of the reference name it. It
// returns the digest of the artifact. The same bundle always has the same digest.
func (r *Repository) Push(ctx context.Context, data []byte, about bundle.Manifest) (string, error) {
	if r.isPinned() {
		return "", errors.New("a bundle is pushed to a tag, not to a digest")
	}
	layer := content.NewDescriptorFromBytes(LayerType, data)
	layer.Annotations = map[string]string{ocispec.AnnotationTitle: fmt.Sprintf("%s-%d.bundle", about.Name, about.Serial)}
	empty := ocispec.DescriptorEmptyJSON
	text, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: ArtifactType, Config: empty, Layers: []ocispec.Descriptor{layer},
		Annotations: map[string]string{
			ocispec.AnnotationTitle: about.Name, ocispec.AnnotationVersion: strconv.FormatInt(about.Serial, 10), ocispec.AnnotationCreated: about.Created.Format(time.RFC3339),
		},
	})
	if err != nil {
		return "", fmt.Errorf("encode manifest: %w", err)
	}
	to := r.connect()
	if err := pushBlob(ctx, to, layer, data); err != nil {
		return "", fmt.Errorf("push bundle: %w", clean(err))
	}
	if err := pushBlob(ctx, to, empty, empty.Data); err != nil {
		return "", fmt.Errorf("push configuration: %w", clean(err))
	}
	manifest := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, text)
	if err := to.Manifests().PushReference(ctx, manifest, bytes.NewReader(text), r.reference.Reference); err != nil {
		return "", fmt.Errorf("push manifest: %w", clean(err))
	}
	return manifest.Digest.String(), nil
}

// pushBlob pushes content that the registry lacks.
func pushBlob(ctx context.Context, to *remote.Repository, d ocispec.Descriptor, data []byte) error {
	if has, err := to.Blobs().Exists(ctx, d); err != nil || has {
		return err
	}
	return to.Blobs().Push(ctx, d, bytes.NewReader(data))
}

// secretParts are the parts of URLs that may have credentials, such as the signature in the query
// of a URL that a registry redirects to.
var secretParts = regexp.MustCompile(`//[^/@\s"]*@|\?[^\s"]*`)

// errorCode is an error code of the distribution specification.
var errorCode = regexp.MustCompile(`^[A-Z_]{1,40}$`)

// clean returns an error without secrets. What a registry says about a request is left out, as it
// may repeat the credentials.
func clean(err error) error {
	answer, ok := errors.AsType[*errcode.ErrorResponse](err)
	if !ok {
		return errors.New(secretParts.ReplaceAllString(err.Error(), ""))
	}
	text := fmt.Sprintf("the registry answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	for _, e := range answer.Errors {
		if errorCode.MatchString(e.Code) {
			return errors.New(text + ": " + e.Code)
		}
	}
	return errors.New(text)
}
