"""Probes: small functions, one for each way to go wrong that a single examination does not see."""
