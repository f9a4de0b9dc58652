#!/usr/bin/env python3
"""Members of etcd without space, with real members: a file at its limit (etcd's alarm NOSPACE), the full disk of one member, of
two, of the master. And members whose data is not what they have stored. What was answered stays; what cannot be stored is refused
with the reason; what is wrong is found, and one command mends it. FETTLE_LONG=1 damages in every way, otherwise in two."""
import contextlib
import glob
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time

import e2e
import fettlelib
from e2e import title, wait_until

NODES = ('node1', 'node2', 'node3')
TIMEOUT = 18
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


def engine(node, *words, timeout=120):
    """Exit code and text; the members are asked from this node's network."""
    try:
        return 0, lab.exec(node, lab.fettle, '--root', lab.root(node), 'cluster', 'engine', *words, timeout=timeout), ''
    except fettlelib.CommandFailed as failed:
        return failed.code, failed.out, failed.err


def status(*flags):
    return engine('node1', 'status', *flags)


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


FILL = """
import base64
import json
import sys
sys.path.insert(0, sys.argv[1])
from bench_etcd import Etcd
member = Etcd(sys.argv[2])
value = base64.b64encode(bytes(512 << 10)).decode()
for _ in range(int(sys.argv[3])):
    try:
        member.post('/v3/kv/put', json.dumps({'key': base64.b64encode(b'/of-the-test').decode(), 'value': value}))
    except AssertionError as error:
        print(error)
        break
"""
QUOTA = 24 << 20


def end_member(node):
    """Its node starts it again."""
    with open(os.path.join(lab.root(node), 'run', 'etcd.json'), encoding='utf-8') as file:
        process = os.pidfd_open(json.load(file)['pid'])
    signal.pidfd_send_signal(process, signal.SIGKILL)
    select.select([process], [], [], 30)
    os.close(process)


def with_quota(*variables):
    for node in NODES:
        lab.lab('restart', f'noded@{node}', *variables)
        wait_until('its node daemon serves', lambda node=node: engine(node, 'status')[0] in (0, 1), 30, step=0.5)
        end_member(node)
        all_is_well()


