tool "broken" {
  description = "Has no body."
}
