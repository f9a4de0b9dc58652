#!/usr/bin/env python3
"""Volumes in a pool of a real Ceph, by real processes: their life beside a directory, and what is left when a volume service dies, or Ceph stands
still in mid-work."""
import json
import os
import subprocess

import e2e
import moves
import test_volume_attach as a
import test_volumes as v
from e2e import title, wait_until

lab = None
conf = None


def rbd(*words):
    """As a person types it, in the network of a node."""
    return subprocess.run([lab.fettle, 'lab', 'exec', 'node1', '--dir', lab.directory, '--', 'rbd', '-c', conf, '-n', 'client.fettle', *words],
                          check=True, capture_output=True, text=True).stdout


def images():
    """{image: its size}; None while one is being made or removed, of which `rbd ls -l` says that it is not there."""
    try:
        said = rbd('ls', '-l', '--format', 'json', 'rbd')
    except subprocess.CalledProcessError:
        return None
    return {one['image']: one['size'] for one in json.loads(said) if 'snapshot' not in one}


def check():
    """What is on record is there, and nothing else is."""
    def agree():
        named = {f'volumes.{one["data"]}': one['size'] * v.GIB for one in v.volumes('ceph1').values() if one['data']}
        named.update({f'snapshots.{one["data"]}': one['size'] * v.GIB for one in v.snapshots('ceph1').values() if one['data']})
        return images() == named
    wait_until('ceph1 has what is on record', agree, v.PATIENCE_S)


def io(command, name):
    """qemu-io on the image of a volume."""
    image = json.dumps({'driver': 'rbd', 'pool': 'rbd', 'image': f'volumes.{v.volumes()[name]["data"]}', 'conf': conf, 'user': 'fettle'})
    done = subprocess.run([lab.fettle, 'lab', 'exec', 'node1', '--dir', lab.directory, '--', 'qemu-io', '-c', command, f'json:{image}'],
                          check=True, capture_output=True, text=True)
    assert 'failed' not in done.stdout, done.stdout


@title('/ceph/back-ends-are-made')
def test_backend():
    for words, message in (
            (('--pool', 'rbd', '--path', '/mnt/a'), 'path: a back end of kind rbd has none, and "/mnt/a" is named'),
            ((), 'pool: a back end of kind rbd needs one'),
            (('--pool', 'rbd', '--backups', 'yes'), 'backups: they are files, which a back end of kind rbd does not keep; one of kind dir does')):
        code, _, err = lab.run('backend', 'add', 'ceph1', '--kind', 'rbd', '--nodes', 'node1', *words, check=False)
        assert code != 0 and message in err, (words, err)
    lab.cli('backend', 'add', 'ceph1', '--kind', 'rbd', '--nodes', 'node1,node2', '--pool', 'rbd', '--conf', conf, '--images', 'yes', *v.THIN)
    for node in ('node1', 'node2'):
        wait_until(f'{node}@ceph1 is up', lambda node=node: v.services().get(f'{node}@ceph1') == 'up', v.PATIENCE_S)
    v.add_backend('dir1', 'node1', 'node2')
    lab.cli('backend', 'modify', 'dir1', '--backups', 'yes', '--images', 'yes')
    # A Ceph that has just begun does not say yet how much room it has.
    wait_until('all works there', lambda: lab.run('backend', 'verify', check=False)[0] == 0, v.PATIENCE_S)
    found = lab.query('backend', ['name', 'kind', 'place', 'user', 'conf'], ['=', 'name', 'ceph1'])[0]
    assert found == {'name': 'ceph1', 'kind': 'rbd', 'place': 'rbd', 'user': 'fettle', 'conf': conf}, found


@title('/ceph/life-of-volumes#SAF-52')
def test_life():
    assert lab.cli('volume', 'create', 'data1', '--size', '1', '--backend', 'ceph1') == 'Volume data1 is available.\n'
    check()
    io('write -P 65 0 64k', 'data1')
    lab.cli('volume', 'extend', 'data1', '--size', '2')
    check()
    lab.cli('snapshot', 'create', 's1', '--volume', 'data1')
    io('write -P 66 0 64k', 'data1')
    lab.cli('volume', 'create', 'data2', '--snapshot', 's1')
    check()
    io('read -P 65 0 64k', 'data2')
    # Both ways between the two kinds.
    lab.cli('backup', 'create', 'data1', '--name', 'b1')
    assert lab.query('backup', ['backend'])[0]['backend'] == 'dir1'
    io('write -P 67 0 64k', 'data1')
    assert lab.cli('backup', 'restore', 'b1', '--volume', 'data1') == 'Backup b1 is restored into volume data1.\n'
    io('read -P 66 0 64k', 'data1')
    assert lab.cli('image', 'create', 'i1', '--volume', 'data1', '--backend', 'dir1') == 'Image i1 is made of volume data1.\n'
    assert lab.cli('volume', 'create', 'data4', '--image', 'i1', '--backend', 'ceph1') == 'Volume data4 is available.\n'
    io('read -P 66 0 64k', 'data4')
    io('read -P 66 0 64k', 'data4')
    # And by a move.
    assert lab.cli('volume', 'migrate', 'data4', '--backend', 'dir1') == 'Volume data4 is on dir1.\n'
    assert lab.cli('volume', 'migrate', 'data4', '--backend', 'ceph1') == 'Volume data4 is on ceph1.\n'
    io('read -P 66 0 64k', 'data4')
    io('read -P 66 0 64k', 'data4')


