#!/usr/bin/env python3
"""Volumes on directories, by real processes: their life, and what is left when a volume service dies, stands still, has a double, or
its directory fails.

What is on record and what is in the directory are compared after each: a volume that is available has its data, whole; nothing else is
there. Deaths are at the crash points of fettle-volumed (src/io/crash.h), one after the other until the operation has no more of them.
"""
import contextlib
import hashlib
import os
import re
import signal
import subprocess
import uuid

import bus
import e2e
from e2e import fettlelib, title, wait_until

GIB = 1 << 30
PATIENCE_S = 30
THIN = ('--overcommit', '100000')   # the disks of a lab are small, and volumes of tests blank
lab = None
folder = None   # the places of all back ends


def place(name):
    return os.path.join(folder, name)


def add_backend(name, *nodes):
    os.mkdir(place(name), 0o755)
    lab.cli('backend', 'add', name, '--kind', 'dir', '--nodes', ','.join(nodes), '--path', place(name), *THIN)
    for node in nodes:
        wait_until(f'{node}@{name} is up', lambda node=node: services().get(f'{node}@{name}') == 'up', PATIENCE_S)


def services():
    return {row['host']: row['state'] for row in lab.query('storage_service', ['host', 'state'])}


def volumes(backend=None):
    """{name: its fields} of those on a back end, or of all."""
    fields = ['name', 'uuid', 'status', 'why', 'size', 'backend', 'data', 'operation', 'worker', 'waits_since']
    return {one['name']: one for one in lab.query('volume', fields) if backend in (None, one['backend'])}


def ask(*words):
    """Of `fettle volume`, and goes on when what is queried knows of it."""
    row = lab.json('volume', *words, '--no-wait')['worker']
    wait_until('it is known', lambda: lab.call('QueryClusterInfo')['serial'] >= row)


def is_settled(name):
    """No row is left of it; it may be gone."""
    found = volumes().get(name)
    return found is None or found['operation'] is None


def settle(name):
    wait_until(f'the work on {name} has ended', lambda: is_settled(name), PATIENCE_S)
    return volumes().get(name)


def snapshots(backend=None):
    """The same of snapshots."""
    fields = ['name', 'uuid', 'status', 'why', 'size', 'backend', 'data', 'operation', 'worker', 'volume']
    return {one['name']: one for one in lab.query('snapshot', fields) if backend in (None, one['backend'])}


def files(backend, kinds=('volumes', 'snapshots')):
    """{name of data: its size} in the place of a back end."""
    paths = [os.path.join(place(backend), kind) for kind in kinds]
    return {name: os.stat(os.path.join(path, name)).st_size for path in paths if os.path.isdir(path) for name in os.listdir(path)}


def agree(backend):
    return all(files(backend, [kind]) == {one['data']: one['size'] * GIB for one in known(backend).values() if one['data']}
               for kind, known in (('volumes', volumes), ('snapshots', snapshots)))


def check(backend):
    """What is on record is there, and nothing else is."""
    wait_until(f'{backend} has what is on record', lambda: agree(backend), PATIENCE_S)
    wait_until(f'the trash of {backend} is off record', lambda: not lab.query('backend', ['trash'], ['=', 'name', backend])[0]['trash'], PATIENCE_S)


def digest(backend):
    """Of everything below its place: names, sizes, times, content. Data are sparse, and blank."""
    lines = []
    for at, _, names in os.walk(place(backend)):
        for name in sorted(names):
            path = os.path.join(at, name)
            about = os.stat(path)
            with open(path, 'rb') as file:
                lines.append((path, about.st_size, about.st_blocks, about.st_mtime_ns, about.st_ino, hashlib.sha256(file.read(65536)).hexdigest()))
    return sorted(lines)


