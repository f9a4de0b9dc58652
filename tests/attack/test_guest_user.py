#!/usr/bin/env python3
"""What a guest that has escaped into QEMU's user can do to its host, without a capability: nothing of root's is changed, no
process of root's ends, no daemon stands still, nothing of another guest's is in its reach; and no folder on the way to a file of
root's can be changed by another user.

The attacker is a process of that user. Each attack is tried for as long as it once took several times over.
"""
import contextlib
import json
import os
import re
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
import bus  # noqa: E402  pylint: disable=wrong-import-position
import e2e  # noqa: E402  pylint: disable=wrong-import-position
from e2e import fettlelib, title, wait_until  # noqa: E402  pylint: disable=wrong-import-position

ROUNDS = 5  # of a race; the longest took two when it could be won

# With FOLDER, the relay's, and what an attack is about as OTHER. `attempt` says how the kernel refuses.
ATTACKER = '''
import ctypes, os, sys
FOLDER, OTHER = sys.argv[1:3]
EXCHANGE = 2
libc = ctypes.CDLL(None, use_errno=True)
def path(name):
    return os.path.join(FOLDER, name)
def attempt(what, *arguments):
    try:
        what(*arguments)
        return 'done'
    except OSError as error:
        return error.strerror
pairs = [(path(f"link{i}").encode(), path(f"trap{i}").encode()) for i in range(20)]
def set_trap(link, trap):
    attempt(os.symlink, OTHER, link)
    if attempt(os.mkdir, trap) == 'done':
        for name in os.listdir(OTHER):
            attempt(os.mknod, os.path.join(trap, name.encode()))
def exchange_all():
    for link, trap in pairs:
        if libc.renameat2(-100, link, -100, trap, EXCHANGE):
            set_trap(link, trap)
def over(name, target):
    attempt(os.symlink, target, path('link'))
    return attempt(os.rename, path('link'), path(name))
def write(name, text):
    with open(path('new'), 'w') as file:
        file.write(text)
    os.rename(path('new'), path(name))
'''

lab = None
folder = None  # of this test, root's alone
uuid = None  # of the guest whose user attacks


def status_of(pid):
    with open(f'/proc/{pid}/status', encoding='utf-8') as file:
        return dict(line.rstrip('\n').split(':\t', 1) for line in file if ':\t' in line)


def user_of(instance=None):
    """Whom the processes of a guest run as, web1 without a word; another one after each start."""
    return int(status_of(lab.qemu_processes(instance or uuid)[0])['Uid'].split()[0])


def as_user(user=None):
    user = user or user_of()
    return ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups', '--no-new-privs', '--bounding-set=-all']


