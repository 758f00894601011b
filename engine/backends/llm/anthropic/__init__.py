"""Claude, through the official client, which is only imported where a run really asks it."""

from engine.backends.llm.anthropic.backend import Access, AnthropicLlm

__all__ = ["Access", "AnthropicLlm"]
