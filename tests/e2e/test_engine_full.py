#!/usr/bin/env python3
"""Members of etcd without space, with real members: a file at its limit (etcd's alarm NOSPACE), the full disk of one member, of
two, of the master. What was answered stays; what cannot be stored is refused with the reason; with space again all goes on."""
import contextlib
import json
import os
import time

import e2e
import fettlelib
from e2e import title, wait_until

NODES = ('node1', 'node2', 'node3')
NO_SPACE = 'etcd takes no changes: '
NAMED = 'node2: its file has reached its limit of 4096 MiB, and no member takes changes'
lab = None
answered = []  # tags whose change was answered


def serving(*nodes):
    """The first of these nodes whose luxid and wconfd answer as master; lab.master from then on."""
    for node in nodes or NODES:
        lab.master, lab.luxi_connection = node, None
        if lab.run('cluster', 'info', check=False, timeout=60)[0] == 0:
            return node
    return None


def add():
    """One change by whoever is master; whether it was answered."""
    tag = f't{len(answered)}x{time.monotonic_ns()}'
    if not serving():
        return False
    code, _, _ = lab.run('tag', 'add', 'cluster', tag, check=False)
    if code == 0:
        answered.append(tag)
    return code == 0


def all_is_well():
    wait_until('a change is answered', add, 120, step=0.5)
    missing = set(answered) - set(lab.cli('tag', 'list', 'cluster', '--no-headers').split())
    assert not missing, f'answered and lost: {sorted(missing)}'
    wait_until('all members are well', lambda: healthy() == list(NODES), 150, step=1)


def status(*flags):
    """Exit code and text; the members are asked from node1."""
    try:
        return 0, lab.exec('node1', lab.fettle, '--root', lab.root('node1'), 'cluster', 'engine', 'status', *flags), ''
    except fettlelib.CommandFailed as failed:
        return failed.code, failed.out, failed.err


def members():
    return json.loads(status('--json')[1])['members']


def healthy():
    return sorted(member['name'] for member in members() if member['healthy'])


def log(node, daemon):
    with open(os.path.join(lab.root(node), 'log', daemon + '.log'), encoding='utf-8', errors='replace') as file:
        return file.read()


# --- a file at its limit ---

ALARM = """
import json
import sys
sys.path.insert(0, sys.argv[1])
from bench_etcd import Etcd
member = Etcd(sys.argv[2])
member.post('/v3/maintenance/alarm', json.dumps({'action': 'ACTIVATE', 'memberID': sys.argv[3], 'alarm': 'NOSPACE'}))
"""


def raise_alarm(node):
    """As the member itself does when its file has reached its limit."""
    number = wait_until(f'the member of {node} answers', lambda: {one['name']: one['id'] for one in members()}[node], 30)
    lab.exec(node, 'python3', '-c', ALARM, os.path.dirname(os.path.abspath(fettlelib.__file__)), lab.root(node),
             str(int(number, 16)))


@title('/engine-full/file-at-its-limit#SAF-04,SAF-08')
def test_limit():
    all_is_well()
    master = lab.master
    before = len(log(master, 'wconfd'))
    raise_alarm('node2')
    lab.run('tag', 'add', 'cluster', 'refused', check=False)

    def taken_back():
        return 'has room again; the alarm is taken back' in log('node2', 'noded')

    def is_named():
        code, out, err = status()
        return taken_back() or (code == 1 and NAMED in out + err)
    wait_until('the member is named', is_named, 30)
    assert taken_back() or NO_SPACE in log(master, 'wconfd')[before:], log(master, 'wconfd')
    wait_until('the alarm is taken back', taken_back, 150, step=1)
    all_is_well()
    assert NAMED not in ''.join(status()[1:])


# --- full disks ---

def fill(node):
    path = os.path.join(lab.root(node), 'var', 'ballast')
    with open(path, 'ab', buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b'x' * size)


def unfill(node):
    os.unlink(os.path.join(lab.root(node), 'var', 'ballast'))


@contextlib.contextmanager
def full(*nodes):
    for node in nodes:
        fill(node)
    try:
        yield
    finally:
        for node in nodes:
            unfill(node)


def write_until_ended(*nodes):
    """Changes, until the members of these nodes have ended for want of space."""
    def ended():
        add()
        return not set(nodes) & set(healthy())
    wait_until('the members without space have ended', ended, 120, step=0)


@title('/engine-full/disk-of-one-member#SAF-07')
def test_one():
    all_is_well()
    other = [node for node in NODES if node != lab.master][0]
    with full(other):
        write_until_ended(other)
        for _ in range(5):
            wait_until('a change is answered', add, 60, step=0.2)
    all_is_well()


@title('/engine-full/disks-of-two-members#SAF-07,SAF-08')
def test_two():
    all_is_well()
    master = lab.master
    others = [node for node in NODES if node != master]
    with full(*others):
        write_until_ended(*others)
        wait_until('nobody is master', lambda: not serving(), 60)
        lab.master = master
        code, _, err = lab.run('tag', 'add', 'cluster', 'refused', check=False)
        print(f'# {err.strip()}', flush=True)
        assert code != 0 and err.startswith('fettle: '), (code, err)
        assert 'stepping down: ' in log(master, 'wconfd')
        code, out, err = status()
        assert code == 1 and all(f'{node}: ' in out + err for node in others), (out, err)
    all_is_well()


def submit(number):
    """A change as a job that nobody waits for; its number."""
    luxi = fettlelib.Luxi(os.path.join(lab.root(lab.master), 'run', 'luxid.sock'), timeout=20)
    with contextlib.closing(luxi):
        return luxi.call('SubmitJob', [{'OP_ID': 'OP_TAGS_SET', 'kind': 'cluster', 'tags': [f'full{number}']}])


def states(jobs):
    luxi = fettlelib.Luxi(os.path.join(lab.root(lab.master), 'run', 'luxid.sock'), timeout=20)
    with contextlib.closing(luxi):
        return [row[0] for row in luxi.call('QueryJobs', jobs, ['status'])]


@title('/engine-full/disk-of-the-master#SAF-07,SAF-08')
def test_master():
    """The two other members store what it accepts; its jobs, which need its disk, wait, or end with an error."""
    all_is_well()
    master, jobs = lab.master, []
    with full(master):
        def ended():
            jobs.append(submit(len(jobs)))
            return master not in healthy()
        wait_until('its member has ended for want of space', ended, 120, step=0)
        for _ in range(3):
            jobs.append(submit(len(jobs)))
    wait_until('all jobs have ended', lambda: set(states(jobs)) <= {'success', 'error'}, 120, step=0.5)
    answered.extend(f'full{number}' for number, state in enumerate(states(jobs)) if state == 'success')
    all_is_well()


def main():
    global lab  # pylint: disable=global-statement
    options = ('--replica-lost-ms', '1000', '--watcher-interval-ms', '200', '--candidates', '3', '--engine', 'etcd', '--root-mib', '512')
    with e2e.new_lab(options=options) as lab:
        e2e.run(test_limit, test_one, test_two, test_master)


if __name__ == '__main__':
    main()
