#!/usr/bin/env python3
"""Clients of the API's front end that mean it no good, as many as it takes at once: silent ones, such that send or read slowly or without end,
requests that are none or two. All along a good client is answered, the process stays below 64 MB, and nobody is told anything but what he did wrong.

Both front ends are attacked at once: that of node1 has the sanitizers, that of node2 none, whose memory is what is judged. FETTLE_LONG=1 makes
each crowd as large as a front end takes; the short form has a tenth of it where that many bytes are sent, and neither slow readers, nor images,
nor a thousand logins.
"""
import itertools
import json
import os
import random
import re
import resource
import selectors
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
import api  # noqa: E402  pylint: disable=wrong-import-position
import e2e  # noqa: E402  pylint: disable=wrong-import-position
import test_image_streams as streams  # noqa: E402  pylint: disable=wrong-import-position
import test_volumes as v  # noqa: E402  pylint: disable=wrong-import-position
import units  # noqa: E402  pylint: disable=wrong-import-position
from e2e import fettlelib, title  # noqa: E402  pylint: disable=wrong-import-position

MIB = 1 << 20
GIB = 1 << 30
RESIDENT = 64 * MIB
CROWD = 1000  # of 1,024 that a front end takes
FEW = CROWD if e2e.LONG else CROWD // 10
OF_ADDRESS = 62  # of 64
STREAMS, STREAMS_MOST = 8, 16 * MIB
STILL = 5  # answers to the good client, in which nothing else moves
LOGIN = '/identity/v3/auth/tokens'
ANSWER = re.compile(rb'HTTP/1\.[01] (\d+) ')
SCRIPT = '''#!/bin/sh
[ "$FETTLE_NODE" = node2 ] && exec {plain} "$@"
exec {real} "$@"
'''

lab = None
fronts = []


def pid_of(front):
    node = next(one for one in lab.status()['nodes'] if one['name'] == front.node)
    return next(daemon['pid'] for daemon in node['daemons'] if daemon['name'] == 'apid')


def request(method, path, *headers, body=b''):
    return '\r\n'.join([f'{method} {path} HTTP/1.1', 'Host: x', *headers, '', '']).encode() + body


class Good(e2e.Beside):
    """A client at an address of its own, which asks each front end by turns while others attack, and is answered."""

    def __init__(self):
        super().__init__()
        self.answered, self.error = 0, None

    def run(self):
        for front in itertools.cycle(fronts):
            if self.over or self.error:
                return
            try:
                status = front.ask('GET', f'/volume/v3/{front.project}/volumes', token=front.token)[0]
                assert status == 200, status
                self.answered += 1
            except Exception as error:  # pylint: disable=broad-except
                self.error = error

    def is_answered(self, since):
        if self.error:
            raise AssertionError(f'{fronts[0].base} or {fronts[1].base} does not answer the good client: {self.error}') from self.error
        return self.answered >= since + STILL


