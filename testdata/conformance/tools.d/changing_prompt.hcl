# The prompt that test_trigger_prompt_change has edited.

prompt "changing_prompt" {
  description = "Has not been edited yet."
  message "user" { text = "This prompt has not been edited yet." }
}
