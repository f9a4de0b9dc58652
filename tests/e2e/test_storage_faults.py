#!/usr/bin/env python3
"""A directory of volumes that fails, by real processes: full, read only, hung, not mounted on one node, another cluster's. What is asked
meanwhile has a clear end or waits, other back ends go on, and afterwards record and directory are equal again.

The directory is in the shared folder of the lab, which `fettle lab shared` breaks. Its path is the same on each node, and each node has
a mount of its own there: the working folder of a lab's daemon is its node's root.
"""
import contextlib
import glob
import os
import re
import shutil
import subprocess

import e2e
from e2e import fettlelib, title, wait_until

GIB = 1 << 30
PATIENCE_S = 30
THIN = ('--overcommit', '100000')   # the disks of a lab are small, and volumes of tests blank
CALLS = 4   # LIMIT_BACKEND_CHILDREN
lab = None


def path_of(name, below='shared'):
    return f'/proc/self/cwd/var/{below}/{name}'


def place(name):
    return os.path.join(lab.directory, 'shared', name)


def services():
    return {row['host']: row['state'] for row in lab.query('storage_service', ['host', 'state'])}


def await_up(*hosts):
    wait_until(f'{", ".join(hosts)} serve', lambda: all(services().get(host) == 'up' for host in hosts), PATIENCE_S)


def known(kind):
    return {one['name']: one for one in lab.query(kind, ['name', 'uuid', 'status', 'size', 'backend', 'data', 'operation', 'why'])}


def settled():
    return all(one['operation'] is None for kind in ('volume', 'snapshot') for one in known(kind).values())


def there(name):
    """{folder/name of data: its size} in a place."""
    paths = glob.glob(os.path.join(place(name), '*', '*'))
    return {os.path.relpath(path, place(name)): os.stat(path).st_size for path in paths}


def whole():
    """No work is left, the record is what is there, and nothing is left over."""
    def equal():
        recorded = {f'{kind}s/{one["data"]}': one['size'] * GIB for kind in ('volume', 'snapshot') for one in known(kind).values()
                    if one['backend'] == 'dir1' and one['data']}
        return recorded == there('dir1') and lab.query('backend', ['trash'], ['=', 'name', 'dir1'])[0]['trash'] == []
    wait_until('all work has ended', settled, PATIENCE_S)
    wait_until('dir1 has what is on record', equal, PATIENCE_S)
    with open(os.path.join(place('dir1'), 'volumes', known('volume')['kept']['data']), 'rb') as file:
        assert file.read(len(CONTENT)) == CONTENT


@contextlib.contextmanager
def broken(how):
    lab.lab('shared', how)
    try:
        yield
    finally:
        lab.lab('shared', 'ok')


def with_room(*words):
    """Code and error of a command, once no member says any more that there is no room: each measures now and then, and the last word counts."""
    said = []
    def asked():
        said[:] = lab.run(*words, check=False)
        return said[0] != 6
    wait_until('there is room', asked, PATIENCE_S)
    return said[0], said[2]


def works_again():
    """As soon as its members have told of its room again."""
    def made():
        return lab.run('volume', 'create', 'again', '--size', '1', '--backend', 'dir1', check=False)[0] == 0
    wait_until('a volume is made', made, PATIENCE_S)
    lab.cli('volume', 'delete', 'again')
    whole()


CONTENT = b'what nothing of this may harm\n' * 1000


@title('/storage-faults/back-ends')
def test_begin():
    os.mkdir(place('dir1'), 0o755)
    lab.cli('backend', 'add', 'dir1', '--nodes', 'node1,node2', '--path', path_of('dir1'), *THIN)
    os.mkdir(os.path.join(lab.root('node1'), 'var', 'other'), 0o755)
    lab.cli('backend', 'add', 'other', '--nodes', 'node1', '--path', path_of('', 'other'), *THIN)
    await_up('node1@dir1', 'node2@dir1', 'node1@other')
    lab.cli('volume', 'create', 'kept', '--size', '1', '--backend', 'dir1')
    with open(os.path.join(place('dir1'), 'volumes', known('volume')['kept']['data']), 'r+b') as file:
        file.write(CONTENT)
    whole()


