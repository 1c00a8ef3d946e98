package checks

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// mock serves an API by its document. It validates requests and its own responses.
type mock struct {
	*httptest.Server
	router routers.Router

	mu     sync.Mutex
	wanted string // the operation that the next request is for
	seen   bool
	found  []string
}

func newMock(t *testing.T, doc *openapi3.T, path string) *mock {
	t.Helper()
	m := &mock{}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	doc.Servers = openapi3.Servers{{URL: m.URL + path}}
	for _, item := range doc.Paths.Map() {
		item.Servers = nil
		for _, op := range item.Operations() {
			op.Servers = nil
			// The decoder of forms needs the type, which documents may leave out.
			if op.RequestBody != nil {
				if form := op.RequestBody.Value.Content["application/x-www-form-urlencoded"]; form != nil && form.Schema.Value.Type == nil {
					form.Schema.Value.Type = &openapi3.Types{"object"}
				}
			}
		}
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	m.router = router
	return m
}

func (m *mock) expect(operation string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted, m.seen, m.found = operation, false, nil
}

// problems returns what was wrong with the last request.
func (m *mock) problems() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.seen {
		return append(m.found, "no request")
	}
	return m.found
}

func (m *mock) problem(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found = append(m.found, text)
}

func (m *mock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.URL.Scheme, r.URL.Host = "http", r.Host
	route, params, err := m.router.FindRoute(r)
	if err != nil {
		m.problem(r.Method + " " + r.URL.String() + ": " + err.Error())
		w.WriteHeader(http.StatusNotFound)
		return
	}
	m.mu.Lock()
	m.seen = true
	wanted := m.wanted
	m.mu.Unlock()
	if operation := route.Method + " " + route.Path; operation != wanted {
		m.problem("the request reaches " + operation)
	}
	input := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{
		MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true,
	}}
	if err := openapi3filter.ValidateRequest(r.Context(), input); err != nil {
		m.problem(r.Method + " " + r.URL.String() + ": " + err.Error())
	}
	m.respond(w, route)
}

// respond sends the first successful response, made from its schema.
func (m *mock) respond(w http.ResponseWriter, route *routers.Route) {
	responses := route.Operation.Responses.Map()
	var statuses []string
	for status := range responses {
		if strings.HasPrefix(status, "2") {
			statuses = append(statuses, status)
		}
	}
	slices.Sort(statuses)
	if len(statuses) == 0 {
		return
	}
	status, err := strconv.Atoi(strings.ReplaceAll(statuses[0], "X", "0"))
	if err != nil {
		m.problem(err.Error())
	}
	content := responses[statuses[0]].Value.Content
	for media, one := range content {
		w.Header().Set("Content-Type", media)
		if !strings.Contains(media, "json") {
			w.WriteHeader(status)
			_, _ = w.Write([]byte("example"))
			return
		}
		value := made(one.Schema, 0)
		if one.Schema != nil {
			if err := one.Schema.Value.VisitJSON(value); err != nil && one.Example != nil {
				value = one.Example
			}
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(value)
		return
	}
	w.WriteHeader(status)
}

// made returns a value for a schema, with all members of the first levels.
func made(ref *openapi3.SchemaRef, depth int) any {
	if ref == nil || ref.Value == nil || depth > 12 {
		return nil
	}
	s := ref.Value
	switch {
	case s.Example != nil && depth > 0:
		return s.Example
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.OneOf) > 0:
		return made(s.OneOf[0], depth+1)
	case len(s.AnyOf) > 0 && len(s.Properties) == 0:
		return made(s.AnyOf[0], depth+1)
	case s.Type.Includes("array"):
		list := []any{}
		for range max(1, s.MinItems) {
			if item := made(s.Items, depth+1); item != nil && depth < 6 {
				list = append(list, item)
			}
		}
		return list
	case len(s.AllOf) > 0 && !isObject(s):
		return made(s.AllOf[0], depth+1)
	case isObject(s):
		object := map[string]any{}
		for _, part := range s.AllOf {
			if members, ok := made(part, depth+1).(map[string]any); ok {
				for name, value := range members {
					object[name] = value
				}
			}
		}
		for name, property := range s.Properties {
			if value := made(property, depth+1); value != nil && (depth < 3 || slices.Contains(s.Required, name)) {
				object[name] = value
			}
		}
		return object
	case s.Type.Includes("string"):
		return map[string]string{"date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z", "uri": "https://example.com/", "email": "a@example.com", "uuid": "00000000-0000-4000-8000-000000000000"}[s.Format]
	case s.Type.Includes("integer"), s.Type.Includes("number"):
		if s.Min != nil {
			return *s.Min
		}
		return 1
	case s.Type.Includes("boolean"):
		return true
	}
	return nil
}

// isObject reports whether a schema is for an object.
func isObject(s *openapi3.Schema) bool {
	return s.Type.Includes("object") || len(s.Properties) > 0 || slices.ContainsFunc(s.AllOf, func(part *openapi3.SchemaRef) bool { return isObject(part.Value) })
}
