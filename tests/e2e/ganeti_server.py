#!/usr/bin/env python3
"""Runs Ganeti's clients, as they are, each in a process that is forked from this one, which has their modules already: else reading those
would be most of what a test does. One Unix socket, a request a connection: {"words", "input", "seconds"} → {"code", "output"}, standard
output and errors together as they came; a client that is not at its end by then is killed: code null.

    ganeti_server.py SOCKET"""
import importlib
import json
import os
import signal
import socket
import sys
import tempfile

NAMES = ('backup', 'cluster', 'debug', 'filter', 'group', 'instance', 'job', 'network', 'node', 'os', 'storage')


def run_client(modules, words, source, sink):
    """Does not return."""
    os.setsid()  # no terminal to ask at
    os.dup2(source.fileno(), 0)
    os.dup2(sink.fileno(), 1)
    os.dup2(sink.fileno(), 2)
    sys.argv = words
    code = 255
    try:
        code = modules[words[0]].Main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # pylint: disable=broad-except
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)  # pylint: disable=protected-access


def wait_for(pid, seconds):
    """Its exit code, None if it had to be killed."""
    def kill(*_):
        os.killpg(pid, signal.SIGKILL)
    signal.signal(signal.SIGALRM, kill)
    signal.alarm(seconds)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None if code == -signal.SIGKILL else code


def serve(modules, stream):
    request = json.loads(stream.makefile().readline())
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as sink:
        source.write(request['input'].encode())
        source.seek(0)
        pid = os.fork()
        if pid == 0:
            run_client(modules, request['words'], source, sink)
        code = wait_for(pid, request['seconds'])
        sink.seek(0)
        output = sink.read().decode(errors='replace')
    stream.sendall(json.dumps({'code': code, 'output': output}).encode() + b'\n')


def main():
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    modules = {'gnt-' + name: importlib.import_module('ganeti.client.gnt_' + name) for name in NAMES}
    server.bind(sys.argv[1])
    server.listen(64)
    print('ready', flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        stream, _ = server.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serve(modules, stream)
            os._exit(0)  # pylint: disable=protected-access
        stream.close()


if __name__ == '__main__':
    main()
