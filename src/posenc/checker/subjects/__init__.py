"""What is handed over: code by name, files of arrays, dumps, tensors in files, models; loaded without trusting it."""
