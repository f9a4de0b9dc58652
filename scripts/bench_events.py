"""What following events by REST costs: from a job's end to its line at a reader, with one and with a thousand of them, beside LUXI's
WatchChanges; and the memory of fettle-rapid."""
import os
import resource
import selectors
import socket
import ssl
import sys
import threading
import time

import bench_queue
import fettlelib
from bench_queue import ms, resident_mb

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'e2e'))
import rest  # noqa: E402

READERS, ADDRESSES = 1000, 20
JOBS = 15
AUTHORIZATION = 'Basic YmVuY2g6aG9yc2U='  # bench:horse
REQUEST = f'GET /fettle/v1/events?kinds=job HTTP/1.1\r\nHost: x\r\nAuthorization: {AUTHORIZATION}\r\n\r\n'.encode()
PATIENCE_S = 120
KINDS = {'job': ['status']}


class Readers:
    """Of whom each has been told of so many ended jobs."""

    def __init__(self, lab, count):
        self.selector, self.lines, self.ended = selectors.DefaultSelector(), [], {}
        context, port = rest.Rest(lab).context(), rest.Rest(lab).daemon()['port']
        for number in range(count):
            plain = socket.create_connection(('127.0.0.1', port), PATIENCE_S, (f'127.3.0.{number % ADDRESSES + 1}', 0))
            line = context.wrap_socket(plain, server_hostname='127.0.0.1')
            line.sendall(REQUEST)
            while b'\nid: ' not in line.recv(4096):
                pass
            line.setblocking(False)
            self.lines.append(line)
            self.selector.register(line, selectors.EVENT_READ)
            self.ended[line] = 0

    def wait_for(self, jobs):
        """Until each has been told of that many; when the last was."""
        missing = sum(1 for told in self.ended.values() if told < jobs)
        until = time.monotonic() + PATIENCE_S
        while missing:
            assert time.monotonic() < until, f'{missing} readers were not told'
            for key, _ in self.selector.select(1):
                missing -= self.take(key.fileobj, jobs)
        return time.monotonic()

    def take(self, line, jobs):
        before = self.ended[line]
        try:
            while True:
                self.ended[line] += line.recv(65536).count(b'event: job.success\n')
        except ssl.SSLWantReadError:
            return int(before < jobs <= self.ended[line])

    def close(self):
        self.selector.close()
        for line in self.lines:
            line.close()


class Watcher(threading.Thread):
    """The floor: LuxiD's own word of it, on its socket; when each job's end was told."""

    def __init__(self, lab):
        super().__init__(daemon=True)
        self.luxi, self.told = lab.luxi_new(), {}
        begun = self.luxi.call('WatchChanges', KINDS)
        self.place = [begun['stream'], begun['serial']]

    def run(self):
        while True:
            try:
                answer = self.luxi.call('WatchChanges', KINDS, *self.place, 60)
            except (ConnectionError, OSError):  # the lab has gone
                return
            self.place = [answer['stream'], answer['serial']]
            for _, key, row, *_ in answer['changes']:
                if row and row[0][1] == 'success':
                    self.told[int(key)] = time.monotonic()


def follow(lab, count):
    """(from a job's end to the last reader's line, the same to WatchChanges' answer, memory of the daemon)"""
    luxi, watcher, readers, took, floors = lab.luxi_new(), Watcher(lab), Readers(lab, count), [], []
    watcher.start()
    for number in range(1, JOBS + 1):
        job = luxi.call('SubmitJob', [bench_queue.DELAY])
        assert bench_queue.wait_final(luxi, job) == 'success'
        ended = time.monotonic()
        took.append(ms(max(0, readers.wait_for(number) - ended)))
        fettlelib.wait_until('the change is told', lambda job=job: job in watcher.told)
        floors.append(ms(max(0, watcher.told[job] - ended)))
    rss = resident_mb(rest.Rest(lab).daemon()['pid'])
    readers.close()
    luxi.close()
    return took, floors, rss


def in_a_lab(build, figures):
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with fettlelib.Lab(build, nodes=1) as lab:
        lab.cli('rapi', 'user', 'add', 'bench', typed='horse\n')
        fettlelib.wait_until('REST is there', lambda: rest.Rest(lab).daemon()['ready'], 60)
        rest.Rest(lab).get('/version', 'bench:horse')
        for count, name, goal in ((1, 'event_ms', '<= 20'), (READERS, f'event_{READERS}_ms', '<= 200')):
            took, floors, rss = follow(lab, count)
            figures.add(f'floor_{name}', floors, 'ms')
            figures.add(name, took, 'ms', goal)
        figures.add(f'rapid_rss_mb_{READERS}_readers', rss, 'MB', '<= 60', 1)


def measure(build, figures):
    figures.part('events', 120, in_a_lab, build, figures)
