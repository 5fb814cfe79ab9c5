"""How fast we are, as ratios of times taken side by side."""