class Attack:
    """Around a `with` block: nobody dies, the good client is answered to its very end, and memory was never what it may not be."""

    def __init__(self, what):
        self.what, self.good, self.crowds, self.before, self.open = what, Good(), [], 0, {}
        self.pids = {front.node: pid_of(front) for front in fronts}

    def __enter__(self):
        for pid in self.pids.values():
            with open(f'/proc/{pid}/clear_refs', 'w', encoding='utf-8') as file:
                file.write('5')  # the peak is that of this attack
        self.before = self.peak(self.pids['node2'])
        self.open = {node: self.sockets(pid) + 8 for node, pid in self.pids.items()}  # the good client's
        self.good.__enter__()
        return self

    def __exit__(self, kind, *_):
        try:
            if not kind:
                self.stand()
        finally:
            self.good.__exit__()
            for crowd in self.crowds:
                crowd.end()
        peak = {node: self.peak(pid) for node, pid in self.pids.items()}
        print(f'# {self.what}: resident {peak["node2"] // MIB} MiB; {peak["node1"] // MIB} MiB with the sanitizers; '
              f'the good client was answered {self.good.answered} times', flush=True)
        if not kind:
            fettlelib.wait_until('all are let go of', lambda: all(self.sockets(pid) <= self.open[node] for node, pid in self.pids.items()), 20)
        assert kind or self.pids == {front.node: pid_of(front) for front in fronts}, 'a front end has died'
        assert kind or peak['node2'] <= RESIDENT, f'{self.what}: {peak["node2"]} bytes resident'

    @staticmethod
    def peak(pid):
        with open(f'/proc/{pid}/status', encoding='utf-8') as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith('VmHWM:'))

    @staticmethod
    def sockets(pid):
        return len(os.listdir(f'/proc/{pid}/fd'))

    def stand(self):
        """Until the good client has been answered some more."""
        since = self.good.answered
        fettlelib.wait_until('the good client is answered', lambda: self.good.is_answered(since), api.PATIENCE_S)

    def crowd(self, count, *texts, **more):
        self.crowds.append(Crowd(self.good, count, texts, **more))
        return self.crowds[-1]

    def growth(self):
        """Of the front end of node2 since it began, at its peak."""
        return self.peak(self.pids['node2']) - self.before


class Crowd:
    """So many clients of each front end, from many addresses, who have these texts to say by turns."""

    def __init__(self, good, count, texts, room=None, of=None):
        self.good, self.left, self.said, self.sent = good, {}, {}, {}
        self.selector = selectors.DefaultSelector()
        for front, number in itertools.product(of or fronts, range(count)):
            one = socket.socket()
            if room:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
            one.bind((f'127.0.1.{1 + number // OF_ADDRESS}', 0))
            one.connect(('127.0.0.1', front.port))
            one.setblocking(False)
            self.left[one], self.said[one], self.sent[one] = memoryview(texts[number % len(texts)]), b'', 0
            self.selector.register(one, selectors.EVENT_WRITE | selectors.EVENT_READ)

    def end(self):
        for one in self.said:
            one.close()
        self.selector.close()

    def gone(self, one):
        self.selector.unregister(one)
        self.left[one] = b''

    def add(self, text):
        """To what each of them has to say."""
        for one in self.left:
            self.left[one] = memoryview(text)
            self.selector.modify(one, selectors.EVENT_WRITE | selectors.EVENT_READ)

    def speak(self, one):
        try:
            count = one.send(self.left[one][:65536])
        except BlockingIOError:
            return False
        except OSError:
            self.gone(one)
            return True
        self.left[one] = self.left[one][count:]
        self.sent[one] += count
        if not self.left[one]:
            self.selector.modify(one, selectors.EVENT_READ)
        return True

    def hear(self, one):
        try:
            some = one.recv(65536)
        except BlockingIOError:
            return False
        except OSError:
            some = b''
        self.said[one] += some
        if not some:
            self.gone(one)
        return True

    def go_on(self, read=True):
        """Says all, and hears what there is, until all have been hung up on, or nothing moves any more."""
        since = self.good.answered
        while self.selector.get_map() and (read or any(self.left.values())) and not self.good.is_answered(since):
            for key, events in self.selector.select(0.05):
                one = key.fileobj
                if events & selectors.EVENT_WRITE and self.speak(one):
                    since = self.good.answered
                if read and events & selectors.EVENT_READ and one in self.selector.get_map() and self.hear(one):
                    since = self.good.answered
        return self

    def heard(self):
        return {int(ANSWER.match(said).group(1)) for said in self.said.values() if said}

    def statuses(self, most=1):
        """Of all answers: at most so many for each; nothing but refusals."""
        found = set()
        for said in self.said.values():
            here = [int(status) for status in ANSWER.findall(said)]
            assert len(here) <= most, said[:2000]
            assert not said or here, said[:2000]
            found.update(here)
        assert all(400 <= status < 500 or status in (501, 503, 505) for status in found), found  # codings, and versions of HTTP, that nobody knows
        return found


