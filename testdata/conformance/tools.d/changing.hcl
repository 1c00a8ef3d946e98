# The helper writes a new number into this file each time it is asked to.

tool "changing" {
  description = "Has been edited 0 times."
  read_only   = true
  run         = "return 'edited 0 times';"
}
