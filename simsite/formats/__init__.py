"""How the site writes days and times, for each language."""
