"""`jobman top`: the queue and the nodes, live in a terminal.

Looks are read by threads and become rows of plain cells; only `screen`, `panes` and `dialogs` know the
library that draws them. Nothing here speaks to a service but through the client.
"""
