"""The first page: what goes on, what waits for whoever looks, and where everything is."""
