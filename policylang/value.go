package policylang

// Value is what a condition of a policy said of a call.
type Value uint8

const (
	// NotAsked is the value of a condition that was not evaluated, or not written.
	NotAsked Value = iota
	// False and True are what conditions say.
	False
	True
	// Open means that the value depends on what is not known.
	Open
	// Failed means that the condition could not be evaluated, which denies.
	Failed
)

// String returns the value in lower case.
func (v Value) String() string {
	return [...]string{"not asked", "false", "true", "open", "failed"}[v]
}
