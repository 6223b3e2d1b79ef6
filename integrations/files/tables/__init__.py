"""Tables: looked through, and brought from CSV to XLSX and back."""
