"""A scheduling policy learned by reinforcement, after MLFS (Wang, Liu and Shen, CoNEXT 2020)."""
