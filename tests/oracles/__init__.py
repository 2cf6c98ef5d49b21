"""Slow truths: loops written from the papers, in mpmath where digits matter. They share no line with the package."""
