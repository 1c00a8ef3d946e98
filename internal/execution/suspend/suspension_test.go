package suspend

import (
	"encoding/hex"
	"encoding/json"
	"testing"
)

// Digests are stored, and compared by later versions.
func TestDigest_staysTheSame(t *testing.T) {
	var args map[string]any
	if err := json.Unmarshal([]byte(`{"b": "<\u00e9>", "a": 1.50, "c": [true, null, {"d": 1e21}]}`), &args); err != nil {
		t.Fatal(err)
	}
	const want = "6b66e5f990fb9bf2e9095269f929d5f9b04bba3dd4c4f142329315e243a78f37"
	sum := ArgumentsDigest(args)
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
