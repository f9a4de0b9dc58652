#!/usr/bin/env python3
"""Disks that are full, read-only or lie, under the candidates' wconfd and noded (seats.py).

A clear error, and the process steps down or refuses to start; a damaged copy is filled anew; when the fault is mended
all goes on. Whatever happens, no answered change is missing and no promise is forgotten in silence.
FETTLE_LONG=1 flips bits 200 times instead of some.
"""
import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import time
import uuid

import e2e
import seats
from e2e import title

FLIPS = 200 if e2e.LONG else 16
LOST = (OSError, seats.CallFailed)

world = None
kept = {}  # tag: serial, of every answered change
count = 0


# --- changes ---

def ask(node, names, commit_id):
    with seats.Line(node) as line, world.owner(node) as owner:
        serial = line.call('commit', owner=owner, commit_id=commit_id,
                           changes=world.tags(*names))['serial']
    kept.update(dict.fromkeys(names, serial))


def new_names(amount=2, size=8):
    global count  # pylint: disable=global-statement
    count += 1
    return [f'f{count}-{number}-'.ljust(size, 'x') for number in range(amount)]


def change(amount=2, size=8):
    """One that is answered by whoever is master, asked until it is."""
    names, commit_id = new_names(amount, size), str(uuid.uuid4())
    def answered():
        with contextlib.suppress(*LOST):
            ask(world.wait_master(), names, commit_id)
        return names[0] in kept
    world.wait('a change is answered', answered)


def refused_change(node, amount=2, size=8):
    """One that must not be answered: (error, how to repeat it)."""
    names, commit_id = new_names(amount, size), str(uuid.uuid4())
    try:
        ask(node, names, commit_id)
    except seats.CallFailed as error:
        return error, lambda: ask(node, names, commit_id)
    raise AssertionError('it was answered')


def check(*nodes):
    """Every answered change is there, as it was answered."""
    for node in nodes or world.nodes:
        objects = node.objects()
        for name, serial in kept.items():
            found = objects.get(f'tag/cluster/{world.cluster}/{name}', 'nothing')
            assert found.startswith(f'{serial} '), f'{node.name} lost {name} of serial {serial}: {found[:80]}'


def whole():
    """All is well again, and nothing is lost."""
    for node in world.nodes:
        node.up()
    master = world.wait_master()
    change()
    world.wait_equal()
    check()
    world.check_positions()
    return master


def candidate():
    master = world.wait_master()
    return next(node for node in world.nodes if node is not master)


# --- disks ---

@contextlib.contextmanager
def small_disk(node):
    """The node's var/ is a small ext4 of its own meanwhile, which becomes read-only at its first error."""
    path, aside, image = node.path('var'), node.path('var.aside'), node.path('var.img')
    node.down()
    with open(image, 'wb') as file:
        file.truncate(32 << 20)
    subprocess.run(['mkfs.ext4', '-q', '-m', '0', '-b', '4096', '-O', '^has_journal', image], check=True, stdout=subprocess.DEVNULL)
    os.rename(path, aside)
    os.mkdir(path)
    mount(node)
    shutil.copytree(aside, path, dirs_exist_ok=True)
    subprocess.run(['sync', '-f', path], check=True)
    node.up()
    try:
        world.wait_master()
        yield
    finally:
        node.down()
        shutil.rmtree(aside)
        shutil.copytree(path, aside, ignore=shutil.ignore_patterns('ballast', 'lost+found'))
        subprocess.run(['umount', path], check=True)
        os.rmdir(path)
        os.rename(aside, path)
        os.unlink(image)
        node.up()


def mount(node):
    subprocess.run(['mount', '-o', 'loop,errors=remount-ro', node.path('var.img'), node.path('var')], check=True)


def make_read_only(node):
    """As an error of the disk does it, under the processes that have files of it open."""
    wanted = f' {node.path("var")} '
    with open('/proc/self/mountinfo', encoding='utf-8') as file:
        device = os.path.basename(next(line for line in file if wanted in line).split(' - ')[1].split()[1])
    with open(f'/sys/fs/ext4/{device}/trigger_fs_error', 'w', encoding='utf-8') as file:
        file.write('by the test')


