server { name = "crm" }
