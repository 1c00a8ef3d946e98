tool "find" {
  description = "Finds a customer."
  read_only   = true

  input "text" { type = string }

  run = "return 'Ada';"
}
