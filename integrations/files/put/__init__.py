"""The action `file.put`: files of a task handed to a server that keeps files, by HTTP or as S3 has it."""
