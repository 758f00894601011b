"""English as the site writes it."""
