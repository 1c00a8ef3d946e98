# The plainest result: a string is one text block.

tool "test_simple_text" {
  description = "Returns a line of text."
  read_only   = true
  run         = "return 'This is a simple text response for testing.';"
}

test "a line of text" {
  tool = "test_simple_text"
  expect { text = "This is a simple text response for testing." }
}
