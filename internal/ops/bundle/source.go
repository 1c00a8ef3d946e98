package bundle

import (
	"cmp"
	"context"
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
	"time"
)

// source is where bundles come from: a file, or a web server.
type source struct {
	path   string // of a file
	url    *url.URL
	client *http.Client
	folder folder // for a download that was interrupted
	wait   time.Duration
	chunk  int // bytes that are kept at once
}

// fetched is the answer of a source.
type fetched struct {
	data []byte
	// tag names the version at the source: an entity tag, or the time and size of a file; "" if
	// unknown.
	tag string
	// unchanged means that the source still has the version that was asked about. data is empty.
	unchanged bool
	// held means that the source waited before it answered, as Prefer: wait asks (RFC 7240).
	held bool
	// exact means that data is as the source sent it in one piece.
	exact bool
}

// idle bounds the time in which a server sends nothing.
const idle = 30 * time.Second

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
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = wait + idle
	transport.DisableCompression = true // which would change the tag and the ranges
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 5 {
			return errors.New("more than 5 redirects")
		}
		if r.URL.Scheme == "http" && via[0].URL.Scheme != "http" {
			return errors.New("a redirect from https leads to http")
		}
		r.Header.Del("Referer") // it has the query of the URL
		return checkURL(r.URL)
	}}
	return &source{url: u, client: client, folder: f, wait: wait, chunk: 64 << 10}, nil
}

func checkURL(u *url.URL) error {
	host := u.Hostname()
	ip := net.ParseIP(host)
	if u.Scheme == "https" || u.Scheme == "http" && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return errors.New("bundles come from https, or from http on this machine")
}

// String returns the source without credentials and the query, which may have a token.
func (s *source) String() string {
	if s.url == nil {
		return s.path
	}
	return (&url.URL{Scheme: s.url.Scheme, Host: s.url.Host, Path: s.url.Path}).String()
}

// fetch returns the current bundle, unless its tag is the given one.
func (s *source) fetch(ctx context.Context, tag string) (fetched, error) {
	if s.url == nil {
		return s.readFile(tag)
	}
	got, err := s.download(ctx, tag)
	var failed *url.Error
	if errors.As(err, &failed) { // its text has the whole URL
		err = failed.Err
	}
	return got, err
}

func (s *source) readFile(tag string) (fetched, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return fetched{}, err
	}
	now := fmt.Sprintf("%d-%d", info.ModTime().UnixNano(), info.Size())
	if now == tag {
		return fetched{tag: tag, unchanged: true}, nil
	}
	data, err := readFile(s.path)
	return fetched{data: data, tag: now, exact: true}, err
}

// part describes an interrupted download.
type part struct {
	URL string `json:"url"`
	Tag string `json:"tag"`
}

// download requests the bundle. If an earlier download was interrupted, it requests the rest.
func (s *source) download(ctx context.Context, tag string) (fetched, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), nil)
	if err != nil {
		return fetched{}, err
	}
	have, kept := s.kept()
	if len(have) > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", len(have)))
		request.Header.Set("If-Range", kept.Tag)
	}
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
		request.Header.Set("Prefer", fmt.Sprintf("wait=%d", int(s.wait.Seconds())))
	}
	response, err := s.client.Do(request)
	if err != nil {
		return fetched{}, err
	}
	defer response.Body.Close()
	got := fetched{tag: tagOf(response), held: strings.Contains(response.Header.Get("Preference-Applied"), "wait")}
	switch {
	case response.StatusCode == http.StatusNotModified && tag != "":
		return fetched{tag: tag, unchanged: true, held: got.held}, nil
	case response.StatusCode == http.StatusPartialContent && len(have) > 0 && got.tag == kept.Tag && startsAt(response, len(have)):
	case response.StatusCode == http.StatusOK:
		have = nil
		if err := s.drop(); err != nil {
			return fetched{}, err
		}
	case response.StatusCode == http.StatusPartialContent, response.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return fetched{}, errors.Join(errors.New("the server cannot continue the download"), s.drop())
	default:
		return fetched{}, fmt.Errorf("the server answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	got.exact = have == nil && response.ContentLength >= 0
	if response.ContentLength > MaxSize-int64(len(have)) {
		return fetched{}, fmt.Errorf("the server sends more than %d bytes", MaxSize)
	}
	if have == nil && isStrong(got.tag) {
		if err := s.keep(got.tag); err != nil {
			return fetched{}, err
		}
	}
	stalled := time.AfterFunc(idle, func() { cancel(fmt.Errorf("the server sent nothing for %s", idle)) })
	defer stalled.Stop()
	chunk := make([]byte, s.chunk)
	for got.data = have; ; stalled.Reset(idle) {
		n, err := response.Body.Read(chunk)
		if len(got.data)+n > MaxSize {
			return fetched{}, errors.Join(fmt.Errorf("the server sends more than %d bytes", MaxSize), s.drop())
		}
		got.data = append(got.data, chunk[:n]...)
		if errors.Is(err, io.EOF) {
			return got, s.drop()
		}
		if n > 0 && isStrong(got.tag) {
			if err := s.folder.disk.extend(partName, chunk[:n]); err != nil {
				return fetched{}, errors.Join(fmt.Errorf("keep download: %w", err), s.drop())
			}
		}
		if err != nil {
			return fetched{}, fmt.Errorf("%w after %d bytes: %w", errInterrupted, len(got.data), cmp.Or(context.Cause(ctx), err))
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
	if err != nil || json.Unmarshal(text, &p) != nil || p.URL != s.String() || !isStrong(p.Tag) {
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
	text, err := json.Marshal(part{URL: s.String(), Tag: tag})
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
