"""Files: what was uploaded, and what work has made of it. A storage has the bytes, the database says what they are."""
