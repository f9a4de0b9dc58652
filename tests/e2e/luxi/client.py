"""A LUXI client of its own, written from the description of the protocol alone: it shares no code with the others here.

A Unix stream socket; a message is one JSON document and a byte 3. A request is {"method", "args", "version"}; its reply is
{"success", "result"}. A result that failed is a text, if the request could not be parsed, and the connection then ends; or
[class, [arguments]], and the connection goes on.
"""
import json
import socket

END = b'\x03'
VERSION = 3000000


class NotParsed(Exception):
    """The server could not parse the request, and has closed the connection."""


class Failed(Exception):
    """A call that was understood and failed."""

    def __init__(self, kind, arguments):
        super().__init__(kind, arguments)
        self.kind, self.arguments = kind, arguments


class Client:
    def __init__(self, path):
        self.path, self.buffer = path, b''
        self.stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.stream.settimeout(180)
        self.stream.connect(path)

    def close(self):
        self.stream.close()

    def closed_by_server(self):
        return self.stream.recv(1) == b''

    def exchange(self, request):
        """Bytes without their end, there and back."""
        self.stream.sendall(request + END)
        while END not in self.buffer:
            data = self.stream.recv(65536)
            if not data:
                raise ConnectionError('closed without a reply')
            self.buffer += data
        reply, self.buffer = self.buffer.split(END, 1)
        assert not self.buffer, 'more than one reply'
        return reply

    def call(self, method, *args):
        reply = json.loads(self.exchange(json.dumps({'method': method, 'args': list(args), 'version': VERSION}).encode()))
        assert set(reply) <= {'success', 'result', 'version'} and isinstance(reply['success'], bool), reply
        if reply['success']:
            return reply['result']
        if isinstance(reply['result'], str):
            assert self.closed_by_server(), 'the connection goes on after a request that was not parsed'
            raise NotParsed(reply['result'])
        kind, arguments = reply['result']
        raise Failed(kind, arguments)