@title('/volumes/back-ends-are-made-and-changed')
def test_backends():
    code, _, err = lab.run('volume', 'create', 'early', '--size', '1', check=False)
    assert code == 5 and 'there is no back end; add one: fettle backend add' in err, (code, err)
    os.mkdir(place('dir1'), 0o755)
    code, out, _ = lab.run('backend', 'add', 'dir1', '--nodes', 'node1,node2', '--path', place('dir1'), *THIN)
    assert (code, out) == (0, 'Back end dir1 is on record; the volume services of its nodes take it up.\n'), out
    for node in ('node1', 'node2'):
        wait_until(f'{node}@dir1 is up', lambda node=node: services().get(f'{node}@dir1') == 'up', PATIENCE_S)
    for words, message in (
            (('dir2', '--nodes', 'node9', '--path', '/mnt/b'), 'nodes: node "node9" does not exist'),
            (('dir2', '--nodes', 'node1', '--path', 'mnt/b'), 'path: "mnt/b" does not begin with /; it must be the same on every node'),
            (('dir2', '--nodes', 'node1', '--path', place('dir1') + '/'), f'path: {place("dir1")} is that of back end dir1 already'),
            (('dir1', '--nodes', 'node1', '--path', '/mnt/b'), 'back end "dir1" exists already')):
        code, _, err = lab.run('backend', 'add', *words, check=False)
        assert code != 0 and message in err, (words, err)
    code, _, err = lab.run('backend', 'modify', 'dir1', '--kind', 'dir', check=False)
    assert code == 2 and '--kind: unknown flag' in err, err
    said = lab.cli('backend', 'list')
    assert re.search(r'^dir1 +dir +node1,node2 +node1,node2 +0 +0\S* +\S+ +\S+$', said, re.M), said
    wait_until('the master has heard what it has', lambda: lab.query('backend', ['total'])[0]['total'], PATIENCE_S)
    row = lab.query('backend', ['free', 'total', 'promised'])[0]
    assert 0 < row['free'] <= row['total'] and row['promised'] == 0, row
    refused(f'path: {place("dir1")}/b is below {place("dir1")}, that of back end dir1; take a directory beside it',
            'backend', 'add', 'dir2', '--node', 'node1', '--path', place('dir1') + '/b')
    said = lab.cli('storage-service', 'list')
    assert re.search(r'^cinder-volume +node1@dir1 +up +\d{4}-', said, re.M), said
    # One that is not as it should be on a node: there is something in it, so it gets no marker.
    os.makedirs(os.path.join(place('odd'), 'of-somebody'))
    lab.cli('backend', 'add', 'odd', '--nodes', 'node2', '--path', place('odd'))
    line = f'node node2: does not serve back end odd: its volume service has not registered; see whether {place("odd")} is mounted there, and what '
    def named():
        return line in lab.run('cluster', 'verify', check=False)[1]
    wait_until('it is named', named, PATIENCE_S)
    lab.cli('backend', 'remove', 'odd')
    wait_until('it is named no more', lambda: not named(), PATIENCE_S)


@title('/volumes/life#CLN-01,CLN-02')
def test_life():
    assert lab.cli('volume', 'create', 'data1', '--size', '1', '--description', 'mail') == 'Volume data1 is available.\n'
    found = volumes()['data1']
    assert found['status'] == 'available' and found['data'].startswith(found['uuid'] + '.'), found
    check('dir1')
    assert lab.cli('volume', 'extend', 'data1', '--size', '2G') == 'Volume data1 has 2 GiB.\n'
    check('dir1')
    code, _, err = lab.run('volume', 'extend', 'data1', '--size', '1', check=False)
    assert code == 2 and 'extend: 1 GiB is not larger than 2 GiB' in err, err
    assert lab.cli('volume', 'rename', 'data1', 'mail') == 'Volume data1 is called mail.\n'
    said = lab.cli('volume', 'info', 'mail')
    assert re.search(r'^Volume mail\n  Status +available\n  Size +2 GiB\n  Back end +dir1, made by node[12]@dir1\n', said), said
    said = lab.cli('volume', 'list')
    assert re.search(rf'^mail +available +2 +dir1 +- +{found["uuid"]}$', said, re.M), said
    code, _, err = lab.run('backend', 'remove', 'dir1', check=False)
    assert code != 0 and 'back end dir1 has 1 volume; delete it first' in err, err
    code, _, err = lab.run('volume', 'info', 'mial', check=False)
    assert code == 3 and 'volume "mial" does not exist; did you mean "mail"?' in err, err
    assert lab.cli('volume', 'delete', 'mail') == 'Volume mail is deleted.\n'
    check('dir1')
    assert not volumes() and not files('dir1')
    check('dir1')


