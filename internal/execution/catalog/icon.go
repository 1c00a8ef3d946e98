package catalog

import (
	"slices"

	"github.com/mcpd/mcpd/internal/language/definition"
)

// Icon is an image that clients may show.
type Icon struct {
	// Source is an https or data URI.
	Source string
	// MIMEType, and Theme, which is "light" or "dark", may be empty.
	MIMEType, Theme string
	// Sizes are such as "48x48", or "any".
	Sizes []string
}

// IconsOf returns a copy of the icons of a definition, as others see them.
func IconsOf(icons []definition.Icon) []Icon {
	var list []Icon
	for _, i := range icons {
		list = append(list, Icon{Source: i.Src, MIMEType: i.MIMEType, Theme: i.Theme, Sizes: slices.Clone(i.Sizes)})
	}
	return list
}
