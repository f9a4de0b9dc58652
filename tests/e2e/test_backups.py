#!/usr/bin/env python3
"""Backups of volumes, by real processes: what a volume had comes back byte by byte, into itself and into a new one; and who dies in mid-work leaves
nothing behind, and has changed nothing."""
import hashlib
import os
import re

import e2e
import test_volumes as v
from e2e import fettlelib, title, wait_until

lab = None
PLACES = (0, 5 << 20, (1 << 30) - 4)


def backups():
    fields = ['name', 'uuid', 'status', 'why', 'size', 'backend', 'data', 'bytes', 'sum', 'operation', 'worker', 'volume']
    return {one['name']: one for one in lab.query('backup', fields)}


def path_of(found):
    return os.path.join(v.place(found['backend']), 'backups', found['data'])


def content(volume):
    """Of a whole volume: {where: what is there} for each piece that is not blank."""
    found, at = {}, 0
    with open(v.data('volumes', v.volumes()[volume]), 'rb') as file:
        size = os.fstat(file.fileno()).st_size
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA) & ~0xffff
            except OSError:
                break
            piece = os.pread(file.fileno(), 65536, at)
            if any(piece):
                found[at] = piece
            at += 65536
    return size, found


def check(backend):
    """What is on record is there, and nothing else is."""
    def agree():
        named = {one['data'] for one in [*v.volumes(backend).values(), *v.snapshots(backend).values()]}
        named |= {one['data'] for one in backups().values() if one['backend'] == backend}
        return set(v.files(backend, ('volumes', 'snapshots', 'backups'))) == named - {None}
    wait_until(f'{backend} has what is on record', agree, v.PATIENCE_S)


@title('/backups/who-may-hold-them')
def test_holders():
    v.add_backend('dir1', 'node1', 'node2')
    assert lab.cli('volume', 'create', 'data1', '--size', '1') == 'Volume data1 is available.\n'
    v.refused('no back end may hold backups; allow one: fettle backend modify dir1 --backups yes', 'backup', 'create', 'data1', '--name', 'b1')
    v.refused('backups: must be yes or no, not "maybe"', 'backend', 'modify', 'dir1', '--backups', 'maybe')
    lab.cli('backend', 'modify', 'dir1', '--backups', 'yes')
    assert lab.query('backend', ['backups'])[0]['backups'] is True


@title('/backups/life')
def test_life():
    source = v.data('volumes', v.volumes()['data1'])
    v.write(source, b'good', *PLACES)
    with open(source, 'r+b') as file:
        file.seek(64 << 20)
        file.write(os.urandom(3 << 20))
    was = content('data1')
    assert lab.cli('backup', 'create', 'data1', '--name', 'b1', '--description', 'of monday') == 'Backup b1 is available.\n'
    found = backups()['b1']
    with open(path_of(found), 'rb') as file:
        whole = file.read()
    assert (found['volume'], found['size'], found['bytes'], found['sum']) == ('data1', 1, len(whole), hashlib.sha512(whole).hexdigest()), found
    assert len(whole) < 8 << 20, len(whole)
    assert v.volumes()['data1']['status'] == 'available'
    v.write(source, b'evil', *PLACES)
    v.refused('--name is missing', 'backup', 'create', 'data1')
    v.refused('into what: --new NAME of a new volume, or --volume VOLUME', 'backup', 'restore', 'b1')
    assert lab.cli('backup', 'restore', 'b1', '--new', 'data2', '--size', '2') == 'Backup b1 is restored into volume data2.\n'
    assert v.read(v.data('volumes', v.volumes()['data2']), 4, *PLACES) == [b'good'] * 3
    assert v.volumes()['data2']['size'] == 2
    assert v.read(source, 4, *PLACES) == [b'evil'] * 3
    assert lab.cli('backup', 'restore', 'b1', '--volume', 'data1') == 'Backup b1 is restored into volume data1.\n'
    assert content('data1') == was
    check('dir1')
    assert not os.path.exists(source)
    said = lab.cli('backup', 'list')
    assert re.search(rf'^b1 +available +1 +dir1 +data1 +{found["uuid"]}$', said, re.M), said
    said = lab.cli('backup', 'info', 'b1')
    assert re.search(rf'^Backup b1\n  Status +available\n  Of volume +data1\n(.*\n)*  SHA-512 +{found["sum"]}\n', said), said
    v.refused('backup "b2" does not exist', 'backup', 'delete', 'b2')
    said = lab.run('cluster', 'verify', check=False)[1]
    assert found['data'] not in said and 'backup b1' not in said, said
    said = lab.cli('why', 'backup', 'b1')
    assert 'Now: backup b1 is available, of volume data1.\n' in said, said
    said = lab.cli('recovery', 'collect', 'backup', 'b1')
    assert re.search(rf'^Backup b1\n(.*\n)*.*{found["data"]}: 3 MiB, whole$', said, re.M), said