@title('/hostile-http/silent-and-half-sent#SAF-109')
def test_silent():
    with Attack('silent and half-sent') as attack:
        crowd = attack.crowd(CROWD, b'', b'G', b'GET /volume/v3/ HTTP/1.1\r\nHost: x\r\n',
                             b'POST ' + LOGIN.encode() + b' HTTP/1.1\r\nX-A: ' + 60000 * b'a',
                             request('POST', LOGIN, 'Content-Length: 9', body=b'{'), b'\r\n\r\n',
                             request('PUT', '/image/v2/images/x/file', 'Content-Length: 9'))
        crowd.go_on()
        attack.stand()
        crowd.statuses()


@title('/hostile-http/slow-bodies')
def test_slow_bodies():
    body = b'{"auth": "' + (MIB - 20) * b'a'
    with Attack('bodies of a MiB that do not end') as attack:
        crowd = attack.crowd(FEW, request('POST', LOGIN, f'Content-Length: {MIB}', 'Content-Type: application/json', body=body),
                             request('POST', LOGIN, 'Transfer-Encoding: chunked', 'Content-Type: application/json', body=b'fffff\r\n' + body),
                             request('PUT', '/image/v2/images/x/file', f'Content-Length: {MIB}', body=body))
        crowd.go_on()
        attack.stand()
        crowd.statuses()
        # Those who have little to say are heard all the same.
        status = fronts[0].login('wrong')[0]
        assert status in (401, 503), status


@title('/hostile-http/slow-readers')
def test_slow_readers():
    for front, number in itertools.product(fronts, range(16)):
        image = {'name': f'large{number}', 'disk_format': 'raw', 'container_format': 'bare', **{f'k{key}': 900 * 'v' for key in range(60)}}
        status, _, answer = front.ask('POST', '/image/v2/images', image, front.token)
        assert status == 201, answer
    with Attack('readers of a MiB who do not read') as attack:
        crowd = attack.crowd(FEW, *[request('GET', '/image/v2/images?limit=16', f'X-Auth-Token: {front.token}') for front in fronts], room=4096)
        crowd.go_on(read=False)
        attack.stand()
    for front in fronts:
        for image in front.ask('GET', '/image/v2/images', token=front.token)[2]['images']:
            front.ask('DELETE', f'/image/v2/images/{image["id"]}', token=front.token)


def put(image, front, length=64 * MIB):
    return request('PUT', f'/image/v2/images/{image}/file', f'Content-Length: {length}', 'Content-Type: application/octet-stream',
                   f'X-Auth-Token: {front.token}')


def images(front, *names):
    made = [front.ask('POST', '/image/v2/images', {'name': name, 'disk_format': 'raw', 'container_format': 'bare'}, front.token)[2] for name in names]
    return [image['id'] for image in made]


def status_of(front, image):
    return front.ask('GET', f'/image/v2/images/{image}', token=front.token)[2]['status']


def senders(attack, front, kept, some):
    """One for each image, who have all been let in; who is told to come again does so, with all others."""
    for _ in range(5):
        crowd = attack.crowd(STREAMS, *[put(image, front) + some for image in kept], of=[front])
        crowd.go_on()
        try:
            fettlelib.wait_until('all are being sent', lambda: len(streams.transfers()) == STREAMS, 10)
            return crowd
        except TimeoutError:
            attack.crowds.remove(crowd)
            crowd.end()
        for image in kept:
            fettlelib.wait_until('it can be sent again', lambda image=image: status_of(front, image) == 'queued', api.PATIENCE_S)
    raise AssertionError('some are never let in')


