"""Archives: all files of a task in one."""
