"""A scheduling policy learnt by reinforcement, after MLFS (Wang, Liu and Shen, CoNEXT 2020)."""