@title('/volumes/a-name-is-given-once')
def test_names():
    lab.cli('volume', 'create', 'data1', '--size', '1')
    uuid1 = volumes()['data1']['uuid']
    lab.cli('volume', 'create', 'data2', '--size', '1')
    taken = f'a volume data1 exists already: {uuid1}; choose another name'
    refused(taken, 'volume', 'create', 'data1', '--size', '1')
    refused(taken, 'volume', 'rename', 'data2', 'data1')
    lab.cli('snapshot', 'create', 'before', '--volume', 'data1')
    taken = f'a snapshot before exists already: {snapshots()["before"]["uuid"]}; choose another name'
    refused(taken, 'snapshot', 'create', 'before', '--volume', 'data2')
    # Who does not ask for that gets the same name; then all are told.
    uuid2 = str(uuid.uuid4())
    bus.ask(lab, 'node2', lab.master, 'volumed', 'accept_work',
            {'commit_id': uuid2, 'resource_type': 'Volume', 'operation': 'create-volume', 'name': 'data1', 'size': 1}, to='wconfd')
    wait_until('it is made', lambda: lab.query('volume', ['status'], ['=', 'uuid', uuid2]) == [{'status': 'available'}], PATIENCE_S)
    both = ', '.join(sorted((uuid1, uuid2)))
    refused(f'volume "data1" is the name of 2 volumes: {both}; use a UUID', 'volume', 'delete', 'data1')
    for words in (('volume', 'info'), ('why', 'volume')):
        refused('2 volumes are called "data1": ', *words, 'data1')
        refused(uuid2, *words, 'data1')
    for name in (uuid1, uuid2, 'data2'):
        lab.cli('volume', 'delete', name, '--cascade')
    check('dir1')


@title('/volumes/types')
def test_types():
    refused('volume_type "fast" does not exist', 'volume', 'create', 'x', '--size', '1', '--type', 'fast')
    refused('extra_specs: "dir1" is not KEY=VALUE', 'volume-type', 'create', 'fast', '--extra-specs', 'dir1')
    assert lab.cli('volume-type', 'create', 'fast', '--extra-specs', 'volume_backend_name=dir1') == 'Volume type fast is on record.\n'
    refused('volume type "fast" exists already', 'volume-type', 'create', 'fast')
    refused('volume_type "fsat" does not exist; did you mean "fast"?', 'volume', 'create', 'x', '--size', '1', '--type', 'fsat')
    assert lab.cli('volume', 'create', 'data1', '--size', '1', '--type', 'fast') == 'Volume data1 is available.\n'
    assert re.search(r'^  Type +fast$', lab.cli('volume', 'info', 'data1'), re.M)
    said = lab.cli('volume-type', 'list')
    assert re.search(r'^fast +.* volume_backend_name=dir1 +1$', said, re.M), said
    refused('cannot be deleted, volume data1 refers to it', 'volume-type', 'delete', 'fast')
    refused('its extra specs stay while a volume has it', 'volume-type', 'modify', 'fast', '--extra-specs', 'volume_backend_name=dir2')
    lab.cli('volume', 'delete', 'data1')
    assert lab.cli('volume-type', 'modify', 'fast', '--extra-specs', 'volume_backend_name=dir2') == 'Volume type fast is changed.\n'
    line = 'volume type fast: no back end is for it; see its extra specs: fettle volume-type list fast'
    assert line in lab.run('cluster', 'verify', check=False)[1]
    # What could be for it may come yet.
    code, _, err = lab.run('volume', 'create', 'x', '--size', '1', '--type', 'fast', check=False)
    assert code == 24 and 'volume x: error: no back end for 1 GiB: dir1 is not for type fast' in err, (code, err)
    refused('volume_type: fast is not for back end dir1, by its extra specs',
            'volume', 'create', 'y', '--size', '1', '--type', 'fast', '--backend', 'dir1')
    lab.cli('volume', 'delete', 'x')
    assert lab.cli('volume-type', 'delete', 'fast') == 'Volume type fast is deleted.\n'
    check('dir1')


