package bundle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Remote is a source of bundles that this package does not know, such as a registry.
type Remote interface {
	// String names the source, without secrets.
	String() string
	// Fetch returns the current bundle, unless tag, of an earlier answer, names it.
	Fetch(ctx context.Context, tag string) (Fetched, error)
}

// source is where bundles come from: a file, a web server, or something else.
type source struct {
	path   string // of a file
	url    *url.URL
	remote Remote
	client *http.Client
	folder folder // for a download that was interrupted
	wait   time.Duration
	chunk  int // bytes that are kept at once
	// prompt asks the server not to wait. It does not change during a request.
	prompt bool
	// asked reports whether a check is wanted; nil for never. held ends a request that the server may hold.
	asked func() bool
	held  atomic.Pointer[context.CancelCauseFunc]
}

// errAsked is the error of a request that was held, and ended because a check is wanted.
var errAsked = errors.New("another check is wanted")

// interrupt ends a request that the server holds. The caller has made asked return true before.
func (s *source) interrupt() {
	if cancel := s.held.Load(); cancel != nil {
		(*cancel)(errAsked)
	}
}

// Fetched is the answer of a source.
type Fetched struct {
	// Data is the bundle, of at most MaxSize bytes.
	Data []byte
	// Tag names the version at the source: an entity tag, the digest of a manifest, or the time and
	// size of a file; "" if unknown.
	Tag string
	// Unchanged means that the source still has the version that was asked about. Data is empty.
	Unchanged bool
	// Held means that the source waited before it answered, as Prefer: wait asks (RFC 7240).
	Held bool
	// Exact means that Data is as the source sent it in one piece.
	Exact bool
}

// Idle bounds the time in which a server sends nothing.
const Idle = 30 * time.Second

// errInterrupted is the error of a download that the next request continues.
var errInterrupted = errors.New("the download was interrupted")

// newSource returns the source for a path or URL. http is only for servers on this machine.
func newSource(from string, f folder, wait time.Duration) (*source, error) {
	if !strings.Contains(from, "://") {
		return &source{path: from}, nil
	}
	u, err := url.Parse(from)
	if err != nil || u.Host == "" {
		return nil, errors.New("the URL of the bundle is not valid")
	}
	if err := checkURL(u); err != nil {
		return nil, err
	}
	return &source{url: u, client: NewClient(wait), folder: f, wait: wait, chunk: 64 << 10}, nil
}

// NewClient returns a client for servers of bundles. It sends no request over plain HTTP except to
// this machine, and follows few redirects. A server may wait before it answers.
func NewClient(wait time.Duration) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = wait + Idle
	transport.DisableCompression = true // which would change the tag and the ranges
	return &http.Client{Transport: checkedTransport{transport}, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 5 {
			return errors.New("more than 5 redirects")
		}
		if r.URL.Scheme == "http" && via[0].URL.Scheme != "http" {
			return errors.New("a redirect from https leads to http")
		}
		r.Header.Del("Referer") // it has the query of the URL
		return checkURL(r.URL)
	}}
}

// checkedTransport checks the URL of each request.
type checkedTransport struct{ *http.Transport }

func (t checkedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := checkURL(r.URL); err != nil {
		return nil, err
	}
	return t.Transport.RoundTrip(r)
}

func checkURL(u *url.URL) error {
	if u.Scheme == "https" || u.Scheme == "http" && IsLoopback(u.Hostname()) {
		return nil
	}
	return errors.New("bundles come from https, or from http on this machine")
}

// IsLoopback reports whether a host is this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// String returns the source without credentials and the query, which may have a token.
func (s *source) String() string {
	switch {
	case s.remote != nil:
		return s.remote.String()
	case s.url == nil:
		return s.path
	}
	return (&url.URL{Scheme: s.url.Scheme, Host: s.url.Host, Path: s.url.Path}).String()
}

