"""What copies wrote: watching their files grow, and reading them back as lines in the order of writing.

A copy writes its streams into files itself. Here they are only read, and removed when somebody says so; all
that is added is a file of times beside each. Knows nothing of jobs, stores and networks: a stream is
described by a plain value.
"""
