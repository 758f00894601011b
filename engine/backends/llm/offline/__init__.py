"""The LLM that is always there: simulated, without a network, repeatable by its seed."""

from engine.backends.llm.offline.backend import OfflineLlm

__all__ = ["OfflineLlm"]
