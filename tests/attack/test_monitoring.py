#!/usr/bin/env python3
"""Who reaches monitoring and means it no good: paths that are none, requests that are none, thousands of silent connections, clients that send or read
slowly; and sources that are torn while they are read. All along a good client is answered with whole reports, by the same process."""
import functools
import http.client
import json
import os
import random
import resource
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
import beside  # noqa: E402  pylint: disable=wrong-import-position
import e2e  # noqa: E402  pylint: disable=wrong-import-position
from e2e import title, wait_until  # noqa: E402  pylint: disable=wrong-import-position

GOOD = '127.77.0.1'
CROWD, ADDRESSES = 2000, 40  # each may keep 64, all of them 1,024: who waits gives way
PATHS = ('/..', '/../etc/fettle/node.json', '/1/../../proc/self/environ', '/1/report/../report/all', '/%2e%2e/%2e%2e', '/1/report/%2e%2e/all', '/%00',
         '/1/report/storage/%s%n%x', '/1/report/' + 'a/' * 500, '/' + 'x' * 8000, '/1/report/storage/lv%0a', '/%ff%fe', '/1/report/all?x=' + 'y' * 4000,
         '/metrics/', '//metrics', '/1/list/collectors/../../', '*', 'http://elsewhere/1/report/all', '/1\x7f', '/1/report/default/\u202e')
lab = None


def daemon():
    node = next(one for one in lab.status()['nodes'] if one['name'] == 'node1')
    return next(one for one in node['daemons'] if one['name'] == 'mond')


def connect(port, source, timeout=60):
    line = socket.create_connection(('127.0.0.1', port), timeout, (source, 0))
    return line


def get(port, path, source=GOOD):
    line = http.client.HTTPConnection('127.0.0.1', port, timeout=60, source_address=(source, 0))
    try:
        line.request('GET', path)
        answer = line.getresponse()
        return answer.status, answer.read()
    finally:
        line.close()


@functools.cache
def port_of():
    return daemon()['port']


def ask():
    status, body = get(port_of(), '/1/report/all')
    assert status == 200 and len(json.loads(body)) >= 11, (status, body[:200])


def attacked():
    return beside.Attacked(daemon, ask)


def say(port, text, source='127.66.0.1'):
    """What comes back until the other side hangs up, or says nothing more."""
    with connect(port, source) as line:
        line.settimeout(60)
        got = b''
        try:
            line.sendall(text)
            line.shutdown(socket.SHUT_WR)
            while chunk := line.recv(1 << 16):
                got += chunk
        except (TimeoutError, ConnectionError):
            pass
        return got


@title('/attack/monitoring/bad-paths')
def test_paths():
    with attacked() as attack:
        port = attack.before['port']
        for path in PATHS:
            got = say(port, b'GET ' + path.encode() + b' HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
            status = int(got.split()[1]) if got.startswith(b'HTTP/1.') else 0
            assert status in (0, 200, 400, 404), (path, got[:200])
            assert b'root:' not in got and b'FETTLE_ROOT' not in got and b'node_uuid' not in got, (path, got[:200])
        for method in ('POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH', 'X'):
            got = say(port, f'{method} /1/report/all HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}'.encode())
            assert b' 405 ' in got.split(b'\r\n')[0] and b'Allow: GET, HEAD' in got, (method, got[:300])
        assert say(port, b'HEAD /1/report/all HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n').endswith(b'\r\n\r\n')


@title('/attack/monitoring/no-requests')
def test_nonsense():
    luck = random.Random(4)
    with attacked() as attack:
        for number in range(200):
            text = luck.randbytes(luck.randrange(1, 400))
            say(attack.before['port'], text if number % 2 else b'GET /' + text + b' HTTP/1.1\r\n\r\n', f'127.66.1.{number % 50 + 1}')
        say(attack.before['port'], b'GET / HTTP/1.1\r\n' + b'X: ' + b'y' * (1 << 17) + b'\r\n\r\n')
        say(attack.before['port'], b'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n' + b'z' * (1 << 18))


@title('/attack/monitoring/silent-connections')
def test_silent():
    lines = []
    with attacked() as attack:
        try:
            for number in range(CROWD):
                lines.append(connect(attack.before['port'], f'127.66.2.{number % ADDRESSES + 1}'))
                try:
                    if number % 2:  # half of them begin a request that never ends
                        lines[-1].sendall(b'GET /1/report/all HTTP/1.1\r\nHost: ')
                except ConnectionError:
                    pass  # it was one too many
                if number % 500 == 499:
                    attack.is_answered()
        finally:
            for line in lines:
                line.close()


@title('/attack/monitoring/who-never-reads')
def test_unread():
    lines = []
    with attacked() as attack:
        try:
            for number in range(40):
                line = connect(attack.before['port'], f'127.66.3.{number + 1}')
                line.setblocking(False)
                lines.append(line)
                try:
                    line.send(b'GET /1/report/all HTTP/1.1\r\nHost: x\r\n\r\n' * 400)
                except BlockingIOError:
                    pass
            attack.is_answered()
        finally:
            for line in lines:
                line.close()


@title('/attack/monitoring/torn-sources')
def test_sources():
    """Whatever stands in run/stats, or what kind of thing lies there."""
    luck = random.Random(5)
    folder = os.path.join(lab.root('node1'), 'run/stats')
    with open(os.path.join(folder, 'node.stats'), 'rb') as file:
        good = file.read()
    lab.lab('pause', 'noded@node1')
    try:
        with attacked() as attack:
            for number in range(60):
                path = os.path.join(folder, luck.choice(('node.stats', 'volumed.stats', f'0000000{number % 10}-0000-4000-8000-000000000001.stats')))
                if os.path.lexists(path):
                    os.unlink(path)
                kind = luck.randrange(5)
                if kind == 0:
                    os.symlink('/proc/self/environ', path)
                elif kind == 1:
                    os.mkfifo(path)
                elif kind == 2:
                    with open(path, 'wb') as file:
                        file.truncate(1 << 40)
                else:
                    with open(path, 'wb') as file:
                        file.write(luck.randbytes(luck.randrange(2000)) if kind == 3 else good[:luck.randrange(len(good))])
                status, body = get(attack.before['port'], '/1/report/all', '127.66.4.1')
                assert status == 200 and b'FETTLE_ROOT' not in body, (kind, body[:300])
                time.sleep(0.05)
            attack.is_answered()
    finally:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        lab.lab('resume', 'noded@node1')
    wait_until('all is told again', lambda: b'"noded"' in get(port_of(), '/1/report/daemon/services')[1], 60)


@title('/attack/monitoring/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, max(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    with e2e.new_lab(nodes=1) as lab:
        wait_until('monitoring is there', lambda: daemon()['ready'], 60)
        e2e.run(test_paths, test_nonsense, test_silent, test_unread, test_sources, test_logs)
