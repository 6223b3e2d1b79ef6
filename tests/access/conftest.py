"""What the tests of access share."""

PASSWORD = "correct horse battery"