def tried(*names):
    """What `backend verify` says, and whether all is well; it leaves nothing there."""
    before = {path: sorted(os.listdir(path)) for path in (place('dir1'), os.path.join(place('dir1'), 'volumes'))}
    code, out, err = lab.run('backend', 'verify', *names, check=False)
    assert not err and {path: sorted(os.listdir(path)) for path in before} == before, (err, out)
    print(*(f'# {line}' for line in out.splitlines()), sep='\n')
    return code, out


@title('/storage-faults/verify')
def test_verify():
    code, out = tried()
    assert code == 0 and out.endswith('The back ends are as they should be.\n'), (code, out)
    assert re.search(r'^note: back end dir1: \d+ of \d+ MiB are free$', out, re.M), out
    # node2 has another directory there, with the same marker.
    here = os.path.join(lab.root('node2'), 'var', 'shared')
    away = os.path.join(lab.root('node2'), 'var', 'away')
    os.makedirs(os.path.join(away, 'dir1'), 0o755)
    shutil.copy(os.path.join(place('dir1'), 'fettle-backend'), os.path.join(away, 'dir1'))
    subprocess.run(['mount', '--bind', away, here], check=True)
    code, out = tried('dir1')
    subprocess.run(['umount', here], check=True)
    assert os.listdir(os.path.join(away, 'dir1')) == ['fettle-backend']
    shutil.rmtree(away)
    line = f'back end dir1: node node2: does not see what node node1 has just made there; {path_of("dir1")} is another directory on it: '
    assert code == 1 and line in out and out.endswith('1 thing is not as it should be.\n'), (code, out)
    code, _, err = lab.run('backend', 'verify', 'dir2', check=False)
    assert code == 3 and 'backend "dir2" does not exist' in err, (code, err)


@title('/storage-faults/full')
def test_full():
    with broken('full'):
        code, out = tried('dir1')
        assert code == 1 and out.count('No space left on device') == 2, (code, out)
        code, _, err = lab.run('snapshot', 'create', 'before', '--volume', 'kept', check=False)
        # Refused, if its members have told of it already.
        assert (code == 24 and 'No space left on device' in err) or (code == 6 and 'dir1' in err), (code, err)
        print('#', err.strip())
        if 'before' in known('snapshot'):
            lab.cli('snapshot', 'delete', 'before')
    works_again()


@title('/storage-faults/read-only')
def test_read_only():
    assert with_room('volume', 'create', 'late', '--size', '1', '--backend', 'dir1')[0] == 0
    with broken('read-only'):
        code, out = tried('dir1')
        assert code == 1 and out.count('Read-only file system') == 2, (code, out)
        for words in (('create', 'v', '--size', '1', '--backend', 'dir1'), ('delete', 'late')):
            code, err = with_room('volume', *words)
            assert code == 24 and 'Read-only file system' in err, (words, code, err)
            print('#', err.strip())
    for name in ('v', 'late'):
        lab.cli('volume', 'delete', name)
    works_again()


def calls(word, node):
    """Children of the node's volume service at a place that has this word in it."""
    found = []
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        with contextlib.suppress(OSError):
            with open(path, 'rb') as file:
                words = file.read().split(b'\0')
            if b'--at-directory' in words and word.encode() in b' '.join(words) and os.readlink(path[:-7] + 'cwd') == lab.root(node):
                found.append(path)
    return found


