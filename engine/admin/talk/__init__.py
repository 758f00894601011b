"""Conversations: channels and threads, read and written into."""
