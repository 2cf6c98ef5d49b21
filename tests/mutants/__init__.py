"""Broken encodings, one for each real fault, in our own words; each must be caught with its kind and its parameter."""
