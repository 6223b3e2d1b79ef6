"""Small rules in place of a model: deterministic, in the language of the text."""
