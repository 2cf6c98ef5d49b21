"""What follows from a position encoding: inspection, comparison, citation. Records come out; no torch."""