@title('/backups/of-a-snapshot-and-without-their-volume')
def test_outlives():
    v.write(v.data('volumes', v.volumes()['data1']), b'then', *PLACES)
    lab.cli('snapshot', 'create', 's', '--volume', 'data1')
    v.write(v.data('volumes', v.volumes()['data1']), b'late', *PLACES)
    assert lab.cli('backup', 'create', 'data1', '--name', 'of-s', '--snapshot', 's') == 'Backup of-s is available.\n'
    lab.cli('volume', 'delete', 'data1', '--cascade')
    assert lab.cli('backup', 'restore', 'of-s', '--new', 'data1') == 'Backup of-s is restored into volume data1.\n'
    assert v.read(v.data('volumes', v.volumes()['data1']), 4, *PLACES) == [b'then'] * 3
    assert lab.cli('backup', 'delete', 'of-s') == 'Backup of-s is deleted.\n'
    check('dir1')


@title('/backups/damaged')
def test_damaged():
    was = v.volumes()['data1']['data']
    with open(path_of(backups()['b1']), 'r+b') as file:
        file.seek(1 << 20)
        file.write(b'x')
    code, _, err = lab.run('backup', 'restore', 'b1', '--volume', 'data1', check=False)
    assert code == 24 and 'backup b1 could not be restored: dir1: backup ' in err and 'is not what was written' in err, (code, err)
    found = v.volumes()['data1']
    assert (found['status'], found['data']) == ('available', was), found
    lab.cli('backup', 'delete', 'b1')
    check('dir1')


def frozen(words, taken):
    """Asks for work at a place whose writes hang, and kills who has taken it."""
    with fettlelib.standing_still(v.place('dir3')):
        lab.json('backup', *words, '--no-wait')
        wait_until('node1 has taken it', lambda: backups().get(taken, {}).get('worker') == 'node1@dir3', v.PATIENCE_S)
        lab.lab('kill', 'volumed@node1')
    wait_until('it is cleaned', lambda: backups()[taken]['operation'] is None, v.PATIENCE_S)


@title('/backups/killed-in-mid-work#CLN-62')
def test_killed():
    with v.disk('dir3'):
        lab.cli('backend', 'modify', 'dir3', '--backups', 'yes')
        lab.cli('volume', 'create', 'data3', '--size', '1', '--backend', 'dir3')
        v.write(v.data('volumes', v.volumes()['data3']), b'good', *PLACES)
        was = v.volumes()['data3']['data']
        frozen(('create', 'data3', '--name', 'b3'), 'b3')
        assert (backups()['b3']['status'], backups()['b3']['data']) == ('error', None), backups()
        assert (v.volumes()['data3']['status'], v.volumes()['data3']['data']) == ('available', was)
        lab.cli('backup', 'delete', 'b3')
        check('dir3')
        lab.cli('backup', 'create', 'data3', '--name', 'b3')
        frozen(('restore', 'b3', '--volume', 'data3'), 'b3')
        assert backups()['b3']['status'] == 'available' and 'has ended' in backups()['b3']['why'], backups()
        assert (v.volumes()['data3']['status'], v.volumes()['data3']['data']) == ('available', was)
        assert v.read(v.data('volumes', v.volumes()['data3']), 4, *PLACES) == [b'good'] * 3
        check('dir3')
        assert lab.cli('backup', 'restore', 'b3', '--volume', 'data3') == 'Backup b3 is restored into volume data3.\n'
        assert v.read(v.data('volumes', v.volumes()['data3']), 4, *PLACES) == [b'good'] * 3
        check('dir3')
        lab.cli('backup', 'delete', 'b3')
        lab.cli('volume', 'delete', 'data3')
        check('dir3')


@title('/backups/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500')) as lab:
        v.lab, v.folder = lab, os.path.join(lab.directory, 'shared')
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', '4')
        e2e.run(test_holders, test_life, test_outlives, test_damaged, test_killed, test_logs)
