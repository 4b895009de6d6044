"""Replay of workloads: the scheduler driven by a trace, and what came of it in numbers and pictures.

Takes traces and nodes, and returns plain values. What decides is `sched`, the same code that serves a
cluster: no second scheduler may enter here, nothing of the service, and no clock but the trace's.
"""
