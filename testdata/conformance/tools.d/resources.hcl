# The resources that the conformance suite reads.

resource "static_text" {
  uri         = "test://static-text"
  description = "A static text resource"
  mime_type   = "text/plain"
  text        = "This is the content of the static text resource."
}

resource "static_binary" {
  uri         = "test://static-binary"
  description = "A static binary resource"
  mime_type   = "image/png"
  base64      = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
}

resource "watched_resource" {
  uri         = "test://watched-resource"
  description = "A resource to subscribe to"
  mime_type   = "text/plain"
  text        = "Watch this."
}

resource_template "template" {
  uri_template = "test://template/{id}/data"
  description  = "A resource for each id"
  mime_type    = "application/json"
  complete "id" { values = ["123", "456"] }
  run = <<JS
    return { id: params.id, templateTest: true, data: `Data for ID: ${params.id}` };
  JS
}
