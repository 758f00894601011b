"""Simulations: settings, house rules, channels, rosters."""
