"""The promises of certificates, tried by simulation; `make guarantees` writes results/guarantees/.

Each module holds one table: `validity` (bound and threshold on known curves), `fits` (all of `fit`),
`voids` (what breaks the promise, and the remedy), `groups` (how to count rows that hang together).
"""
