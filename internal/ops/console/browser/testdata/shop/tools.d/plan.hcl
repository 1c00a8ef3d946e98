resource_template "stock" {
  uri_template = "shop://stock/{warehouse}{?article}"
  param "warehouse" { description = "The warehouse that has the articles." }
  complete "warehouse" { values = ["Berlin", "Bern", "Rome"] }
  text = "In {{warehouse}}: {{article}}"
}

prompt "plan" {
  description = "Plans the deliveries of a day."
  argument "day" { required = true }
  argument "depth" { values = ["short", "thorough"] }
  message "user" { text = "Plan the deliveries of {{day}}, {{depth}}." }
}
