prompt "plan" {
  description = "Plans the deliveries of a day."
  argument "day" { required = true }
  argument "depth" { values = ["short", "thorough"] }
  message "user" { text = "Plan the deliveries of {{day}}, {{depth}}." }
}