@title('/hostile-http/streams-that-stand-still')
def test_streams():
    """Of the front end of node2: senders to a server that takes nothing any more, senders who say nothing any more, and readers who do not read."""
    front = fronts[1]
    some, names = MIB * b'x', [f'streamed{number}' for number in range(STREAMS)]
    for stopped in (True, False):
        kept = images(front, *names)
        with Attack(f'{STREAMS} senders, {"servers" if stopped else "they"} stand still') as attack:
            crowd = senders(attack, front, kept, some)
            transfers = [int(pid) for pid in streams.transfers()]
            for pid in transfers if stopped else ():
                os.kill(pid, signal.SIGSTOP)
            crowd.add(32 * some)
            crowd.go_on(read=False)
            attack.stand()
            growth = attack.growth()
            print(f'# {STREAMS} senders: {growth / MIB:.1f} MiB more; {max(crowd.sent.values()) // MIB} MiB were taken of one', flush=True)
            for pid in transfers if stopped else ():
                os.kill(pid, signal.SIGCONT)
        assert growth <= STREAMS_MOST, growth
        for image in kept:
            fettlelib.wait_until('nothing is left of it', lambda image=image: status_of(front, image) == 'queued', api.PATIENCE_S)
            front.ask('DELETE', f'/image/v2/images/{image}', token=front.token)
    image, = images(front, 'large')
    with Attack('one sender') as attack:
        crowd = attack.crowd(1, put(image, front, 32 * MIB) + 32 * some, of=[front])
        while not crowd.heard():
            crowd.go_on()
        assert crowd.heard() == {204}
    with Attack(f'{STREAMS} readers who do not read') as attack:
        crowd = attack.crowd(STREAMS, request('GET', f'/image/v2/images/{image}/file', f'X-Auth-Token: {front.token}'), of=[front], room=4096)
        crowd.go_on(read=False)
        attack.stand()
        growth = attack.growth()
        print(f'# {STREAMS} readers: {growth / MIB:.1f} MiB more', flush=True)
    assert growth <= STREAMS_MOST, growth


