"""Claude, through the official client, which is only imported where a run really asks it."""

from engine.backends.llm.anthropic.backend import Access, AnthropicLlm, Prices

__all__ = ["Access", "AnthropicLlm", "Prices"]
