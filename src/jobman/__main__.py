"""`python -m jobman`: the command line."""

from jobman.cli.main import main

main()