@title('/volumes/default-type')
def test_default_type():
    lab.cli('volume-type', 'create', 'fast', '--description', 'on the fast disks')
    lab.cli('cluster', 'modify', '--default-volume-type', 'fast')
    lab.cli('volume', 'create', 'data1', '--size', '1')
    assert re.search(r'^  Type +fast$', lab.cli('volume', 'info', 'data1'), re.M)
    refused('volume type fast is the default one; choose another one before', 'volume-type', 'modify', 'fast', '--name', 'slow')
    said = lab.cli('volume-type', 'info', 'fast')
    assert re.search(r'^Volume type fast\n  Extra specs +none\n  For projects +all\n  Volumes +1\n  For +on the fast disks\n  UUID ', said), said
    said = lab.cli('volume', 'list', '-o', 'Name,gib,Type')
    assert re.search(r'^Name +GiB +Type\ndata1 +1 +fast$', said, re.M), said
    lab.cli('cluster', 'modify', '--default-volume-type', 'none')
    lab.cli('volume', 'delete', 'data1')
    lab.cli('volume-type', 'delete', 'fast')


@title('/volumes/no-room#CLN-25')
def test_no_room():
    """Of the back end that is named, or is the only one: at once, as soon as one of its services has said what it has."""
    lab.cli('volume', 'create', 'data1', '--size', '1')
    def told():
        code, _, err = lab.run('volume', 'create', 'big', '--size', '64T', check=False)
        if code != 6:   # accepted, and more than any file can have
            lab.cli('volume', 'delete', 'big')
        return code == 6 and 'back end dir1 holds ' in err
    wait_until('the master has heard what dir1 has', told, PATIENCE_S)
    for words in (('create', 'big', '--size', '64T'), ('create', 'big', '--size', '64T', '--backend', 'dir1'), ('extend', 'data1', '--size', '64T')):
        refused('back end dir1 holds ', 'volume', *words)
        refused(' GiB at most, not 65536 GiB: it has ', 'volume', *words)
        refused('--overcommit PERCENT', 'volume', *words)
    lab.cli('backend', 'modify', 'dir1', '--overcommit', '100')
    refused('back end dir1 holds ', 'snapshot', 'create', 'before', '--volume', 'data1')
    lab.cli('backend', 'modify', 'dir1', *THIN)
    assert list(volumes()) == ['data1'] and not snapshots()
    lab.cli('volume', 'delete', 'data1')
    check('dir1')


def data(kind, found):
    return os.path.join(place(found['backend']), kind, found['data'])


def write(path, text, *places):
    with open(path, 'r+b') as file:
        for at in places:
            file.seek(at)
            file.write(text)


def read(path, count, *places):
    with open(path, 'rb') as file:
        return [file.seek(at) * 0 or file.read(count) for at in places]


def refused(message, *words):
    code, _, err = lab.run(*words, check=False)
    assert code != 0 and message in err, (words, code, err)


