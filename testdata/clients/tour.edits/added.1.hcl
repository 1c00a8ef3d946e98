tool "added" {
  description = "Stands in version 1 of this file."
  read_only   = true
  run         = "return 'version 1';"
}

test "the version of the file" {
  tool = "added"
  expect { text = "version 1" }
}
