"""The command line: parsing and printing only, one file per family of commands.

Modules here import what a command needs when the command runs, so that `jobman --version` stays quick.
"""