@title('/volumes/snapshots-and-what-is-made-of-them#CLN-60,SAF-120')
def test_snapshots():
    places = (0, 5 << 20, (1 << 30) - 4)
    lab.cli('volume', 'create', 'data1', '--size', '1')
    source = data('volumes', volumes()['data1'])
    write(source, b'good', *places)
    assert lab.cli('snapshot', 'create', 'before', '--volume', 'data1', '--description', 'of monday') == 'Snapshot before is available.\n'
    found = snapshots()['before']
    assert (found['volume'], found['size'], found['backend']) == ('data1', 1, 'dir1'), found
    copy = data('snapshots', found)
    assert read(copy, 4, *places) == [b'good'] * 3 and os.stat(copy).st_blocks < 2048, os.stat(copy)
    write(source, b'evil', *places)
    assert read(copy, 4, *places) == [b'good'] * 3
    assert lab.cli('volume', 'create', 'data2', '--snapshot', 'before', '--size', '2') == 'Volume data2 is available.\n'
    assert read(data('volumes', volumes()['data2']), 4, *places) == [b'good'] * 3
    check('dir1')
    said = lab.cli('snapshot', 'list')
    assert re.search(rf'^before +available +1 +dir1 +data1 +{found["uuid"]}$', said, re.M), said
    said = lab.cli('snapshot', 'info', 'before')
    assert re.search(r'^Snapshot before\n  Status +available\n  Of volume +data1\n  Size +1 GiB\n', said), said
    assert lab.cli('snapshot', 'rename', 'before', 'first') == 'Snapshot before is called first.\n'
    refused('volume data1 has snapshots: first; delete them before it, or with it (--cascade)', 'volume', 'delete', 'data1')
    refused('snapshot "frist" does not exist; did you mean "first"?', 'snapshot', 'delete', 'frist')
    refused('--size: must be at least 1 (GiB)', 'volume', 'create', 'x', '--snapshot', 'first', '--size', '0')
    refused('--volume is missing', 'snapshot', 'create', 'x')
    refused('back end dir1 has 2 volumes; delete them first', 'backend', 'remove', 'dir1')
    lab.cli('snapshot', 'reset-state', 'first', '--status', 'error')
    refused('snapshot first is error; create-volume needs available', 'volume', 'create', 'x', '--snapshot', 'first')
    assert lab.cli('volume', 'delete', 'data1', '--cascade') == 'Volume data1 is deleted.\n'
    assert not snapshots()
    lab.cli('volume', 'delete', 'data2')
    check('dir1')


@title('/volumes/killed-in-mid-copy#CLN-61')
def test_killed_copy():
    with disk('dir3'):
        lab.cli('volume', 'create', 'v', '--size', '1', '--backend', 'dir3')
        with fettlelib.standing_still(place('dir3')):
            lab.json('snapshot', 'create', 's', '--volume', 'v', '--no-wait')
            wait_until('node1 has taken it', lambda: snapshots().get('s', {}).get('worker') == 'node1@dir3', PATIENCE_S)
            refused('volume v is being read by snapshot s; wait, or reset that', 'volume', 'delete', 'v', '--cascade')
            lab.lab('kill', 'volumed@node1')
        wait_until('it is cleaned', lambda: snapshots()['s']['operation'] is None, PATIENCE_S)
        found = snapshots()['s']
        assert (found['status'], found['data']) == ('error', None), found
        lab.lab('kill', 'volumed@node1')
        check('dir3')
        assert lab.cli('snapshot', 'delete', 's') == 'Snapshot s is deleted.\n'
        lab.cli('volume', 'delete', 'v')


