package schema

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOneSchemaServesManyCallsAtOnce(t *testing.T) {
	for _, schema := range []string{
		`{"properties":{"a":{"default":[{}],"items":{"properties":{"n":{"type":"integer","default":1}}}},"b":{"pattern":"^x"}},"additionalProperties":false}`,
		`{"properties":{"a":{"default":[{}],"items":{"properties":{"n":{"type":"integer","default":1}}}},"b":{"pattern":"^x"}},"unevaluatedProperties":false}`,
	} {
		s := mustCompile(t, schema)
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for range 50 {
					value, _, found := s.Args([]byte(`{"b":"x"}`), nil)
					want := map[string]any{"a": []any{map[string]any{"n": int64(1)}}, "b": "x"}
					if diff := cmp.Diff(want, value); diff != "" || found != nil {
						t.Errorf("%v (-want +got):\n%s", found, diff)
					}
					if _, _, found := s.Args([]byte(`{"b":"y","c":1}`), nil); len(found) != 2 {
						t.Errorf("%v", found)
					}
				}
			})
		}
		wait.Wait()
	}
}
