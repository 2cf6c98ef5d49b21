"""Recovered numbers against the values: structured hypotheses, their parameters fitted, the best that fits named."""
