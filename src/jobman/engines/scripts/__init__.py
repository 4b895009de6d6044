"""Jobs as shell scripts: what the managers of batch jobs have in common.

A plan becomes scripts that need no jobman where they run, and leave word of all they do in a folder.
Nothing here knows a manager's commands.
"""
