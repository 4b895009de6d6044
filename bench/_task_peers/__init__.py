"""Other systems for short tasks, each measured by a program of its own in an environment of its own.

The programs import nothing of jobman, which those environments do not have.
"""
