"""The commit door: how each effect is checked against the ledger and entered into a draft."""