@title('/volumes/moves#SAF-53')
def test_moves():
    at = (0, 5 << 20, (1 << 30) - 4)
    lab.cli('volume', 'create', 'data1', '--size', '1', '--backend', 'dir1')
    write(data('volumes', volumes()['data1']), b'good', *at)
    refused('volume data1 is on dir1 already', 'volume', 'migrate', 'data1', '--backend', 'dir1')
    assert lab.cli('volume', 'migrate', 'data1') == 'Volume data1 is on dir2.\n'
    found = volumes()['data1']
    assert found['backend'] == 'dir2' and read(data('volumes', found), 4, *at) == [b'good'] * 3, found
    assert os.stat(data('volumes', found)).st_blocks < 2048
    check('dir1')
    check('dir2')
    for name in ('dir1', 'dir2'):
        lab.cli('volume-type', 'create', f'on-{name}', '--extra-specs', f'volume_backend_name={name}')
    lab.cli('volume-type', 'create', 'any')
    refused('volume data1 is on dir2, which type on-dir1 is not for, by its extra specs; let it be moved for that (--migrate)',
            'volume', 'retype', 'data1', '--type', 'on-dir1')
    assert lab.cli('volume', 'retype', 'data1', '--type', 'on-dir1', '--migrate') == 'Volume data1 has type on-dir1, and is on dir1.\n'
    refused('is not for back end dir2, by its extra specs; give it another type', 'volume', 'migrate', 'data1', '--backend', 'dir2')
    refused('volume data1 can be moved nowhere: besides dir1 no back end is for type on-dir1', 'volume', 'migrate', 'data1')
    assert lab.cli('volume', 'retype', 'data1', '--type', 'any') == 'Volume data1 has type any, and is on dir1.\n'
    assert read(data('volumes', volumes()['data1']), 4, *at) == [b'good'] * 3
    lab.cli('snapshot', 'create', 'before', '--volume', 'data1')
    refused('volume data1 has snapshots: before; they stay on dir1', 'volume', 'migrate', 'data1')
    lab.cli('volume', 'delete', 'data1', '--cascade')
    for name in ('on-dir1', 'on-dir2', 'any'):
        lab.cli('volume-type', 'delete', name)
    check('dir1')
    check('dir2')


@title('/volumes/killed-in-mid-move#CLN-62')
def test_killed_move():
    with disk('dir3'):
        lab.cli('volume', 'create', 'v', '--size', '1', '--backend', 'dir2')
        write(data('volumes', volumes()['v']), b'good', 0, 7 << 20)
        before = digest('dir2')
        with fettlelib.standing_still(place('dir3')):
            ask('migrate', 'v', '--backend', 'dir3')
            wait_until('node1 has taken it', lambda: volumes()['v']['worker'] == 'node1@dir3', PATIENCE_S)
            said = lab.cli('volume', 'info', 'v')
            assert re.search(r'^  Status +migrating\n  Work +migrate-volume, by node1@dir3$', said, re.M), said
            refused('volume v: it is being migrated; wait, or reset its state', 'volume', 'delete', 'v')
            lab.lab('kill', 'volumed@node1')
        found = settle('v')
        assert (found['status'], found['backend']) == ('available', 'dir2') and found['data'], found
        assert digest('dir2') == before
        said = lab.cli('volume', 'info', 'v')
        assert re.search(r'^  Last work +failed: the service that worked on it has ended$', said, re.M), said
        lab.lab('kill', 'volumed@node1')
        check('dir3')
        assert lab.cli('volume', 'migrate', 'v', '--backend', 'dir3') == 'Volume v is on dir3.\n'
        assert read(data('volumes', volumes()['v']), 4, 0, 7 << 20) == [b'good'] * 2
        check('dir2')
        lab.cli('volume', 'delete', 'v')
        check('dir3')


@title('/volumes/another-node-names-the-master')
def test_elsewhere():
    done = fettlelib.run_command([lab.fettle, '--root', lab.root('node2'), 'volume', 'create', 'x', '--size', '1'])
    assert done.returncode != 0 and 'node1' in done.stderr, (done.returncode, done.stderr)


