"""Pictures: opened with care, brought into a plain form, made into something else, saved without what is private."""
