package policylang

// CopyArgs returns a copy of decoded arguments that shares no map and no list
// with them, for those who may change what they are given.
func CopyArgs(args map[string]any) map[string]any { return copyOf(args).(map[string]any) }

func copyOf(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, member := range value {
			copied[key] = copyOf(member)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, item := range value {
			copied[i] = copyOf(item)
		}
		return copied
	default:
		return value
	}
}