@title('/volumes/a-row-waits-for-a-member')
def test_waits():
    lab.lab('pause', 'volumed@node1')
    lab.lab('pause', 'volumed@node2')
    ask('create', 'late', '--size', '1')
    said = lab.cli('volume', 'list')
    assert re.search(r'^late: waits for a member of dir1 since \d{4}-', said, re.M), said
    said = lab.cli('worker', 'list')
    assert re.search(r'^\d+ +late +create-volume +dir1 +- ', said, re.M), said
    # What waits says so, also through a pipe, and can be withdrawn.
    ask('create', 'never', '--size', '1')
    follower = subprocess.Popen([lab.fettle, '--root', lab.root(lab.master), 'volume', 'create', 'told', '--size', '1'],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = follower.stderr.readline()
    assert re.match(r'volume told waits(: no volume service of dir1 is up| for a member of dir1) \(fettle .*\); Ctrl-C leaves it waiting$',
                    line), line
    follower.send_signal(signal.SIGINT)
    out, err = follower.communicate(timeout=PATIENCE_S)
    assert 'withdraw it with: fettle volume delete told' in err and not out, (out, err)
    for name in ('never', 'told'):
        assert lab.cli('volume', 'delete', name) == f'Volume {name} is deleted.\n'
    lab.lab('resume', 'volumed@node1')
    lab.lab('resume', 'volumed@node2')
    assert settle('late')['status'] == 'available'
    lab.cli('volume', 'delete', 'late')
    check('dir1')


def armed(node, at, name):
    """volumed of a node, started anew, dies at its crash point number `at` from the returned moment on."""
    since, once = (os.path.join(folder, f'{word}-{name}') for word in ('since', 'once'))
    lab.lab('restart', f'volumed@{node}', f'FETTLE_CRASH_AT={at}', f'FETTLE_CRASH_SINCE={since}', f'FETTLE_CRASH_ONCE={once}')
    wait_until(f'volumed of {node} has its back end', lambda: ready(node) and services()[f'{node}@dir2'] == 'up', PATIENCE_S)
    with open(since, 'w', encoding='utf-8'):
        pass
    return once


def ready(node):
    return any(daemon['ready'] for one in lab.status()['nodes'] if one['name'] == node for daemon in one['daemons'] if daemon['name'] == 'volumed')


def walk(operation, prepare, act, ends):
    """Kills volumed at each crash point of an operation on a volume `v` (in the short form every other), until none is left. `ends`: what may
    be said of it then."""
    for at in range(1, 40, 1 if e2e.LONG else 2):
        prepare()
        once = armed('node1', at, f'{operation}-{at}')
        act()
        found = settle('v')
        status = found and found['status']
        died = os.path.exists(once)
        assert status in ends, (operation, at, died, found)
        check('dir2')
        if found:
            lab.cli('volume', 'delete', 'v')
        if not died:
            assert at > 1, f'{operation} has no crash point'
            print(f'# {operation}: {at - 1} crash points')
            return
    raise AssertionError(f'{operation} has too many crash points')


@title('/volumes/back-end-of-one-node')
def test_second():
    add_backend('dir2', 'node1')


@title('/volumes/killed-in-mid-create#CLN-26')
def test_killed_create():
    walk('create', lambda: None, lambda: ask('create', 'v', '--size', '1', '--backend', 'dir2'),
         ('available', 'error'))


@title('/volumes/killed-in-mid-extend#CLN-26')
def test_killed_extend():
    walk('extend', lambda: lab.cli('volume', 'create', 'v', '--size', '1', '--backend', 'dir2'),
         lambda: ask('extend', 'v', '--size', '3'), ('available', 'error_extending'))


@title('/volumes/killed-in-mid-delete#CLN-26')
def test_killed_delete():
    walk('delete', lambda: lab.cli('volume', 'create', 'v', '--size', '1', '--backend', 'dir2'),
         lambda: ask('delete', 'v'), (None,))


# --- one that goes on after it was stopped, and one that has a double ---

@contextlib.contextmanager
def disk(name, *options):
    """A back end on a disk of its own."""
    with fettlelib.disk_of_its_own(place(name), 64, *options):
        lab.cli('backend', 'add', name, '--nodes', 'node1', '--path', place(name), *THIN)
        wait_until(f'node1@{name} is up', lambda: services().get(f'node1@{name}') == 'up', PATIENCE_S)
        yield
        lab.cli('backend', 'remove', name)


@title('/volumes/stopped-in-mid-create-and-continued#CLN-23')
def test_stopped():
    with disk('dir3'):
        with fettlelib.standing_still(place('dir3')):
            ask('create', 'slow', '--size', '1', '--backend', 'dir3')
            wait_until('node1 has taken it', lambda: volumes()['slow']['worker'] == 'node1@dir3', PATIENCE_S)
            lab.lab('pause', 'volumed@node1')
        # Its child has made the data meanwhile; a person has judged.
        wait_until('the data are there', lambda: files('dir3'), PATIENCE_S)
        lab.cli('volume', 'reset-state', 'slow', '--status', 'error')
        before = digest('dir3')
        lab.lab('resume', 'volumed@node1')
        # It goes on, is refused, and serves others.
        assert lab.cli('volume', 'create', 'next', '--size', '1', '--backend', 'dir3') == 'Volume next is available.\n'
        assert set(before) <= set(digest('dir3')), (before, digest('dir3'))
        found = volumes()['slow']
        assert (found['status'], found['data'], found['operation']) == ('error', None, None), found
        lab.cli('volume', 'delete', 'slow')
        lab.cli('volume', 'delete', 'next')
        # What no record names goes with the next sweep.
        lab.lab('kill', 'volumed@node1')
        check('dir3')


@title('/volumes/one-name-on-two-nodes-is-refused#CLN-27')
def test_double():
    backend = lab.query('backend', ['uuid'], ['=', 'name', 'dir1'])[0]['uuid']
    before = lab.query('storage_service', ['host', 'node', 'generation'])
    answer = bus.ask(lab, 'node2', lab.master, 'volumed', 'register_storage',
                     {'commit_id': str(uuid.uuid4()), 'binary': 'cinder-volume', 'host': 'node1', 'backend': backend, 'wire': 1, 'version': '1'},
                     to='wconfd')
    assert answer['error']['code'] == 'superseded', answer
    print('#', answer['error']['message'])
    assert lab.query('storage_service', ['host', 'node', 'generation']) == before


# --- a place that fails ---

@title('/volumes/not-mounted-read-only-full')
def test_places():
    with disk('dir3', '-b', '4096', '-N', '16'):
        lab.cli('volume', 'create', 'whole', '--size', '1', '--backend', 'dir3')
        kept = digest('dir3')
        for how, back, why in (
                (['mount', '-o', 'remount,ro', place('dir3')], ['mount', '-o', 'remount,rw', place('dir3')], 'Read-only file system'),
                (['mount', '-t', 'tmpfs', 'none', place('dir3')], ['umount', place('dir3')], 'is it mounted?')):
            subprocess.run(how, check=True)
            code, _, err = lab.run('volume', 'create', 'v', '--size', '1', '--backend', 'dir3', check=False)
            assert code == 24 and 'volume v: error: ' in err and why in err, (code, err)
            print('#', err.strip())
            subprocess.run(back, check=True)
            lab.cli('volume', 'delete', 'v')
            assert digest('dir3') == kept
            assert lab.cli('volume', 'create', 'v', '--size', '1', '--backend', 'dir3') == 'Volume v is available.\n'
            lab.cli('volume', 'delete', 'v')
            check('dir3')
        # Until no file can be made any more.
        made = []
        for number in range(20):
            code, _, err = lab.run('volume', 'create', f'v{number}', '--size', '1', '--backend', 'dir3', check=False)
            made.append(f'v{number}')
            if code != 0:
                break
        assert code == 24 and 'No space left on device' in err, (code, err)
        print('#', err.strip())
        check('dir3')
        for name in made:
            lab.cli('volume', 'delete', name)
        assert lab.cli('volume', 'create', 'v', '--size', '1', '--backend', 'dir3') == 'Volume v is available.\n'
        lab.cli('volume', 'delete', 'v')
        lab.cli('volume', 'delete', 'whole')
        check('dir3')


@title('/volumes/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500')) as lab:
        folder = os.path.join(lab.directory, 'shared')
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', '4')
        e2e.run(test_backends, test_life, test_names, test_types, test_default_type, test_no_room, test_snapshots, test_elsewhere, test_waits,
                test_second, test_killed_create, test_killed_extend, test_killed_delete, test_stopped, test_killed_copy, test_moves,
                test_killed_move, test_double, test_places, test_logs)
