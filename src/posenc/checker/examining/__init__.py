"""One examination for each kind of box: recover, compare with the value, explain, go on."""
