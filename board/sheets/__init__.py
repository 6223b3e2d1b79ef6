"""Tables as people send and fetch them (CSV, XLSX), read and written so that no value changes on the way.

The room knows nothing of the rest of the board: a path or text in, rows of text out. What may be hostile is read by
callers in a child process.
"""
