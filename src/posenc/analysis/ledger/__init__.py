"""The claims ledger: what is said about position encodings, with a verdict that the program computes.

Texts are data (``claims.toml``); each claim is a small function of a :class:`Ground`, so a broken formula handed in as the
ground flips exactly the claims that rest on it.
"""

from posenc.analysis.ledger.ground import Ground
from posenc.analysis.ledger.register import ledger

__all__ = ["Ground", "ledger"]