@title('/ceph/images-in-a-pool#SAF-60')
def test_images():
    """What is sent from anywhere is what is read back; volumes are made of it in both kinds of places, and it of them."""
    raw, saved = os.path.join(lab.directory, 'raw'), os.path.join(lab.directory, 'saved')
    with open(raw, 'wb') as file:
        file.write(b'\x45' * 70001)
    assert lab.cli('image', 'create', 'i2', '--file', raw, '--disk-format', 'raw', '--backend', 'ceph1') == 'Image i2 is active.\n'
    lab.cli('image', 'save', 'i2', '--file', saved)
    with open(saved, 'rb') as file:
        assert file.read() == b'\x45' * 70001
    lab.cli('volume', 'create', 'data5', '--image', 'i2', '--backend', 'ceph1')
    io('read -P 69 0 64k', 'data5')
    io('read -P 0 128k 64k', 'data5')
    lab.cli('volume', 'create', 'data6', '--image', 'i2', '--backend', 'dir1')
    v.refused('what a pool of a Ceph keeps of a volume is raw', 'image', 'create', 'i4', '--volume', 'data5', '--backend', 'ceph1')
    assert lab.cli('image', 'create', 'i4', '--volume', 'data5', '--disk-format', 'raw', '--backend', 'ceph1') == 'Image i4 is made of volume data5.\n'
    lab.cli('image', 'delete', 'i4')
    for name in ('data5', 'data6'):
        lab.cli('volume', 'delete', name)
    lab.cli('image', 'delete', 'i2')
    check()


@title('/ceph/what-others-were-made-of-goes-after-them#SAF-53')
def test_clones():
    lab.cli('snapshot', 'delete', 's1')
    io('read -P 65 0 64k', 'data2')
    lab.cli('volume', 'delete', 'data2')
    # The first name of data1, whose snapshot it was, is tried again, too.
    lab.lab('kill', 'volumed@node1')
    lab.lab('kill', 'volumed@node2')
    check()


def watchers(name):
    """Addresses that have it open."""
    said = rbd('status', '--format', 'json', f'rbd/volumes.{v.volumes()[name]["data"]}')
    return {one['address'] for one in json.loads(said)['watchers']}


def shut_out():
    return subprocess.run(
        [lab.fettle, 'lab', 'exec', 'node1', '--dir', lab.directory, '--', 'ceph', '-c', conf, 'osd', 'blocklist', 'ls'],
        check=True, capture_output=True, text=True).stdout


def write(node, uuid, pattern, at):
    said = a.through_guest(node, uuid, 'data1', f'write -P {pattern} {at} 4096')
    assert 'rror' not in said, said


@title('/ceph/a-running-guest-has-a-volume-and-gives-it-back#SAF-57')
def test_attach():
    """What it writes is in the pool; the key is in no argument; a copy under it is of one moment; it grows; it is there after a stop."""
    uuid = moves.create('web1', 'diskless', nodes=('node2',))
    assert lab.cli('volume', 'attach', 'data1', 'web1') == 'Volume data1 is attached to web1.\n'
    a.has_it('node2', uuid, 'data1')
    write('node2', uuid, 81, 0)
    with open(os.path.join(lab.directory, 'ceph', 'ceph.client.fettle.keyring'), encoding='utf-8') as file:
        key = file.read().split('key = ')[1].strip()
    for pid in lab.qemu_processes(uuid):
        with open(f'/proc/{pid}/cmdline', encoding='utf-8') as file:
            assert key not in file.read()
    lab.cli('snapshot', 'create', 's2', '--volume', 'data1')
    write('node2', uuid, 82, 0)
    lab.cli('volume', 'create', 'data7', '--snapshot', 's2')
    io('read -P 81 0 4k', 'data7')
    lab.cli('volume', 'extend', 'data1', '--size', '3')
    assert a.guest_bytes('node2', uuid, 'data1') == 3 * v.GIB
    lab.cli('instance', 'shutdown', 'web1', '--timeout', '0')
    wait_until('nobody has it open', lambda: not watchers('data1'), v.PATIENCE_S)
    lab.cli('instance', 'startup', 'web1')
    a.has_it('node2', uuid, 'data1')
    write('node2', uuid, 83, 8192)


