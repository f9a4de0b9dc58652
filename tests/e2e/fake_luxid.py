"""A luxid of a few lines for tests of the command line: it answers as it is told, and keeps what it was asked."""
import contextlib
import json
import os
import socket
import subprocess
import tempfile
import threading

import e2e


SILENT = object()  # a field that only the node itself could tell, and it does not


def cell(value):
    return [3, None] if value is SILENT else [2, None] if value is None else [0, value]


class Refused:
    """An answer that is an error."""
    def __init__(self, code, message):
        self.answer = ['OpPrereqError', [message, code]]


class Luxid:
    """Answers Query with the rows that it was given, {resource: [{field: value}]}, unfiltered but for ids; a field that is None has no
    data. Other methods: {method: function}."""

    def __init__(self, rows, answers=None):
        self.answers = answers or {}
        self.rows, self.folder, self.calls = rows, tempfile.TemporaryDirectory(prefix='fettle-'), []
        os.makedirs(os.path.join(self.folder.name, 'run'))
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(os.path.join(self.folder.name, 'run/luxid.sock'))
        self.server.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def answer(self, method, args):
        if method == 'QueryFields':
            return {'fields': [{'name': name, 'title': name, 'kind': 'other', 'doc': ''} for name in
                               (self.rows[args[0]] or [{}])[0]]}
        if method == 'WhatNext' and method not in self.answers:
            return []
        if method != 'Query':
            return self.answers[method](*args)
        what, fields, asked = args
        rows = [row for row in self.rows[what] if not asked or asked[:2] != ['=', 'id'] or row['id'] == asked[2]]
        return {'fields': [{'name': name, 'title': name, 'kind': 'other', 'doc': ''} for name in fields],
                'data': [[cell(row.get(name)) for name in fields] for row in rows]}

    def serve(self):
        while True:
            connection, _ = self.server.accept()
            data = b''
            with connection, contextlib.suppress(ConnectionError):  # a command need not wait for its answer
                while part := connection.recv(65536):
                    data += part
                    while b'\x03' in data:
                        frame, data = data.split(b'\x03', 1)
                        call = json.loads(frame)
                        self.calls.append(call)
                        result = self.answer(call['method'], call['args'])
                        refused = isinstance(result, Refused)
                        answer = {'success': not refused, 'result': result.answer if refused else result}
                        connection.sendall(json.dumps(answer).encode() + b'\x03')

    def run(self, *args):
        """Exit code, output and errors of a command."""
        program = os.path.join(e2e.build(), 'src/cli/fettle')
        done = e2e.fettlelib.run_command([program, *args], 60, env={**os.environ, 'FETTLE_ROOT': self.folder.name})
        return done.returncode, done.stdout, done.stderr

    def start(self, *args):
        """The same as a process that runs."""
        program = os.path.join(e2e.build(), 'src/cli/fettle')
        return subprocess.Popen([program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, 'FETTLE_ROOT': self.folder.name})

    def filters(self):
        """Of every Query so far."""
        return [call['args'][2] for call in self.calls if call['method'] == 'Query']
