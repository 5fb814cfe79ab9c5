"""What makes the figures of the pages: speed, the default's choices, simulated guarantees, quality of the tests.

``python -m studies --list`` says what there is, what it costs and whether its result is there.
"""