@title('/storage-faults/hung')
def test_hung():
    names = [f'v{number}' for number in range(3 * CALLS)]
    with broken('hang'):
        for name in names:
            assert with_room('volume', 'create', name, '--size', '1', '--backend', 'dir1', '--no-wait')[0] == 0
        wait_until('calls hang', lambda: all(len(calls('dir1', node)) >= CALLS - 1 for node in ('node1', 'node2')), PATIENCE_S)
        # One that not even SIGKILL ends counts on, and there are no more of them than before.
        lab.lab('kill', 'volumed@node2')
        assert lab.cli('volume', 'create', 'w', '--size', '1', '--backend', 'other') == 'Volume w is available.\n'
        lab.cli('volume', 'extend', 'w', '--size', '2')
        lab.cli('volume', 'delete', 'w')
        assert len(calls('dir1', 'node1')) <= CALLS, calls('dir1', 'node1')
        assert known('volume')['kept']['status'] == 'available'
        assert not any(known('volume')[name]['data'] for name in names), known('volume')
    wait_until('all work has ended', settled, PATIENCE_S)
    statuses = {name: known('volume')[name]['status'] for name in names}
    # What the killed one had in hand has ended with it.
    assert set(statuses.values()) <= {'available', 'error'} and list(statuses.values()).count('error') < CALLS, statuses
    for name in names:
        lab.cli('volume', 'delete', name)
    # What the kernel still did for calls that were dead by then no record names: the next sweep's.
    lab.lab('kill', 'volumed@node1')
    works_again()


@title('/storage-faults/not-mounted-on-one-node')
def test_not_mounted():
    here = os.path.join(lab.root('node2'), 'var', 'shared')
    subprocess.run(['umount', '-l', here], check=True)
    try:
        lab.lab('kill', 'volumed@node2')
        line = re.compile(r'^node node2: does not serve back end dir1: (.*)$', re.M)
        def named():
            return line.search(lab.run('cluster', 'verify', check=False)[1])
        print('#', wait_until('it is named', named, PATIENCE_S).group(0))
        code, out = tried('dir1')
        assert code == 1 and f'back end dir1: node node2: {path_of("dir1")} cannot be opened: No such file or directory' in out, (code, out)
        for number in range(3):
            assert with_room('volume', 'create', f'v{number}', '--size', '1', '--backend', 'dir1')[0] == 0
        assert {one['worker'] for one in lab.query('volume', ['worker', 'name']) if one['name'] != 'kept'} == {None}
        assert os.listdir(here) == [], 'something was made below a mount point'
    finally:
        subprocess.run(['mount', '--bind', os.path.join(lab.directory, 'shared'), here], check=True)
    await_up('node2@dir1')
    wait_until('it is named no more', lambda: not named(), PATIENCE_S)
    for number in range(3):
        lab.cli('volume', 'delete', f'v{number}')
    works_again()


@title('/storage-faults/of-another-cluster#SAF-123')
def test_marker():
    path = os.path.join(place('dir1'), 'fettle-backend')
    with open(path, encoding='utf-8') as file:
        own = file.read()
    uuid = own.split()[1]
    with open(path, 'w', encoding='utf-8') as file:
        file.write(re.sub(r'cluster \S+ \S+', 'cluster 00000000-0000-4000-8000-000000000001 other', own))
    before = there('dir1')
    said = f'dir1: {path_of("dir1")} belongs to back end {uuid} of cluster other'
    code, out = tried('dir1')
    assert code == 1 and out.count(said.removeprefix('dir1: ')) == 2, (code, out)
    code, err = with_room('volume', 'create', 'v', '--size', '1', '--backend', 'dir1')
    assert code == 24 and said in err, (code, err)
    code, _, err = lab.run('volume', 'delete', 'kept', check=False)
    assert code == 24 and said in err, (code, err)
    assert there('dir1') == before
    with open(path, 'w', encoding='utf-8') as file:
        file.write(own)
    lab.cli('volume', 'delete', 'v')
    lab.cli('volume', 'delete', 'kept')
    wait_until('nothing is left', lambda: not there('dir1'), PATIENCE_S)


@title('/storage-faults/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500')) as lab:
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', '4')
        e2e.run(test_begin, test_verify, test_full, test_read_only, test_hung, test_not_mounted, test_marker, test_logs)
