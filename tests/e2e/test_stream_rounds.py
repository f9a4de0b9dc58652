#!/usr/bin/env python3
"""Images that come and go by HTTP, while at random moments the client, the front end, the member or its server of the bytes is killed or stands
still: each image is active and right afterwards, or queued with nothing left of it, and others are answered all along.

FETTLE_ROUNDS sets how many (3, or 50 with FETTLE_LONG=1), FETTLE_SEED which, FETTLE_MIB how large (16, or 1024).
"""
import contextlib
import hashlib
import http.client
import os
import random
import signal
import tempfile
import threading

import api
import e2e
import test_api_images as images
import test_image_streams as streams
import test_images as i
import test_volumes as v
from e2e import title, wait_until

ROUNDS = int(os.environ.get('FETTLE_ROUNDS', '50' if e2e.LONG else '3'))
SEED = os.environ.get('FETTLE_SEED', '20261128')
SIZE = int(os.environ.get('FETTLE_MIB', '1024' if e2e.LONG else '16')) << 20
PIECE = 1 << 20
VICTIMS = ('client', 'apid', 'member', 'server')

lab = None
front = None
others = None  # the front end of node2
token = None
chance = random.Random(SEED)
sums = hashlib.sha512()


def piece(number):
    """Of the image: no two are the same, and none is blank."""
    return random.Random(f'{SEED} {number}').randbytes(4096) * (PIECE // 4096)


class Others(e2e.Beside):
    """Ask the other front end for other things."""

    def __init__(self):
        super().__init__()
        self.answered, self.error = 0, None

    def run(self):
        while not self.over and not self.error:
            try:
                status = others.ask('GET', '/image/v2/images', token=others.token)[0]
                assert status == 200, status
                self.answered += 1
            except Exception as error:  # pylint: disable=broad-except
                self.error = error


class Passing(threading.Thread):
    """The bytes of one image, in or out; `said` in the end: the status of what was put, whether what was had is right, None: it broke."""

    def __init__(self, image, out):
        super().__init__(daemon=True)
        self.image, self.out, self.said, self.passed, self.connection = image, out, None, 0, None

    def run(self):
        try:
            self.said = self.get() if self.out else self.put()
        except (*api.HUNG_UP, AttributeError, ValueError):  # its connection was taken away
            self.said = None

    def put(self):
        upload = images.Upload(self.image, SIZE)
        self.connection = upload.connection
        for number in range(SIZE // PIECE):
            upload.send(piece(number))
            self.passed += PIECE
        return upload.end()[0]

    def get(self):
        self.connection = http.client.HTTPConnection('127.0.0.1', front.port, timeout=api.PATIENCE_S)
        self.connection.request('GET', f'/image/v2/images/{self.image}/file', headers={'X-Auth-Token': token})
        found = hashlib.sha512()
        with self.connection.getresponse() as answer:
            while data := answer.read(PIECE):
                found.update(data)
                self.passed += len(data)
        return found.hexdigest() == sums.hexdigest() if self.passed == SIZE else None

    def vanish(self):
        with contextlib.suppress(OSError, AttributeError):  # it has ended, or not begun, just now
            self.connection.sock.shutdown(2)


def living(daemon, node):
    """Nobody while it is started again."""
    return [row['pid'] for part in lab.status()['nodes'] if part['name'] == node for row in part['daemons'] if row['name'] == daemon and row['pid']]


def victims(victim, name):
    """Processes that pass its bytes."""
    if victim == 'apid':
        return living('apid', 'node1')
    if victim == 'member':
        worker = lab.query('image', ['worker'], ['=', 'name', name])
        return living('volumed', worker[0]['worker'].split('@')[0]) if worker and worker[0]['worker'] else []
    return [int(pid) for pid in streams.transfers()]


def status_of(name):
    return i.images()[name]['status']


def serves():
    try:
        return front.ask('GET', '/image/v2/images', token=token)[0] == 200
    except api.HUNG_UP:
        return False


def harm(passing, victim, stops, name):
    """At a random moment; whether there was somebody to be harmed."""
    moment = chance.randrange(SIZE)
    wait_until('some of it has passed', lambda: passing.passed >= moment or not passing.is_alive(), 600, step=0.002)
    if victim == 'client' and not stops:
        passing.vanish()
        return passing.is_alive()
    pids = [] if victim == 'client' else victims(victim, name)
    for pid in pids:
        try:
            os.kill(pid, signal.SIGSTOP if stops else signal.SIGKILL)
        except ProcessLookupError:
            pass
    if stops:
        before = passing.passed
        wait_until('others go on', lambda since=others_beside.answered: others_beside.answered > since + 3 or others_beside.error, api.PATIENCE_S)
        assert passing.passed >= before
        for pid in pids:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
    return bool(pids)


others_beside = None


def one_round(number):
    out, victim, stops = chance.random() < 0.4, chance.choice(VICTIMS), chance.random() < 0.4
    name = 'kept' if out else f'r{number}'
    image = i.images()['kept']['uuid'] if out else images.made(name)
    passing = Passing(image, out)
    what = f'round {number} (seed {SEED}): {"out" if out else "in"}, {victim} {"stands still" if stops else "dies"}'
    try:
        passing.start()
        met = harm(passing, victim, stops, name)
        passing.join(600)
        assert not passing.is_alive(), 'it hangs'
        wait_until('the front end is back', serves, v.PATIENCE_S)
        if out:
            assert passing.said in (True, None), 'what was read is not what is there'
            wait_until('it is read whole', whole, v.PATIENCE_S)
        else:
            wait_until('it is decided', lambda: status_of(name) in ('active', 'queued'), v.PATIENCE_S)
            status = status_of(name)
            assert status == 'active' or passing.said != 204, 'it was taken, and is not active'
            assert status == 'queued' or i.images()[name]['os_hash_value'] == sums.hexdigest()
            images.ask('DELETE', f'/images/{image}')
            wait_until('it is gone', lambda: name not in i.images(), v.PATIENCE_S)
        i.check('dir1')
        assert not others_beside.error, others_beside.error
    except Exception as error:
        raise AssertionError(f'{what}: {error}') from error
    print(f'# {what}{"" if met else " (nobody was met)"}: {passing.said}, {passing.passed >> 20} MiB', flush=True)


def whole():
    again = Passing(i.images()['kept']['uuid'], True)
    again.start()
    again.join(600)
    return again.said


@title('/stream-rounds/active-and-right-or-nothing-of-it#SAF-60')
def test_rounds():
    global others_beside
    for number in range(SIZE // PIECE):
        sums.update(piece(number))
    image = images.made('kept')
    first = Passing(image, False)
    first.run()
    assert first.said == 204 and i.images()['kept']['os_hash_value'] == sums.hexdigest()
    with Others() as others_beside:
        for number in range(ROUNDS):
            one_round(number)
    print(f'# others were answered {others_beside.answered} times', flush=True)


@title('/stream-rounds/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


def begin():
    global front, others, token
    v.add_backend('dir1', 'node1', 'node2')
    lab.cli('backend', 'modify', 'dir1', '--images', 'yes')
    front, others = (api.init(lab, node) for node in ('node1', 'node2'))
    for one in (front, others):
        wait_until('somebody can log in', one.can_log_in, api.PATIENCE_S)
        one.token = one.login()[1]
    images.front, images.TOKEN, token = front, front.token, front.token
    wait_until('the front ends serve', lambda: serves() and others.ask('GET', '/image/v2/images', token=others.token)[0] == 200, api.PATIENCE_S)


if __name__ == '__main__':
    with tempfile.TemporaryDirectory(prefix='fettle-rounds-', dir='/var/tmp') as place:
        os.chmod(place, 0o755)
        with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500')) as lab:
            i.lab = v.lab = images.lab = streams.lab = lab
            v.folder = streams.folder = os.path.join(place, 'data')
            os.mkdir(v.folder, 0o755)
            os.chmod(v.folder, 0o755)
            lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', '4')
            begin()
            e2e.run(test_rounds, test_logs)
