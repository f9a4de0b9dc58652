#!/usr/bin/env python3
"""Who reaches REST and means it no good: silent connections, halves of handshakes and of requests, guessed passwords from many addresses. All along a
good client is answered, by the same process."""
import os
import resource
import socket
import ssl
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
import beside  # noqa: E402  pylint: disable=wrong-import-position
import e2e  # noqa: E402  pylint: disable=wrong-import-position
import rest  # noqa: E402  pylint: disable=wrong-import-position
from e2e import title, wait_until  # noqa: E402  pylint: disable=wrong-import-position

MINUTE_S = 60
CROWD, ADDRESSES = (2000, 40) if e2e.LONG else (300, 10)
HALVES = (b'', b'\x16', b'\x16\x03\x01\x02\x00\x01', b'GET / HTTP/1.1\r\n', b'\x80' * 100)
lab = good = None


def ask():
    assert good.get('/2/info')['name']


def attacked():
    return beside.Attacked(good.daemon, ask)


def connect(number):
    return socket.create_connection(('127.0.0.1', good.port), 60, (f'127.66.0.{number % ADDRESSES + 1}', 0))


def close(lines):
    for line in lines:
        line.close()


@title('/attack/rapid/silent-and-half-handshakes')
def test_handshakes():
    with attacked() as attack:
        lines = []
        for number in range(CROWD):
            try:
                line = connect(number)
                line.sendall(HALVES[number % len(HALVES)])
                lines.append(line)
            except OSError:
                pass  # it had enough of that address
        assert len(lines) >= CROWD // 2, len(lines)
        attack.is_answered()
        close(lines)


@title('/attack/rapid/half-requests')
def test_requests():
    context = good.context()
    with attacked() as attack:
        lines = []
        for number in range(CROWD // 5):
            try:
                line = context.wrap_socket(connect(number), server_hostname='127.0.0.1')
                line.sendall(b'PUT /2/tags?tag=x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n' + (b'\r\n{' if number % 2 else b'X: '))
                lines.append(line)
            except (OSError, ssl.SSLError):
                pass
        attack.is_answered()
        close(lines)


@title('/attack/rapid/guessed-passwords')
def test_guesses():
    """An address has ten tries a minute; so many cost little, and who knows his own is not kept waiting by them."""
    guesser, codes = rest.Rest(lab), []
    with attacked() as attack:
        for number in range(ADDRESSES):
            guesser.source, began = f'127.67.0.{number + 1}', time.monotonic()
            of_address = [guesser.ask('GET', '/2/info', user=f'alice:guess{index}')[0] for index in range(12)]
            if time.monotonic() - began < MINUTE_S:  # else it has begun anew
                codes.append(of_address)
        attack.is_answered()
    assert all(of_address == [401] * 10 + [429] * 2 for of_address in codes), codes


READERS = 900 if e2e.LONG else 150
EVENTS = '/fettle/v1/events?kinds=job'


def follow(number, context, header=''):
    """A connection that follows events, and whose answer has begun."""
    line = context.wrap_socket(connect(number), server_hostname='127.0.0.1')
    line.sendall(f'GET {EVENTS} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWxpY2U6b25l\r\n{header}\r\n'.encode())
    assert line.recv(4096).startswith(b'HTTP/1.1 200 '), number
    return line


def job():
    """One that ends; whoever follows is told."""
    lab.wait_job(lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0.1}))


@title('/attack/rapid/readers-of-events-that-do-not-read')
def test_unread():
    """They cost others nothing; whoever reads beside them is told."""
    with attacked() as attack:
        context = good.context()
        lines = [follow(number, context) for number in range(READERS)]
        reader = follow(READERS, context)
        reader.settimeout(60)
        for _ in range(5):
            job()
        told = b''
        while told.count(b'event: job.success') < 5:
            told += reader.recv(65536)
        attack.is_answered()
        close([*lines, reader])


@title('/attack/rapid/hostile-places-and-filters')
def test_places():
    context = good.context()
    places = ('x' * 60000, '::::', '-1:-1:-1', '0' * 36 + ':1:1', '12345678-0000-4000-8000-000000000001:99999999999999999999:0', '%00', '"', '{}')
    deep = '%5B%22!%22,' * 3000 + '%5B%5D' + '%5D' * 3000
    with attacked() as attack:
        for number, place in enumerate(places):
            line = follow(number, context, f'Last-Event-ID: {place}\r\n')
            line.settimeout(60)
            told = b''
            while b'event: reset' not in told:
                told += line.recv(65536)
            line.close()
        for bad in ('[', '%5B%5D', deep, '%5B%22=~%22,%22status%22,%22(((%22%5D', '%5B%22=%22,%22' + 'x' * 20000 + '%22,1%5D'):
            assert good.ask('GET', f'{EVENTS}&filter={bad}')[0] == 400, bad[:100]
        attack.is_answered()


@title('/attack/rapid/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


def main():
    global lab, good
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with e2e.new_lab(nodes=1) as lab:
        good = rest.Rest(lab)
        good.source, good.user = '127.77.0.1', 'alice:one'
        lab.run('rapi', 'user', 'add', 'alice', typed='one\n')
        wait_until('REST answers', listens, 60)
        e2e.run(test_handshakes, test_requests, test_guesses, test_unread, test_places, test_logs)


def listens():
    try:
        return good.ask('GET', '/2/info')[0] == 200
    except OSError:
        return False


main()