@title('/ceph/goes-with-its-guest-and-whoever-had-it-is-shut-out#SAF-58')
def test_moves():
    uuid = e2e.uuid_of(lab, 'web1')
    moves.migrate('web1')
    assert moves.place('web1') == 'node1'
    a.has_it('node1', uuid, 'data1')
    write('node1', uuid, 84, 16384)
    moves.migrate('web1')
    a.has_it('node2', uuid, 'data1')
    write('node2', uuid, 85, 20480)
    before = watchers('data1')
    assert before
    lab.lab('power', 'node2', 'off')
    lab.cli('node', 'modify', 'node2', '--offline', 'yes', '--statement', 'test: the power was cut')
    lab.cli('instance', 'failover', 'web1')
    a.has_it('node1', uuid, 'data1')
    assert all(address in shut_out() for address in before), (before, shut_out())
    wait_until('the new one alone has it open', lambda: watchers('data1') and not watchers('data1') & before, v.PATIENCE_S)
    for pattern, at in ((82, 0), (83, 8192), (84, 16384), (85, 20480)):
        said = a.through_guest('node1', uuid, 'data1', f'read -P {pattern} {at} 4096')
        assert 'failed' not in said and 'rror' not in said, said
    lab.cli('instance', 'shutdown', 'web1', '--timeout', '0')
    assert lab.cli('volume', 'detach', 'data1') == 'Volume data1 is attached to nothing any more.\n'


def who_works(node):
    """{program: (user, group)} of what the volume service of a node has started at the pool, which hangs there."""
    service = next(daemon['pid'] for one in lab.status()['nodes'] if one['name'] == node
                   for daemon in one['daemons'] if daemon['name'] == 'volumed')
    found = {}
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{name}/status', encoding='utf-8') as file:
                told = dict(line.split(':', 1) for line in file.read().splitlines())
            with open(f'/proc/{name}/cmdline', encoding='utf-8') as file:
                words = file.read().split('\0')
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(told['PPid']) == service and '/proc/self/fd/3' in words and told['Name'].strip() in ('rbd', 'rados', 'ceph'):
            found[told['Name'].strip()] = (*told['Uid'].split(), *told['Gid'].split(), told['NoNewPrivs'].strip(), int(told['CapEff'], 16))
    return found


@title('/ceph/programs-at-a-pool-are-nobody#SAF-110')
def test_users():
    lab.lab('pause', 'ceph')
    v.ask('create', 'nobodys', '--size', '1', '--backend', 'ceph1')
    wait_until('somebody has taken it', lambda: v.volumes()['nobodys']['worker'], v.PATIENCE_S)
    node = v.volumes()['nobodys']['worker'].split('@')[0]
    wait_until('it is at work', lambda: who_works(node), v.PATIENCE_S)
    works = who_works(node)
    lab.lab('resume', 'ceph')
    assert works, 'it was ended before it was seen'
    for program, found in works.items():
        assert found == (*['1879048190'] * 4, *['1879048191'] * 4, '1', 0), (program, found)
    assert v.settle('nobodys')['status'] == 'available'
    lab.cli('volume', 'delete', 'nobodys')
    check()


@title('/ceph/standing-still-and-killed-in-mid-create#CLN-26')
def test_stands_still():
    for kill, ends in ((False, 'available'), (True, 'error')):
        lab.lab('pause', 'ceph')
        v.ask('create', 'late', '--size', '1', '--backend', 'ceph1')
        wait_until('somebody has taken it', lambda: v.volumes()['late']['worker'], v.PATIENCE_S)
        if kill:
            node = v.volumes()['late']['worker'].split('@')[0]
            lab.lab('kill', f'volumed@{node}')
        lab.lab('resume', 'ceph')
        found = v.settle('late')
        assert found['status'] == ends, found
        check()
        lab.cli('volume', 'delete', 'late')
        check()


@title('/ceph/shut-down-and-back')
def test_power():
    lab.lab('power', 'ceph', 'off')
    assert lab.status()['ceph']['power'] is False
    lab.lab('power', 'ceph', 'on')
    assert lab.cli('volume', 'create', 'data3', '--size', '1', '--backend', 'ceph1') == 'Volume data3 is available.\n'
    check()
    io('read -P 66 0 64k', 'data1')


@title('/ceph/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=2, options=('--ceph', '--watcher-interval-ms', '500')) as lab:
        moves.lab = a.lab = lab
        v.lab, v.folder = lab, os.path.join(lab.directory, 'shared')
        conf = os.path.join(lab.directory, 'ceph', 'ceph.conf')
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', '4')
        e2e.run(test_backend, test_life, test_clones, test_images, test_users, test_stands_still, *((test_power,) if e2e.LONG else ()),
                test_attach, test_moves, test_logs)
