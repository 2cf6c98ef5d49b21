"""Many subjects in one run: which they are, worker processes, what a former run has done, outcomes."""