def make_writable(node):
    """What a person does: the node's daemons end, the disk is checked and mounted again."""
    node.down()
    subprocess.run(['umount', node.path('var')], check=True)
    subprocess.run(['e2fsck', '-fp', node.path('var.img')], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    mount(node)
    node.up()


def free(node):
    room = os.statvfs(node.path('var'))
    return room.f_bavail * room.f_bsize


def fill(node, leave=0):
    """Fills its disk, but for so many bytes, to the last block that a file can have: its own maps of blocks take some."""
    with open(node.path('var/ballast'), 'ab') as file:
        size = 1
        while size > 0:
            size = free(node) - leave
            while size > 0:
                with contextlib.suppress(OSError):
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, size)
                    break
                size //= 2


def unfill(node):
    os.unlink(node.path('var/ballast'))


FULL = re.compile(r'the commit was not stored: \S+/var/store\.db: no space left on its disk \(.*\); free some, nothing was '
                  r'changed')
NO_MORE = re.compile(r'stepping down: serial \d+: the commit was not stored: \S+/var/store\.db: ')


@title('/seats-faults/full-disk-of-the-master#SAF-08,WCF-16')
def test_full_master():
    master = world.wait_master()
    with small_disk(master):
        assert world.wait_master() is master
        change()
        for leave in (0, 4096, 20000, 100000):
            fill(master, leave)
            error, again = refused_change(master, amount=400, size=400)
            assert error.code in ('resource_not_available', 'unknown_result'), error
            assert FULL.fullmatch(error.message) or error.code == 'unknown_result', error
            world.wait('it has stepped down and is back', lambda: NO_MORE.search(master.said('wconfd')) and world.master())
            check(master)
            unfill(master)
            world.wait_master()
            again()
            whole()
    assert whole() is master


@title('/seats-faults/read-only-disk-of-the-master#SAF-08')
def test_read_only_master():
    master = world.wait_master()
    with small_disk(master):
        change()
        make_read_only(master)
        error, again = refused_change(master)
        assert re.search('attempt to write a readonly database|COMMIT: disk I/O error', error.message), error
        refusal = (f'cannot lock {master.path("var/store.db")}.lock: Read-only file system; wconfd has to write there: look at the '
                   'disk, mount it writable again, and it starts')
        world.wait('it refuses to start', lambda: refusal in master.said('wconfd'))
        assert world.master() is None
        check(master)
        make_writable(master)
        world.wait_master()
        again()
        whole()
    assert whole() is master


@title('/seats-faults/full-disk-of-a-candidate#SAF-07')
def test_full_candidate():
    node = candidate()
    with small_disk(node):
        world.wait_equal()
        fill(node)
        def full():
            change(amount=100, size=400)  # until its log needs more than it has already
            return 'no space left on its disk' in (node.role() or {}).get('why', '')
        world.wait('it says why it does not go on', full, 90)
        check(*(other for other in world.nodes if other is not node))
        change()
        unfill(node)
        whole()
    whole()


@title('/seats-faults/full-disk-in-a-refill#SAF-07')
def test_full_refill():
    node = candidate()
    change(amount=400, size=400)
    with small_disk(node):
        world.wait_equal()
        node.end('wconfd')
        for ending in ('', '-wal', '-shm', '.lock'):  # the disk has to have room for the next copy, whatever the other tests have stored
            os.unlink(node.path('var/store.db' + ending))
        fill(node, 200000)
        node.start('wconfd')
        world.wait('it says why it does not go on', lambda: 'no space left on its disk' in (node.role() or {}).get('why', ''))
        assert node.role()['history'] == 0, 'half a copy passes for one'
        world.wait('it gives back what it took', lambda: free(node) > 50000)
        unfill(node)
        whole()
    whole()


@title('/seats-faults/no-room-to-open-the-copy#SAF-07')
def test_full_open():
    node = candidate()
    with small_disk(node):
        world.wait_equal()
        node.end('wconfd')
        with contextlib.suppress(FileNotFoundError):
            os.unlink(node.path('var/store.db-shm'))
        fill(node)
        node.start('wconfd')
        world.wait('it refuses to start', lambda: 'store.db cannot be opened: ' in node.said('wconfd'))
        assert not os.path.exists(node.path('var/store.db.damaged')), 'a whole copy was put aside'
        unfill(node)
        whole()
    whole()


