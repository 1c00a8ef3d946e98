package scripting

import "testing"

func TestAMemberOfNothingIsToldAsOne(t *testing.T) {
	for body, want := range map[string]string{
		`const x = null; return x.foo`:        `Cannot read property 'foo' of undefined or null`,
		`let x; return x.foo.bar`:             `Cannot read property 'foo' of undefined or null`,
		`throw new TypeError("of undefined")`: `of undefined`,
	} {
		out := runWith(t, call(compiled(t, tool(body)), `{}`), &fakeHost{})
		if out.Failure == nil || want != "" && out.Failure.Message != want {
			t.Errorf("%s: got %+v", body, out.Failure)
		}
	}
}