// id tells the source from others, also if only credentials or the query differ. It is a hash, as
// these may be secret.
func (s *source) id() string {
	name := s.String()
	if s.url != nil {
		name = s.url.String()
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

// fetch returns the current bundle, unless its tag is the given one.
func (s *source) fetch(ctx context.Context, tag string) (Fetched, error) {
	switch {
	case s.remote != nil:
		return s.remote.Fetch(ctx, tag)
	case s.url == nil:
		return s.readFile(tag)
	}
	got, err := s.download(ctx, tag)
	var failed *url.Error
	if errors.As(err, &failed) { // its text has the whole URL
		err = failed.Err
	}
	return got, err
}

func (s *source) readFile(tag string) (Fetched, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return Fetched{}, err
	}
	now := fmt.Sprintf("%d-%d", info.ModTime().UnixNano(), info.Size())
	if now == tag {
		return Fetched{Tag: tag, Unchanged: true}, nil
	}
	data, err := readFile(s.path)
	return Fetched{Data: data, Tag: now, Exact: true}, err
}

// part describes an interrupted download.
type part struct {
	Source string `json:"source"` // its ID
	Tag    string `json:"tag"`
}

// download requests the bundle. If an earlier download was interrupted, it requests the rest.
func (s *source) download(ctx context.Context, tag string) (Fetched, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), nil)
	if err != nil {
		return Fetched{}, err
	}
	have, kept := s.kept()
	if len(have) > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", len(have)))
		request.Header.Set("If-Range", kept.Tag)
	}
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	if tag != "" && !s.prompt {
		request.Header.Set("Prefer", fmt.Sprintf("wait=%d", int(s.wait.Seconds())))
		s.held.Store(&cancel)
		defer s.held.Store(nil)
		if s.asked != nil && s.asked() { // since before held was set
			return Fetched{}, errAsked
		}
	}
	response, err := s.client.Do(request)
	s.held.Store(nil)
	if err != nil && errors.Is(context.Cause(ctx), errAsked) {
		err = errAsked
	}
	if err != nil {
		return Fetched{}, err
	}
	defer response.Body.Close()
	got := Fetched{Tag: tagOf(response), Held: strings.Contains(response.Header.Get("Preference-Applied"), "wait")}
	switch {
	case response.StatusCode == http.StatusNotModified && tag != "":
		return Fetched{Tag: tag, Unchanged: true, Held: got.Held}, nil
	case response.StatusCode == http.StatusPartialContent && len(have) > 0 && got.Tag == kept.Tag && startsAt(response, len(have)):
	case response.StatusCode == http.StatusOK:
		have = nil
		if err := s.drop(); err != nil {
			return Fetched{}, err
		}
	case response.StatusCode == http.StatusPartialContent, response.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return Fetched{}, errors.Join(errors.New("the server cannot continue the download"), s.drop())
	default:
		return Fetched{}, fmt.Errorf("the server answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	got.Exact = have == nil && response.ContentLength >= 0
	if response.ContentLength > MaxSize-int64(len(have)) {
		return Fetched{}, fmt.Errorf("the server sends more than %d bytes", MaxSize)
	}
	if have == nil && isStrong(got.Tag) {
		if err := s.keep(got.Tag); err != nil {
			return Fetched{}, err
		}
	}
	stalled := time.AfterFunc(Idle, func() { cancel(fmt.Errorf("the server sent nothing for %s", Idle)) })
	defer stalled.Stop()
	chunk := make([]byte, s.chunk)
	for got.Data = have; ; stalled.Reset(Idle) {
		n, err := response.Body.Read(chunk)
		if len(got.Data)+n > MaxSize {
			return Fetched{}, errors.Join(fmt.Errorf("the server sends more than %d bytes", MaxSize), s.drop())
		}
		got.Data = append(got.Data, chunk[:n]...)
		if errors.Is(err, io.EOF) {
			return got, s.drop()
		}
		if n > 0 && isStrong(got.Tag) {
			if err := s.folder.disk.extend(partName, chunk[:n]); err != nil {
				return Fetched{}, errors.Join(fmt.Errorf("keep download: %w", err), s.drop())
			}
		}
		if err != nil {
			return Fetched{}, fmt.Errorf("%w after %d bytes: %w", errInterrupted, len(got.Data), cmp.Or(context.Cause(ctx), err))
		}
	}
}

// tagOf returns the entity tag of a response, and "" for one that is too long to keep.
func tagOf(r *http.Response) string {
	if tag := r.Header.Get("ETag"); len(tag) <= 256 {
		return tag
	}
	return ""
}

// startsAt reports whether a partial response starts at an offset and stays within the limit.
func startsAt(r *http.Response, offset int) bool {
	span, ok := strings.CutPrefix(r.Header.Get("Content-Range"), "bytes ")
	first, _, dash := strings.Cut(span, "-")
	return ok && dash && first == strconv.Itoa(offset)
}

// isStrong reports whether equal tags mean equal bytes.
func isStrong(tag string) bool { return strings.HasPrefix(tag, `"`) }

// kept returns the bytes of an interrupted download of this URL, if any.
func (s *source) kept() ([]byte, part) {
	var p part
	text, err := s.folder.disk.read(partRecord)
	if err != nil || json.Unmarshal(text, &p) != nil || p.Source != s.id() || !isStrong(p.Tag) {
		return nil, part{}
	}
	have, err := s.folder.disk.read(partName)
	if err != nil {
		return nil, part{}
	}
	return have, p
}

// keep starts to keep a download.
func (s *source) keep(tag string) error {
	text, err := json.Marshal(part{Source: s.id(), Tag: tag})
	if err == nil {
		err = s.folder.disk.replace(partRecord, text)
	}
	if err != nil {
		return fmt.Errorf("keep download: %w", err)
	}
	return nil
}

// drop removes what was kept of a download.
func (s *source) drop() error {
	return errors.Join(s.folder.disk.remove(partRecord), s.folder.disk.remove(partName))
}