@title('/seats-faults/take-over-on-a-bad-disk#SAF-07,SAF-08')
def test_bad_take_over():
    """The person is told, nothing has changed, and it works when the disk does."""
    whole()
    old = world.wait_master()
    node = candidate()
    with small_disk(node):
        change()
        world.wait_equal()
        old.reboot()
        for fault, mend, words in ((lambda: make_read_only(node), lambda: make_writable(node), 'ead-only file system'),
                                   (lambda: fill(node), lambda: unfill(node), 'o space left on')):
            # A wconfd that finds the disk full when it starts does not open its copy: that is another test's.
            world.wait('its wconfd keeps a copy', node.role)
            fault()
            said = ''
            def told(words=words):
                nonlocal said
                code, said = world.person(node, '--to', node.name)
                assert code != 0, said
                return words in said
            try:
                world.wait(f'the person is told: {words}', told, step=0.2)
            except AssertionError as error:
                raise AssertionError(f'{error}\nthe person was told: {said}') from error
            assert world.master() is None
            mend()
            check(node)
        def is_master():
            return world.master() is node or world.person(node, '--to', node.name)[0] == 0
        world.wait('the person makes it the master', is_master, step=0.2)
        world.wait('its mastership has begun', lambda: world.master() is node)
        old.up()
        assert whole() is node
    whole()


# --- memory that is full ---

@contextlib.contextmanager
def small_run(node):
    """The node's run/ is a tmpfs of its own meanwhile, of which little is left."""
    path, size = node.path('run'), 1 << 20
    node.reboot()
    subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}', 'tmpfs', path], check=True)
    node.up()
    try:
        world.wait_master()
        yield
    finally:
        node.down()
        subprocess.run(['umount', path], check=True)
        node.up()


def fill_run(node):
    with open(node.path('run/ballast'), 'ab', buffering=0) as file:
        for size in (1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b'x' * size)


def lock(node, name):
    """A lock that is granted and written down, or the error."""
    livelock = world.livelock(node, f'luxid-{os.getpid()}-{name}')
    try:
        with seats.Line(node) as line:
            assert line.call('update_locks', owner={'job': 'luxid', 'livelock': livelock},
                             locks=[{'name': f'instance/{name}', 'mode': 'exclusive'}])['granted']
    finally:
        world.let_go(livelock)


@title('/seats-faults/full-run#SAF-08,LCK-06')
def test_full_run():
    """The journal of locks has no room: nobody is told of a lock that is not written down, and the master steps down. With
    room again it is the master, of a later epoch if the journal was not whole."""
    master = world.wait_master()
    with small_run(master):
        assert world.wait_master() is master
        lock(master, 'before')
        fill_run(master)
        refused = None
        for number in range(200):  # what its last page has room for
            try:
                lock(master, f'full{number}')
            except LOST as error:
                refused = error
                break
        assert refused is not None, 'locks are granted without a journal'
        world.wait('it says why', lambda: re.search(r'stepping down: .*locks\.journal.*No space left on device', master.said('wconfd')))
        print(f'# {refused}', flush=True)
        os.unlink(master.path('run/ballast'))
        assert world.wait_master() is master
        lock(master, 'after')
        whole()
    assert whole() is master


# --- files that lie ---

OF_NODED = ('var/node/state.json', 'var/node/promise.json')
OF_WCONFD = ('var/store.db', 'var/store.db-wal', 'var/store.db.lock')
JOURNAL = 'run/locks.journal'
REFUSED = re.compile(r'is damaged|it ends before what was answered')


def damage(path, chance):
    """One bit another, or its end cut off: what was done. Of the journal, which is in memory, what has no end was never answered (locks_journal.h):
    its end stays."""
    with open(path, 'rb') as file:
        data = bytearray(file.read())
    if not data:
        return 'it is empty'
    in_memory = path.endswith(JOURNAL)
    at = chance.randrange(len(data) - in_memory)
    if chance.random() < 0.2 and not in_memory:
        data = data[:at]
        done = f'cut at {at}'
    else:
        bit = chance.randrange(8)
        data[at] ^= 1 << bit
        done = f'bit {bit} of byte {at} changed'
    with open(path, 'wb') as file:
        file.write(data)
    return done


