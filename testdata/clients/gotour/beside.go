package main

import (
	"os"
	"slices"
	"strings"
)

// beside returns the prefixes of the names and URIs that the server offers in
// addition to the names of the tour.
func beside() []string { return strings.Fields(os.Getenv("TOUR_BESIDE")) }

// ours returns the offered names without those.
func ours(offered []string) []string {
	return slices.DeleteFunc(slices.Clone(offered), func(name string) bool {
		return slices.ContainsFunc(beside(), func(word string) bool { return strings.HasPrefix(name, word) })
	})
}

// missing returns the prefixes that no offered name has.
func missing(offered []string) (words []string) {
	for _, word := range beside() {
		if !slices.ContainsFunc(offered, func(name string) bool { return strings.HasPrefix(name, word) }) {
			words = append(words, word)
		}
	}
	return words
}
