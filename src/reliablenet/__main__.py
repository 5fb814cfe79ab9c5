"""`python -m reliablenet` is the command line."""

from reliablenet.cli.app import main

main()