def promised(node):
    with contextlib.suppress(FileNotFoundError), open(node.path('var/node/promise.json'), encoding='utf-8') as file:
        return json.load(file)['epoch']
    return 0


class Lock:
    """One that must either be held by its owner still, or have ended with its epoch."""

    def __init__(self, node):
        self.node, self.name = node, f'instance/held{count}'
        self.livelock = world.livelock(node, f'luxid-{os.getpid()}-{count}')
        self.epoch = world.role_of(node)['epoch']
        with seats.Line(node) as line:
            assert line.call('update_locks', owner={'job': 'luxid', 'livelock': self.livelock},
                             locks=[{'name': self.name, 'mode': 'exclusive'}])['granted']

    def held(self):
        """Its epoch and the names of all locks, none of a node that is no master; None: it changes just now."""
        role = world.role_of(self.node)
        if role['seat'] != 'master':
            return (role['epoch'], []) if role['epoch'] != self.epoch else None
        with contextlib.suppress(OSError, seats.CallFailed), seats.Line(self.node) as line:
            names = [lock['name'] for lock in line.call('list_all_locks')['locks']]
            return (role['epoch'], names) if world.role_of(self.node)['epoch'] == role['epoch'] else None
        return None

    def check(self):
        epoch, held = world.wait(f'{self.node.name} says which locks are held', self.held)
        assert (self.name in held) == (epoch == self.epoch), f'epoch {epoch}, was {self.epoch}: {held}'

    def end(self):
        world.let_go(self.livelock)


def says_so(node, before):
    """Whether a daemon has refused to start from what it found."""
    return any(REFUSED.search(node.said(daemon)[size:]) for daemon, size in before.items())


def is_back(node):
    return node.ready('noded') and node.ready('wconfd') and node.role() and world.master() and world.equal()


def one_flip(chance):
    change()
    world.wait_equal()
    node = world.wait_master() if chance.random() < 0.5 else candidate()
    was_master = node is world.wait_master()
    lock = Lock(node) if was_master else None
    files = [name for name in (*OF_NODED, *OF_WCONFD, JOURNAL) if os.path.exists(node.path(name))]
    name = chance.choice(files)
    promise = promised(node)
    node.down()
    good = {file: open(node.path(file), 'rb').read() for file in files}  # pylint: disable=consider-using-with
    done = damage(node.path(name), chance)
    said = {daemon: len(node.said(daemon)) for daemon in seats.DAEMONS}
    node.up()
    world.wait(f'{node.name} is back or refuses', lambda: says_so(node, said) or is_back(node))
    refused = says_so(node, said)
    where = f'{"master" if was_master else "candidate"}, {name}: {done}'
    try:
        if refused and not (not was_master and name in OF_WCONFD):
            # A person puts the file back as it was.
            node.down()
            for file, data in good.items():
                with open(node.path(file), 'wb') as out:
                    out.write(data)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(node.path('var/store.db-shm'))
            node.up()
        whole()
        assert promised(node) >= promise, 'a promise is forgotten'
        if lock:
            lock.check()
            lock.end()
    except AssertionError as error:
        raise AssertionError(f'{where}: {error}') from error
    return 'refused' if refused else 'goes on'


@title('/seats-faults/flipped-bits#SAF-01,SAF-07,SAF-08,WCF-16')
def test_flips():
    chance = random.Random(20261122)
    start = time.monotonic()
    results = [one_flip(chance) for _ in range(FLIPS)]
    print(f'# {FLIPS} times: {results.count("refused")} refused or filled anew, {results.count("goes on")} without harm, '
          f'{time.monotonic() - start:.0f} s', flush=True)
    assert 'refused' in results and 'goes on' in results


@title('/seats-faults/no-sanitizer-report')
def test_logs():
    world.assert_no_reports()


if __name__ == '__main__':
    with seats.World() as world:
        world.wait_master()
        world.wait_equal()
        e2e.run(test_full_master, test_read_only_master, test_bad_take_over, test_full_candidate, test_full_refill, test_full_open, test_full_run,
                test_flips, test_logs)
