"""Documents: their text, and pictures of their pages."""
