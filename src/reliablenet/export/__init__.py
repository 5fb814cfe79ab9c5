"""Where else a model runs: forms that other programs read.

Like `modelfile` it knows no method: each tells what it is made of.
"""
