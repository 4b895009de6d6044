"""Driving: a graph of tasks on a cluster without a service, led by whoever runs `jobman run`.

The conductor decides, as it does in a service; here is what keeps its knowledge in the cluster, sees what
happens there, and does what was decided. Nothing is kept on this machine, and nothing is printed here.
"""
