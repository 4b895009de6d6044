"""Small programs that scenarios run: a server that greets, and a client that prints what it is told."""

SERVE = """
import os, socket
door = socket.create_server(("", int(os.environ["PORT_DOOR"])))
open("listening", "w").close()
while True:
    peer, _ = door.accept()
    try:
        peer.sendall(b"hello from " + os.environ["JOBMAN_TASK"].encode())
    except OSError:
        pass
    peer.close()
"""
"""Listens at its port `door`."""

CALL = """
import os, socket, sys
with socket.create_connection((os.environ[sys.argv[1]], int(os.environ[sys.argv[2]]))) as call:
    print(call.makefile().read())
"""
"""Takes the names of the variables that have the host and the port."""