@title('/hostile-http/a-gib-for-who-does-not-want-it')
def test_unwanted():
    heads = [request(method, path, f'Content-Length: {GIB}', 'Content-Type: application/json')
             for method, path in (('POST', LOGIN), ('GET', '/volume/v3/'), ('POST', '/nothing'), ('DELETE', '/%00'))]
    heads.append(request('POST', LOGIN, 'Transfer-Encoding: chunked', body=b'%x\r\n' % GIB))
    plenty = bytes(32 * MIB)
    with Attack('a GiB that nobody wants') as attack:
        crowd = attack.crowd(FEW // 10, *[head + plenty for head in heads])
        crowd.go_on()
        crowd.statuses()
        assert max(crowd.sent.values()) < len(plenty), 'all of it was taken'
        # Of an image, whose client hears no answer before its end (docs/design/api.md, 23): read, and kept nowhere.
        crowd = attack.crowd(FEW // 10, request('PUT', '/image/v2/images/x/file', f'Content-Length: {len(plenty)}') + plenty)
        crowd.go_on()
        assert crowd.statuses() == {403}


@title('/hostile-http/100,000-headers')
def test_headers():
    many, long = 100000 * b'a: b\r\n', b'X-Long: ' + 600000 * b'a' + b'\r\n'
    with Attack('100,000 headers') as attack:
        crowd = attack.crowd(FEW // 10, *[request('GET', '/volume/v3/')[:-2] + text + b'\r\n' for text in (many, long)])
        crowd.go_on()
        crowd.statuses()
        # Some less than what is refused, and not ended.
        crowd = attack.crowd(FEW, *[request('GET', '/volume/v3/')[:-2] + text[:60000] for text in (many, long)])
        crowd.go_on()
        attack.stand()
        crowd.statuses()


def twofold():
    """Two requests, for who ends the first one elsewhere: they are one here, and no good."""
    second = request('GET', '/volume/v3/')
    yield request('POST', LOGIN, 'Content-Length: 0', f'Content-Length: {len(second)}', body=second)
    yield request('POST', LOGIN, f'Content-Length: {len(second)}', 'Transfer-Encoding: chunked', body=b'0\r\n\r\n' + second)
    yield request('POST', LOGIN, f'Content-Length: 0, {len(second)}', body=second)
    yield request('POST', LOGIN, 'Content-Length: +0', body=second)
    yield request('POST', LOGIN, 'Transfer-Encoding : chunked', f'Content-Length: {len(second)}', body=second)


def nonsense():
    deep = b'[' * 1000 + b']' * 1000
    chunked = ('POST', LOGIN, 'Transfer-Encoding: chunked', 'Content-Type: application/json')
    typed = ('POST', LOGIN, 'Content-Type: application/json')
    yield from (request(*chunked, body=body) for body in (
        b'zz\r\n', b'-1\r\nab\r\n0\r\n\r\n', b'fffffffffffffffff\r\nab', b'2\r\nabcd\r\n0\r\n\r\n', b'\r\n\r\n'))
    yield from (request('GET', path) for path in (
        '/volume/../etc/shadow', '/..%2f..%2fetc/shadow', '/volume/v3/%00', '/volume/v3/%ff%fe', '/%', '/%zz',
        '/volume/v3/%2e%2e/%2e%2e/x', '*', 'http://[::1', '/' + 30000 * 'a', '/image/v2/images?name=%ff', '//'))
    yield from (request(*typed, f'Content-Length: {len(body)}', body=body) for body in (
        deep, b'{"auth":' + deep + b'}', b'{"auth":[' + 330000 * b'[],' + b'[]]}',
        b'{"a":"\xff\xfe"}', b'{"a":1e999}', b'{"a":' + 5000 * b'9' + b'}', b'{"a":"\\ud800"}', b'null', b'[]', b'\0', b'{"a":1}x',
        json.dumps({f'k{n}': n for n in range(50000)}).encode(), b'{"auth":{"identity":{"methods":[' + b'"password",' * 20000 + b'"x"]}}}'))
    yield request('GET', '/volume/v3/x/volumes', 'X-Auth-Token: ' + 30000 * 'a')
    yield request('GET', '/volume/v3/volumes', 'OpenStack-API-Version: ' + 'volume 3.99,' * 2000)
    yield b'GET /volume/v3/volumes HTTP/1.1\r\nHost: \xff\xfe\r\nX-Auth-Token: \x80\r\n\r\n'
    yield b'GET / HTTP/9.9\r\n\r\n'
    yield b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
    yield b'\x16\x03\x01\x02\x00' + 700 * b'\x01'
    numbers = random.Random(20261128)
    yield from (numbers.randbytes(2000) for _ in range(20))
    good = request(*typed, 'Content-Length: 26', body=b'{"auth":{"identity":null}}')
    for _ in range(300 if e2e.LONG else 60):
        broken = bytearray(good)
        for _ in range(numbers.randint(1, 4)):
            broken[numbers.randrange(len(broken))] = numbers.randrange(256)
        yield bytes(broken)


@title('/hostile-http/what-is-no-request-or-two')
def test_nonsense():
    with Attack('nonsense') as attack:
        for rows, most in ((list(twofold()), 1), (list(nonsense()), 9)):  # of bytes that are none rest and all may be requests
            crowd = attack.crowd(len(rows), *rows).go_on()
            print(f'# answers: {sorted(crowd.statuses(most))}', flush=True)


@title('/hostile-http/logins-at-once')
def test_logins():
    def login(number):
        user = {'name': f'nobody{number}', 'domain': {'id': 'default'}, 'password': 'x'}
        body = json.dumps({'auth': {'identity': {'methods': ['password'], 'password': {'user': user}}}}).encode()
        return request('POST', LOGIN, 'Content-Type: application/json', f'Content-Length: {len(body)}', 'Connection: close', body=body)
    with Attack('logins') as attack:
        crowd = attack.crowd(CROWD, *map(login, range(CROWD)))
        crowd.go_on()
        while not all(crowd.said.values()):
            crowd.go_on()
        assert crowd.statuses() == {401, 503}


@title('/hostile-http/half-made-handshakes#SAF-109')
def test_handshakes():
    """Of the front end of node1, which speaks TLS from now on: those that say the first half of a handshake, and such as say less."""
    certificate = os.path.join(lab.directory, 'front.pem')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=127.0.0.1',
                    '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '9', '-keyout', certificate + '.key', '-out', certificate],
                   check=True, capture_output=True)
    with open(certificate + '.key', encoding='utf-8') as key, open(certificate, 'a', encoding='utf-8') as file:
        file.write(key.read())
    for front in fronts:
        path = os.path.join(lab.root(front.node), 'etc', 'apid.conf')
        with open(path, encoding='utf-8') as file:
            settings = file.read()
        with open(path, 'w', encoding='utf-8') as file:
            file.write(re.sub(r'(?m)^#?\s*certificate\s*=.*\n', '', settings) + f'\ncertificate = {certificate}\n')
        lab.lab('restart', f'apid@{front.node}')
        front.base = front.base.replace('http:', 'https:')
        front.context = ssl.create_default_context(cafile=certificate)
    wait_for_fronts()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname='x').do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello = outgoing.read()
    with Attack('half-made handshakes') as attack:
        crowd = attack.crowd(CROWD, hello, hello[:40], b'\x16', b'', hello)
        crowd.go_on(read=False)
        attack.stand()
        attack.stand()


def wait_for_fronts():
    def served(front):
        try:
            return front.ask('GET', f'/volume/v3/{front.project}/volumes', token=front.token)[0] == 200
        except api.HUNG_UP:
            return False
    for front in fronts:
        fettlelib.wait_until(f'{front.base} serves', lambda front=front: served(front), api.PATIENCE_S)


def begin():
    v.add_backend('dir1', 'node1', 'node2', 'node3')  # three streams of each
    lab.cli('backend', 'modify', 'dir1', '--images', 'yes')
    for node in ('node1', 'node2'):
        front = api.init(lab, node)
        fettlelib.wait_until('somebody can log in', front.can_log_in, api.PATIENCE_S)
        _, front.token, body = front.login()
        front.project = body['token']['project']['id']
        fronts.append(front)
    wait_for_fronts()


@title('/hostile-http/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


def two_kinds(folder):
    """Programs of this build, in which the front end of node2 is one without sanitizers."""
    plain = os.path.join(e2e.build(), 'tests', 'e2e', 'newer')
    subprocess.run([os.path.join(e2e.ROOT, 'tests', 'e2e', 'build-newer'), e2e.ROOT, plain], check=True, stdout=sys.stderr)
    programs = units.make_build(e2e.build(), e2e.ROOT, folder) if e2e.UNITS else folder
    if not e2e.UNITS:
        units.copy_programs(e2e.build(), folder)
    path = os.path.join(folder, 'src', 'daemons', 'apid', 'fettle-apid') + ('.real' if e2e.UNITS else '')  # what its unit starts
    os.rename(path, path + '.sanitized')
    shutil.copy(os.path.join(plain, 'src', 'daemons', 'apid', 'fettle-apid'), path + '.plain')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(SCRIPT.format(plain=path + '.plain', real=path + '.sanitized'))
    os.chmod(path, stat.S_IRWXU)
    return programs


if __name__ == '__main__':
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory(prefix='fettle-http-', dir='/var/tmp') as programs_folder:
        os.chmod(programs_folder, 0o755)
        with fettlelib.Lab(two_kinds(programs_folder), nodes=3) as lab:
            v.lab, v.folder = lab, os.path.join(programs_folder, 'data')  # a GiB of room for each image
            os.mkdir(v.folder)
            os.chmod(v.folder, 0o755)
            streams.lab, streams.folder = lab, v.folder
            begin()
            few = (test_silent, test_slow_bodies, test_unwanted, test_headers, test_nonsense, test_handshakes)
            more = (test_slow_readers, test_streams, test_logins)
            e2e.run(*(more if e2e.LONG else ()), *few, test_logs)
