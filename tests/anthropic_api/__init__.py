"""A strict loopback server for the Anthropic Messages API, for tests only.

It is written from the public documentation, not from our client: it refuses what the real one
refuses, bills by a stated count, keeps a prompt cache, and misbehaves on demand. Where the real
one is broader (images, streaming, server tools, turns of the system), this one says that the
request is not rehearsed; where a rule is stricter here than documented, the module says so.

    with AnthropicApi() as api:                     # server.py
        api.script.add(steps.rate_limited("1"))     # steps.py, consumed first
        ...                                         # a client with api.url and KEY
        api.ledger.total_nano_usd()                 # ledger.py

Other processes reach it by its URL, or it runs as its own: `python -m tests.anthropic_api`.
"""
