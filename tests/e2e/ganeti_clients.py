"""Debian's clients of Ganeti on a lab's master: unmodified, from their packages (scripts/ganeti-clients), in a folder that
`fettle ganeti-root` has laid out."""
import contextlib
import json
import os
import socket
import subprocess
import tempfile

import e2e

FOLDER = os.path.dirname(os.path.abspath(__file__))


def unpacked():
    """The folder of the clients, or why there is none."""
    done = subprocess.run([os.path.join(e2e.ROOT, 'scripts', 'ganeti-clients')], capture_output=True, text=True, check=False)
    return (done.stdout.strip(), None) if done.returncode == 0 else (None, done.stderr.strip())


class Clients:
    """`with Clients(lab) as clients: clients.run('gnt-instance', 'list')` → (exit code, output)."""
    def __init__(self, lab, folder):
        self.lab, self.folder, self.server = lab, folder, None
        self.root = os.path.join(lab.directory, 'ganeti', 'node1')
        self.environment = {**os.environ, 'GANETI_ROOTDIR': self.root, 'GANETI_HOSTNAME': 'node1', 'COLUMNS': '200', 'LC_ALL': 'C.UTF-8',
                            'PYTHONPATH': ':'.join(os.path.join(folder, part) for part in ('usr/share/ganeti/3.0', 'usr/lib/python3/dist-packages'))}

    def __enter__(self):
        self.lab.cli('ganeti-root', self.root)
        self.temporary = tempfile.TemporaryDirectory(prefix='fettle-clients-', dir='/var/tmp')
        self.socket = os.path.join(self.temporary.name, 's')
        self.server = subprocess.Popen(['/usr/bin/python3', os.path.join(FOLDER, 'ganeti_server.py'), self.socket], env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout.readline() == 'ready\n', "Ganeti's clients cannot be run"
        return self

    def __exit__(self, *_):
        self.server.kill()
        self.server.wait()
        self.temporary.cleanup()

    def run(self, *words, source='', seconds=90):
        """One of gnt-*; (None, output so far) if it hangs."""
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as stream:
            stream.connect(self.socket)
            stream.sendall(json.dumps({'words': words, 'input': source, 'seconds': seconds}).encode() + b'\n')
            answer = json.loads(stream.makefile().readline())
        return answer['code'], answer['output']

    def tool(self, name, *words, seconds=120):
        """One of htools: (exit code, output)."""
        path = os.path.join(self.folder, 'usr/lib/ganeti/3.0/usr/bin/htools')
        try:
            done = subprocess.run([path, *words], capture_output=True, text=True, timeout=seconds, check=False,
                                  env={**self.environment, 'HTOOLS': name})
        except subprocess.TimeoutExpired:
            return None, 'hangs'
        return done.returncode, done.stdout + done.stderr

    def htool(self, name, *words, **more):
        """The same, of the lab's cluster."""
        return self.tool(name, f'-L{self.root}/var/run/ganeti/socket/ganeti-query', *words, **more)