@title('/engine-full/files-really-at-their-limit#SAF-04,SAF-08')
def test_really():
    """Written over and over again, until a member says that no more goes into its file. All have reached it at about the same
    moment; their nodes make room, one after the other, which takes minutes."""
    with_quota(f'+FETTLE_ETCD_STORE_BYTES={QUOTA}')
    said = lab.exec(lab.master, 'python3', '-c', FILL, os.path.dirname(os.path.abspath(fettlelib.__file__)), lab.root(lab.master),
                    str(4 * QUOTA // (512 << 10)), timeout=300)
    assert 'database space exceeded' in said, said
    sizes = [os.path.getsize(os.path.join(lab.root(node), 'var/etcd/member/snap/db')) for node in NODES]
    assert max(sizes) > QUOTA - (1 << 20), sizes  # a write that would go beyond it is refused
    wait_until('the alarm of each is taken back', lambda: all('has room again; the alarm is taken back' in log(node, 'noded').rsplit(
        'has reached its limit', 1)[-1] for node in NODES if 'has reached its limit' in log(node, 'noded')) and add(), 600, step=1)
    all_is_well()
    sizes = [os.path.getsize(os.path.join(lab.root(node), 'var/etcd/member/snap/db')) for node in NODES]
    assert max(sizes) < QUOTA, sizes
    with_quota()


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
        before = len(log(other, 'noded'))
        write_until_ended(other)
        wait_until('its node says so', lambda: 'etcd ended' in log(other, 'noded')[before:], 60)
        assert 'its data is damaged' not in log(other, 'noded')[before:], log(other, 'noded')[before:]
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
        # What its log has of room already lets a member that is started again take changes for a while.
        wait_until('nobody is master', lambda: not add() and not serving(), 120)
        lab.master = master
        code, _, err = lab.run('tag', 'add', 'cluster', 'refused', check=False)
        print(f'# {err.strip()}', flush=True)
        assert code != 0 and err.startswith('fettle: '), (code, err)
        assert 'stepping down: ' in log(master, 'wconfd')
        def named():
            add()
            code, out, err = status()
            return code == 1 and all(f'{node}: ' in out + err for node in others)
        wait_until('the members without space are named', named, 120)
    all_is_well()


def submit(number):
    """A change as a job that nobody waits for; its number."""
    luxi = fettlelib.Luxi(os.path.join(lab.root(lab.master), 'run', 'luxid.sock'), timeout=60)
    with contextlib.closing(luxi):
        return luxi.call('SubmitJob', [{'OP_ID': 'OP_TAGS_SET', 'kind': 'cluster', 'tags': [f'full{number}']}])


def states(jobs):
    luxi = fettlelib.Luxi(os.path.join(lab.root(lab.master), 'run', 'luxid.sock'), timeout=60)
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


# --- disks that become read-only ---

@contextlib.contextmanager
def read_only(node):
    """As an error of the disk does it, under the processes that have files of it open; a power cycle mends it."""
    root = lab.root(node)
    subprocess.run(['mount', '-o', 'remount,errors=remount-ro', root], check=True)
    with open('/proc/self/mountinfo', encoding='utf-8') as file:
        device = os.path.basename(next(line for line in file if f' {root} ' in line).split(' - ')[1].split()[1])
    with open(f'/sys/fs/ext4/{device}/trigger_fs_error', 'w', encoding='utf-8') as file:
        file.write('by the test')
    try:
        yield
    finally:
        lab.lab('power', node, 'off')
        lab.lab('power', node, 'on')


@title('/engine-full/read-only-disk-of-a-member#SAF-07')
def test_read_only():
    all_is_well()
    other = follower()
    with read_only(other):
        write_until_ended(other)
        for _ in range(5):
            wait_until('a change is answered', add, 60, step=0.2)
        code, out, err = status()
        assert code == 1 and f'{other}: ' in out + err, (out, err)
    all_is_well()


@title('/engine-full/read-only-disk-of-the-master#SAF-07,SAF-08')
def test_read_only_master():
    """What it answers the two other members have stored, so it goes on; status names its member; it can be handed over."""
    all_is_well()
    master = lab.master
    others = [node for node in NODES if node != master]
    with read_only(master):
        wait_until('its member has ended', lambda: add() and master not in healthy(), 120, step=0.1)
        for _ in range(5):
            wait_until('a change is answered', add, 60, step=0.2)
        code, out, err = status()
        assert code == 1 and f'{master}: ' in out + err, (out, err)
        def moved():
            lab.master = others[0]
            lab.run('cluster', 'master-failover', '--yes', check=False)
            return serving(*others)
        wait_until('another node is the master', moved, 120, step=1)
        wait_until('a change is answered', add, 120, step=0.5)
    all_is_well()


# --- data that is not what was stored ---

def damaged(node, damage):
    """Its member ends, what it has stored is changed, and it is started again."""
    folder = os.path.join(lab.root(node), 'var', 'etcd', 'member')
    lab.lab('pause', f'noded@{node}')
    with open(os.path.join(lab.root(node), 'run', 'etcd.json'), encoding='utf-8') as file:
        process = os.pidfd_open(json.load(file)['pid'])
    signal.pidfd_send_signal(process, signal.SIGKILL)
    select.select([process], [], [], 30)
    os.close(process)
    damage(folder)
    lab.lab('resume', f'noded@{node}')


def flip(path, at, count=1):
    with open(path, 'r+b') as file:
        file.seek(at)
        old = file.read(count)
        file.seek(at)
        file.write(bytes(byte ^ 1 for byte in old))


def newest_log(folder):
    """The path of the log's last file, and how much of it is written."""
    path = sorted(glob.glob(os.path.join(folder, 'wal', '*.wal')))[-1]
    with open(path, 'rb') as file:
        return path, len(file.read().rstrip(b'\0'))


def flip_in_log(folder):
    """In what a change says; a length that is wrong would be an end that is torn, which etcd cuts off."""
    path, _ = newest_log(folder)
    with open(path, 'rb') as file:
        at = file.read().rfind(b'/fettle/')
    assert at > 0, f'{path} has no change'
    flip(path, at)


def cut_log(folder):
    path, size = newest_log(folder)
    os.truncate(path, size // 2)


def flip_first_pages(folder):
    for page in (0, 1):
        flip(os.path.join(folder, 'snap', 'db'), page * 4096 + 16, 64)


def flip_one_first_page(folder):
    flip(os.path.join(folder, 'snap', 'db'), 16, 64)


def cut_file(folder):
    path = os.path.join(folder, 'snap', 'db')
    os.truncate(path, os.path.getsize(path) // 4096 // 2 * 4096)


def flip_pages(folder):
    path = os.path.join(folder, 'snap', 'db')
    for page in range(2, os.path.getsize(path) // 4096):
        flip(path, page * 4096, 16)


def remove_log(folder):
    for path in glob.glob(os.path.join(folder, 'wal', '*.wal')):
        os.unlink(path)


def flip_value(folder):
    """One bit of one letter of a tag that was answered, wherever it stands in the file; it stays JSON."""
    path = os.path.join(folder, 'snap', 'db')
    with open(path, 'rb') as file:
        content = file.read()
    mark = f'"tag":"{answered[0]}'.encode()
    found = [place.start() for place in re.finditer(re.escape(mark), content)]
    assert found, f'{mark} is not in {path}'
    for at in found:
        flip(path, at + len(mark) - 1)


def follower():
    return next(node for node in NODES if node != lab.master)


def new_process(daemon):
    """One that has ended by itself, as a master does that was chosen meanwhile and was answered what it does not believe, is about
    to be started again anyhow."""
    try:
        lab.lab('kill', daemon)
    except fettlelib.CommandFailed as failed:
        if '(it is about to be started again)' not in failed.err:
            raise


def says(*flags):
    _, out, err = status(*flags)
    return out + err


def no_advice():
    all_is_well()
    wait_until('status has nothing to say', lambda: status()[0] == 0, 60, step=0.5)


def renewed(node):
    """By the one command; run on another node than the damaged one."""
    others = [one for one in NODES if one != node]
    asker = others[0]
    wait_until('the two others are well', lambda: set(others) <= set(healthy()), 60)
    _, out, err = engine(asker, 'renew', node, '--yes')
    assert out == f'The member of etcd on {node} has fresh data and a vote.\n', (out, err)
    no_advice()
    remove_aside(node)


def remove_aside(node):
    for aside in glob.glob(os.path.join(lab.root(node), 'var', 'etcd.aside-*')):  # its disk is small
        shutil.rmtree(aside)


@title('/engine-full/flipped-value#SAF-04,SAF-07')
def test_value():
    """etcd takes it for what was stored. Status finds it, and no master believes it."""
    all_is_well()
    node = follower()
    damaged(node, flip_value)
    wait_until('status finds it', lambda: f'{node}: its data is damaged: at revision ' in says(), 60, step=0.5)
    before = len(log(node, 'wconfd'))
    new_process(f'wconfd@{node}')  # it asks the member of its own node first
    wait_until('the seat is handed over',
               lambda: lab.run('cluster', 'master-failover', '--to', node, '--yes', check=False)[0] == 0, 60, step=0.5)
    wait_until(f'{node} is the master', lambda: serving(node) or serving() == node, 60)
    assert 'answered a value of /fettle/' in log(node, 'wconfd')[before:]
    all_is_well()
    found = f'what the member of {node} holds is not what most others hold'
    wait_until('the new master finds it by itself', lambda: found in ''.join(lab.run('cluster', 'verify', check=False)[1:]), 90)
    renewed(node)
    e2e.verify_clean(lab, 90)


def does_not_start(damage):
    all_is_well()
    node = follower()
    before = len(log(node, 'noded'))
    damaged(node, damage)
    wanted = f'its data is damaged, which no new start mends: give it that of the others with fettle cluster engine renew {node}'
    def said():
        return wanted in log(node, 'noded')[before:]
    def caught_up():
        return damage is cut_log and add() and healthy() == list(NODES) and status()[0] == 0
    wait_until('its node says so', lambda: said() or caught_up(), 60)
    if not said():  # a leader that was chosen since takes it for one that was away, and sends what it lacks
        return
    wait_until('a change is answered', add, 60)
    assert f'fettle cluster engine renew {node}' in says()
    renewed(node)


@title('/engine-full/flipped-log#SAF-07')
def test_log():
    does_not_start(flip_in_log)


@title('/engine-full/all-damages#SAF-07')
def test_damages():
    for damage in (cut_log, remove_log, flip_first_pages, cut_file, flip_pages):
        try:
            does_not_start(damage)
        except (AssertionError, TimeoutError) as error:
            raise AssertionError(f'{damage.__name__}: {error}') from error


@title('/engine-full/mended-by-etcd#SAF-07')
def test_mended():
    """The other first page is as good as it."""
    all_is_well()
    damaged(follower(), flip_one_first_page)
    no_advice()


@title('/engine-full/renew-the-master#SAF-07')
def test_master_renewed():
    all_is_well()
    damaged(lab.master, flip_in_log)
    wait_until('a change is answered', add, 60)
    renewed(lab.master)


@title('/engine-full/renew-unfinished')
def test_unfinished():
    """The node daemon that is to clear what was there stands still: the member is out, and the command says who goes on."""
    all_is_well()
    node = follower()
    lab.lab('pause', f'noded@{node}')
    code, out, err = engine(lab.master, 'renew', node, '--yes', timeout=400)
    assert (code, out) == (TIMEOUT, ''), (code, out, err)
    assert err == (f'fettle: the member of {node} is out, and has not come in again within 120 s; the master goes on trying, and the '
                   'log of its fettle-wconfd says what is in the way\n'), err
    assert node not in healthy(), members()
    lab.lab('resume', f'noded@{node}')
    no_advice()
    remove_aside(node)


@title('/engine-full/renew-refused')
def test_refused():
    """Who is no member; and beside a lost one, which would leave no majority."""
    all_is_well()
    for words, message in ((('node9',), 'node "node9" has no member of etcd; there are those of '),
                           ((), 'cluster engine (status|etcd|sqlite|renew NODE)')):
        code, _, err = engine(lab.master, 'renew', *words, '--yes')
        assert code != 0 and message in err, (code, err)
    lost, other = [node for node in NODES if node != lab.master]
    lab.lab('power', lost, 'off')
    wanted = f'without the member of {other} no majority of the others is left: not well are {lost}; bring them back first'
    def refused():
        code, _, err = engine(lab.master, 'renew', other, '--yes')
        assert code != 0 and 'no majority of the others is left' in err, (code, err)
        return wanted in err
    wait_until('it is refused for the lost one alone', refused, 60, step=0.5)  # an election may be under way
    lab.lab('power', lost, 'on')
    all_is_well()


def main():
    global lab  # pylint: disable=global-statement
    options = ('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '3', '--engine', 'etcd', '--root-mib', '512')
    with e2e.new_lab(options=options) as lab:
        long = (test_really, test_damages, test_mended, test_master_renewed, test_unfinished, test_refused) if e2e.LONG else ()
        e2e.run(test_value, test_log, *long, test_limit, test_one, test_two, test_master, test_read_only,
                test_read_only_master)


if __name__ == '__main__':
    main()
