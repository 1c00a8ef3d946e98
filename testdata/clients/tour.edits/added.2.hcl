tool "added" {
  description = "Stands in version 2 of this file."
  read_only   = true
  run         = "return 'version 2';"
}

test "the version of the file" {
  tool = "added"
  expect { text = "version 2" }
}