def attack(script, target, other=''):
    """Runs to its end; what it prints."""
    done = subprocess.run([*as_user(), sys.executable, '-c', ATTACKER + script, target, other], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextlib.contextmanager
def attacking(script, target, other=''):
    """Goes on until the end of the `with`, once it has begun."""
    with subprocess.Popen([*as_user(), sys.executable, '-c', f'{ATTACKER}print("begun", flush=True)\nwhile True:\n    {script}', target, other],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as attacker:
        try:
            assert attacker.stdout.readline() == 'begun\n'
            yield
        finally:
            attacker.kill()


def guest_folder(name=''):
    return os.path.join(lab.root('node2'), 'run', 'guests', uuid, name)


def state():
    with open(guest_folder('relay/state.json'), encoding='utf-8') as file:
        return json.load(file)


def relay_pid():
    with contextlib.suppress(FileNotFoundError):
        return state()['pid']
    return 0


def end_relay():
    """As the guest's user may; until there is another one."""
    before = state()['pid']
    subprocess.run([*as_user(), 'kill', '-9', str(before)], check=True)
    wait_until('another relay is there', lambda: state()['pid'] not in (0, before) and state()['placed'])


def start_ticks(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
        return int(file.read().rsplit(')', 1)[1].split()[19])


def noded_pid():
    return bus.pid_of(lab, 'noded', 'node2')


def restart_noded():
    before = noded_pid()
    lab.lab('restart', 'noded@node2')
    wait_until('the node daemon is another one', lambda: noded_pid() != before)
    wait_healthy()


def wait_healthy():
    e2e.wait_healthy(lab, 'web1', 120)
    wait_until('its relay is in its place', lambda: state()['placed'])


@contextlib.contextmanager
def victim():
    """A process of root's that has nothing to do with any of it."""
    with subprocess.Popen(['sleep', 'infinity']) as process:
        try:
            yield process
            assert process.poll() is None, 'a process of root\'s was ended'
        finally:
            process.kill()


def stop_and_start():
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='web1', wait=120)
    lab.do('OP_INSTANCE_STARTUP', instance_name='web1', wait=120)
    wait_healthy()


# --- its relay ---

@title('/attack/guest-user/process-of-its-state#SAF-104')
def test_state():
    """Whom the state of a relay names gets a signal of root's when it ends."""
    wait_healthy()
    with victim() as process:
        forged = {**state(), 'pid': process.pid, 'start': start_ticks(process.pid)}
        said = attack('print(attempt(write, "state.json", OTHER))', guest_folder('relay'), json.dumps(forged))
        restart_noded()
        stop_and_start()
        assert process.poll() is None, 'a process of root\'s was ended'
        assert said == 'Permission denied', said


@title('/attack/guest-user/link-as-its-log#SAF-104')
def test_log():
    """A name in a folder of the user's becomes any file that root opens by it."""
    target = os.path.join(folder, 'made')
    with attacking('attempt(os.symlink, OTHER, path("log"))', guest_folder('relay'), target):
        for _ in range(ROUNDS):
            end_relay()
            assert not os.path.exists(target), 'a file of root\'s was made'
    wait_healthy()


@title('/attack/guest-user/pipe-instead-of-a-file#SAF-104')
def test_pipe():
    """Who opens a pipe that nobody reads stands still."""
    pid = noded_pid()
    said = attack('print(attempt(os.mkfifo, path(OTHER)))', guest_folder('relay'), f'.state.json.{pid}-{pid}')
    end_relay()
    assert noded_pid() == pid
    lab.do('OP_INSTANCE_REBOOT', instance_name='web1', reboot_type='hard', wait=120)
    wait_healthy()
    assert said == 'Permission denied', said


@title('/attack/guest-user/tree-that-is-removed#SAF-104')
def test_tree():
    """Between a look at a folder, which has the names of what is to be hit, and the removal of what is in it, its name is another's."""
    tree = os.path.join(folder, 'tree')
    os.mkdir(tree)
    for number in range(40):
        with open(os.path.join(tree, f'{number}'), 'w', encoding='utf-8'):
            pass
    said = attack('print(attempt(os.symlink, OTHER, path("link")), attempt(os.mkdir, path("trap")))', guest_folder('relay'), tree)
    for _ in range(ROUNDS):
        relay = relay_pid()
        with attacking('exchange_all()', guest_folder('relay'), tree):
            subprocess.run([*as_user(), 'kill', '-9', *map(str, lab.qemu_processes(uuid))], check=True)
            wait_until('its relay has ended', lambda before=relay: relay_pid() != before)
        left = len(os.listdir(tree))
        assert left == 40, f'{left} of 40 files of root\'s are left'
        e2e.wait_mended(lab, 'web1')
        wait_healthy()
    assert said == 'Permission denied Permission denied', said


# --- its images ---

@title('/attack/guest-user/header-of-its-image#SAF-105')
def test_header():
    """What a header names as the file of its data is opened by nobody for it. Its QEMU has the image open, and may write any header."""
    secret, header = os.path.join(folder, 'secret'), os.path.join(folder, 'header')
    with open(secret, 'wb') as file:
        file.write(bytes(8 << 20))
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-o', f'data_file={secret},data_file_raw=on', header, '8M'], check=True)
    os.chmod(secret, 0o600)
    os.chmod(header, 0o644)
    thin = e2e.create(lab, 'thin', 'file', disks=[{'size': 8, 'format': 'qcow2'}])
    image = os.path.join(lab.root('node2'), 'var', 'disks', f'{thin}.disk0.qcow2')
    user = as_user(user_of(thin))
    by_name = subprocess.run([*user, 'dd', f'if={header}', f'of={image}', 'status=none'], capture_output=True, text=True, check=False)
    assert by_name.returncode != 0 and 'Permission denied' in by_name.stderr, by_name.stderr
    subprocess.run(['dd', f'if={header}', f'of={image}', 'status=none'], check=True)
    subprocess.run([*user, 'kill', '-9', *map(str, lab.qemu_processes(thin))], check=True)
    said = f'image "{image}": its header names a data file ({secret}), which no image of an instance rests on; not opened'
    wait_until('the watcher has tried to start it', lambda: said in json.dumps(lab.query('job', ['opresult', 'oplog'])).replace('\\"', '"'))
    code, _, err = lab.run('instance', 'startup', 'thin', check=False)
    assert code != 0 and said in err, err
    code, _, err = lab.run('instance', 'grow-disk', 'thin', '0', '16', check=False)
    assert code != 0, err
    assert os.stat(secret).st_size == 8 << 20 and lab.qemu_processes(thin) == []
    with open(secret, 'rb') as file:
        assert not any(file.read()), 'the file was written to'
    lab.do('OP_INSTANCE_REMOVE', instance_name='thin', wait=120)


# --- another guest ---

# With pids, and files with a slash, as OTHER; what of them it can reach.
REACH = '''
for what in OTHER.split("|"):
    if "/" in what:
        print(what, attempt(os.open, what, os.O_RDONLY))
    else:
        print(what, attempt(os.kill, int(what), 0))
        for name in ("mem", "fd", "maps", "environ"):
            of = f"/proc/{what}/{name}"
            print(of, attempt(os.listdir, of) if name == "fd" else attempt(lambda: open(of, "rb").read(1)))
'''


def processes_of_guests():
    """All of the lab: QEMU, relays, exports, with their commands."""
    found = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            with open(f'/proc/{pid}/cmdline', encoding='utf-8', errors='replace') as file:
                words = file.read()
            if lab.directory in words and re.match(r'(/\S*/)?(qemu-system-x86_64|nbdkit)\0', words):
                found[int(pid)] = words
    return found


@title('/attack/guest-user/another-guest#SAF-105,SAF-106')
def test_another():
    """Each guest, and each replica, has a user of its own, without any right of another's, from its first instruction."""
    other = e2e.create(lab, 'other', disks=[{'size': 8}])
    e2e.wait_healthy(lab, 'other', 120)
    own = user_of()
    processes = processes_of_guests()
    kinds = [words.split('\0')[0].rsplit('/', 1)[-1] for words in processes.values()]
    assert kinds.count('qemu-system-x86_64') == 2 and kinds.count('nbdkit') == 4, kinds
    users = {}
    for pid in processes:
        status = status_of(pid)
        ids = set(status['Uid'].split() + status['Gid'].split())
        assert len(ids) == 1 and status['Groups'].strip() == '' and int(status['CapPrm'], 16) == 0 and status['NoNewPrivs'] == '1', status
        users.setdefault(int(ids.pop()), []).append(pid)
    assert len(users) == 4 and 0 not in users and 65534 not in users, users  # a guest and its relay share one
    strangers = [pid for pid in processes if pid not in users[own]]
    images = [os.path.join(lab.root(node), 'var', 'disks', name)
              for node in ('node2', 'node3') for name in os.listdir(os.path.join(lab.root(node), 'var', 'disks')) if '.disk' in name]
    assert len(images) == 4 and all(os.stat(path).st_uid == 0 for path in images), images
    consoles = [os.path.join(lab.root('node2'), 'log', 'guests', name) for name in os.listdir(os.path.join(lab.root('node2'), 'log', 'guests'))]
    said = attack(REACH, guest_folder('relay'), '|'.join([*map(str, strangers), *images, *consoles]))
    reached = [line for line in said.splitlines() if not line.endswith(('Permission denied', 'Operation not permitted'))]
    assert not reached and len(said.splitlines()) == 5 * len(strangers) + len(images) + len(consoles), said
    lab.do('OP_INSTANCE_REMOVE', instance_name='other', wait=120)
    assert lab.qemu_processes(other) == []


@title('/attack/guest-user/full-pool#SAF-92,SAF-106')
def test_full():
    """New instances are refused, with what to do; what is there goes on, as one user that is none of the pool's, and is none of root's."""
    path = os.path.join(lab.root('node2'), 'etc', 'node.json')
    with open(path, encoding='utf-8') as file:
        before = file.read()
    def configure(text):
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        restart_noded()
    configure(json.dumps({**json.loads(before), 'guest_user_first': 5000000, 'guest_users': 1}))
    try:
        stop_and_start()
        assert user_of() == 5000000
        words = 'has no free user for one more guest (1 in use): raise guest_users in node.json'
        wait_until('verify says so', lambda: f'node node2: {words}' in lab.run('cluster', 'verify', check=False)[1])
        e2e.expect_job_error(lab, f'pnode: node "node2" {words}', 'OP_INSTANCE_CREATE', instance_name='more', pnode='node2',
                             disk_template='diskless', memory=8, disks=[])
        lab.do('OP_INSTANCE_CREATE', instance_name='elsewhere', disk_template='diskless', memory=8, disks=[], wait=120)
        assert lab.instance('elsewhere', 'pnode')['pnode'] != 'node2'
        job = lab.submit({'OP_ID': 'OP_INSTANCE_MIGRATE', 'instance_name': 'elsewhere', 'target_node': 'node2'})
        assert lab.wait_job(job)[0] == 'success', lab.cli('job', 'info', str(job))
        assert user_of(e2e.uuid_of(lab, 'elsewhere')) == 5000001
        lab.do('OP_INSTANCE_REMOVE', instance_name='elsewhere', shutdown_timeout=0, wait=120)
    finally:
        configure(before)


# --- sockets ---

@title('/attack/guest-user/sockets#SAF-104,SAF-107')
def test_sockets():
    """Of all sockets of the lab it reaches its own relay's alone, and what its own processes have made: no monitor, no console, no daemon."""
    found = subprocess.run(['find', lab.directory, '-type', 's'], check=True, capture_output=True, text=True).stdout.split()
    for wanted in ('qmp.sock', 'con.sock', 'rescue.sock', 'noded.sock', 'luxid.sock', 'ganeti-query', 'wconfd.sock', 'lab.sock', 'ctl0'):
        assert any(path.endswith(wanted) for path in found), (wanted, found)
    said = attack('''
import socket
for at in OTHER.split("|"):
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(60)
        folder = os.open(os.path.dirname(at), os.O_PATH)  # names in a lab are longer than those of a socket may be
        print(attempt(one.connect, f"/proc/self/fd/{folder}/{os.path.basename(at)}"), at)
''', guest_folder('relay'), '|'.join(found))
    reached = [line.split(' ', 1)[1] for line in said.splitlines() if not line.startswith('Permission denied ')]
    assert len(said.splitlines()) == len(found) and reached == [guest_folder('relay/sock')], said


# --- what the version before has left ---

def make_before():
    """The relay's folder as it was in the version before: the user's. With the guest and its relay running; the node daemon is not."""
    user = user_of()
    for name in ('', 'keys.psk', 'sock'):
        os.chown(guest_folder(f'relay/{name}'), user, user)
    os.chmod(guest_folder('relay'), 0o700)


@contextlib.contextmanager
def noded_away():
    """From the inside of the `with` on the node daemon does nothing; at its end there is another one."""
    lab.lab('pause', 'noded@node2')
    try:
        yield
    finally:
        lab.lab('kill', 'noded@node2')
    wait_healthy()


def counts_on():
    e2e.wait_counting(lab, 'web1', uuid, 'node2', lab.printed('web1', uuid, 'node2') + 3, 60)


@title('/attack/guest-user/adopted#SAF-104')
def test_adopted():
    """The guest and its relay go on as they are, in a folder that is root's from then on; and a replica that is lost is given up by
    a relay in the place of that one."""
    processes, relay = lab.qemu_processes(uuid), state()['pid']
    with noded_away():
        make_before()
    about = os.stat(guest_folder('relay'))
    assert (about.st_uid, stat.S_IMODE(about.st_mode)) == (0, 0o711), about
    counts_on()
    assert (lab.qemu_processes(uuid), state()['pid']) == (processes, relay)
    lab.lab('link', 'node3', 'down')
    wait_until('its replica is given up', lambda: lab.instance('web1', 'replica.state')['replica.state'] == 'stale', 60)
    counts_on()
    lab.lab('link', 'node3', 'up')
    wait_healthy()
    assert lab.qemu_processes(uuid) == processes


@title('/attack/guest-user/adopted-with-words-of-the-user#SAF-104')
def test_adopted_forged():
    """What the user had put into its folder before: the pid of another's process, links, pipes, deep trees."""
    secret = os.path.join(folder, 'secret')
    with open(secret, 'w', encoding='utf-8') as file:
        file.write('of root\n')
    with victim() as process:
        with noded_away():
            make_before()
            forged = {**state(), 'pid': process.pid, 'start': start_ticks(process.pid)}
            said = attack('''
one, other = OTHER.split("|", 1)
said = [attempt(write, "state.json", other), attempt(os.symlink, os.path.dirname(one), path("trap")), over("log", one)]
os.mkfifo(path("1"))
os.chdir(FOLDER)
for _ in range(2000):
    os.mkdir("deep")
    os.chdir("deep")
os.symlink(one, "link")
print(*said)
''', guest_folder('relay'), f'{secret}|{json.dumps(forged)}')
            assert said == 'done done done', said
        assert sorted(name for name in os.listdir(guest_folder('relay')) if name not in ('log', 'keys.psk', 'sock', 'state.json')) == []
        assert state()['pid'] != process.pid
        assert stat.S_ISREG(os.lstat(guest_folder('relay/log')).st_mode)
        assert os.lstat(guest_folder('relay/state.json')).st_uid == 0
        assert os.stat(secret).st_uid == 0
        counts_on()
        stop_and_start()


# --- every folder ---

def others_may_write(about):
    return about.st_uid != 0 or about.st_mode & stat.S_IWOTH or (about.st_mode & stat.S_IWGRP and about.st_gid != 0)


def open_ways(top):
    """Folders below `top` that another user may write to, with something of root's in them or below."""
    found = {}
    def walk(at, above):
        about = os.lstat(at)
        if about.st_uid == 0:
            found.update((one, at) for one in above)
        if stat.S_ISDIR(about.st_mode):
            inner = above + [at] if others_may_write(about) else above
            for name in os.listdir(at):
                with contextlib.suppress(FileNotFoundError):
                    walk(os.path.join(at, name), inner)
    walk(top, [])
    return found


def check_folders(when):
    found = open_ways(lab.directory)
    assert not found, f'{when}: ' + ', '.join(f'{at} (with {what})' for at, what in found.items())


@title('/attack/guest-user/folders#SAF-104')
def test_folders():
    """Guests of all kinds, replicas, a migration with its keys, members of etcd."""
    lab.do('OP_INSTANCE_CREATE', instance_name='none', pnode='node2', disk_template='diskless', memory=8, disks=[])
    e2e.create(lab, 'alone', 'file', disks=[{'size': 8, 'format': 'qcow2'}])
    e2e.create(lab, 'common', 'sharedfile')
    e2e.create(lab, 'other', disks=[{'size': 8}, {'size': 8}])
    wait_healthy()
    e2e.wait_healthy(lab, 'other', 120)
    check_folders('guests')
    job = lab.submit({'OP_ID': 'OP_INSTANCE_MIGRATE', 'instance_name': 'alone', 'target_node': 'node3'})
    while lab.job_status(job)[0] not in ('success', 'error', 'canceled'):
        check_folders('a migration')
    assert lab.wait_job(job)[0] == 'success'
    lab.cli('cluster', 'engine', 'etcd', '--yes', timeout=600)
    assert os.path.isdir(os.path.join(lab.root('node1'), 'var', 'etcd', 'member'))
    check_folders('members of etcd')


@title('/attack/guest-user/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with tempfile.TemporaryDirectory(prefix='fettle-attack-', dir='/var/tmp') as folder:
        os.chmod(folder, 0o711)  # it is known where it is
        with e2e.new_lab(options=('--candidates', '3', '--replica-lost-ms', '1000', '--watcher-interval-ms', '500')) as lab:
            uuid = e2e.create(lab, 'web1')
            lab.cli('repair', 'policy', 'instance', 'web1', 'fix-storage')
            e2e.run(test_state, test_log, test_pipe, test_tree, test_adopted, test_adopted_forged, test_header, test_another,
                    test_full, test_sockets, test_folders, test_logs)
