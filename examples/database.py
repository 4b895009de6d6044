"""A table of counters: a line with a name is answered with the name's new count."""

import collections
import os
import socketserver

counts = collections.Counter()


class Client(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            counts[line] += 1
            self.wfile.write(f"{counts[line]}\n".encode())


socketserver.ThreadingTCPServer(("", int(os.environ["PORT_COUNTER"])), Client).serve_forever()
