"""A luxid in front of a lab's own that answers what that one answers, but with what a terminal would obey in every text of others."""
import json
import os
import re
import socket
import tempfile
import threading

import e2e

EVIL = '\x1b[2J\n\x7f\x9b31m\u202eevil'
SHOWN = r'\x1b[2J\n\x7f\x9b31m\u202eevil'
# What a program has written: names, states, times, UUIDs.
WORD = re.compile(r'[A-Za-z0-9_.:@/+=,-]*')


def spoil(value, all_texts=False):
    if isinstance(value, str):
        return value if WORD.fullmatch(value) and not all_texts else value + EVIL
    if isinstance(value, list):
        return [spoil(item, all_texts) for item in value]
    return {key: spoil(item, all_texts) for key, item in value.items()} if isinstance(value, dict) else value


def spoil_answer(call, answer):
    """Tags are words, but of people."""
    if call['method'] in ('QueryTags',):
        return spoil(answer, all_texts=True)
    if call['method'] != 'Query' or not answer['success']:
        return spoil(answer)
    result = answer['result']
    return {**answer, 'result': {**result, 'data': [[spoil(cell, call['args'][1][at] == 'tags') for at, cell in enumerate(row)]
                                                    for row in result['data']]}}


def frames(connection):
    data = b''
    while part := connection.recv(65536):
        data += part
        while b'\x03' in data:
            frame, data = data.split(b'\x03', 1)
            yield json.loads(frame)


class Spoiler:
    """`root` is the folder of a node whose luxid answers."""

    def __init__(self, root):
        self.folder = tempfile.TemporaryDirectory(prefix='fettle-')
        os.makedirs(os.path.join(self.folder.name, 'run'))
        for name in ('etc', 'var'):
            os.symlink(os.path.join(root, name), os.path.join(self.folder.name, name))
        self.luxid = os.path.join(root, 'run/luxid.sock')
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(os.path.join(self.folder.name, 'run/luxid.sock'))
        self.server.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            threading.Thread(target=self.serve, args=(self.server.accept()[0],), daemon=True).start()

    def serve(self, client):
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self.luxid)
            answers = frames(server)
            for call in frames(client):
                server.sendall(json.dumps(call).encode() + b'\x03')
                client.sendall(json.dumps(spoil_answer(call, next(answers))).encode() + b'\x03')

    def run(self, *args):
        """Exit code, output and errors of a command."""
        program = os.path.join(e2e.build(), 'src/cli/fettle')
        done = e2e.fettlelib.run_command([program, *args], 60, env={**os.environ, 'FETTLE_ROOT': self.folder.name})
        return done.returncode, done.stdout, done.stderr
