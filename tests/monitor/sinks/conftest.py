"""A web server on the loopback that keeps what it is told."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest


class Server:
    """Keeps the requests that come; answers with `status`."""

    def __init__(self) -> None:
        self.requests: queue.Queue[tuple[str, str, bytes]] = queue.Queue()
        self.status = 200
        self.location = ""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                server.requests.put((self.command, self.path, body))
                self.send_response(server.status)
                if server.location:
                    self.send_header("Location", server.location)
                self.end_headers()

            do_POST = do_GET  # noqa: N815 - the base class calls it by this name

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()
