"""What the papers say, in float64 NumPy: frequencies, tables, rotations, biases, similarities. No torch."""
