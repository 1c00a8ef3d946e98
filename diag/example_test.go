package diag_test

import (
	"fmt"
	"os"

	"github.com/mcpd/mcpd/diag"
)

// A Printer shows the source line with each diagnostic.
func ExamplePrinter() {
	const source = "tool \"add\" {\n  desciption = \"Adds two numbers.\"\n}\n"
	text := diag.WholeFile("tools.d/add.hcl", source)
	problems := diag.List{{
		Severity: diag.Error,
		Code:     "unknown-argument",
		Summary:  `a tool block has no argument "desciption"`,
		Detail:   diag.DidYouMean("desciption", []string{"description", "title"}),
		Range:    text.Range(15, 25),
	}}
	printer := diag.Printer{Sources: map[string][]byte{"tools.d/add.hcl": []byte(source)}}
	if err := printer.Print(os.Stdout, problems.Sort()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// tools.d/add.hcl:2:3: error: a tool block has no argument "desciption" [unknown-argument]
	//   2 |   desciption = "Adds two numbers."
	//     |   ^^^^^^^^^^
	//     = did you mean "description"?
}

// Suggest finds the candidate that an author probably meant.
func ExampleSuggest() {
	names := []string{"read_only", "timeout", "description"}
	fmt.Printf("%q %q\n", diag.Suggest("timout", names), diag.Suggest("colour", names))
	// Output: "timeout" ""
}
