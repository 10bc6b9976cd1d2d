"""Several processes as one run: who they are, what they tell each other, and how they fail together."""
