#!/usr/bin/env python3
"""Volumes that are attached to instances, by real processes: what the guest's QEMU has, what a second opener gets, and where the volume is
after a stop, a migration, a failover and a new node daemon. The guests of these labs have no ACPI, so none gives a disk up by itself:
what it was asked for is its until it ends (SAF-124).
"""
import contextlib
import os
import re
import subprocess

import e2e
import moves
from e2e import fettlelib, title, wait_until

GIB = 1 << 30
PATIENCE_S = 30
lab = None
folder = None


def volume(name):
    return lab.query('volume', ['name', 'uuid', 'status', 'data', 'instance', 'device', 'leaving_since'], ['=', 'name', name])[0]


def data(name):
    return os.path.join(folder, 'volumes', volume(name)['data'])


def monitor(node, uuid):
    return fettlelib.QmpListener(os.path.join(lab.root(node), 'run', 'guests', uuid, 'rescue.sock'))


def disks(node, uuid):
    """{serial: (place on the bus, id)} of the volumes that the guest's process has."""
    with monitor(node, uuid) as qmp:
        found = {}
        for entry in qmp.execute('qom-list', {'path': '/machine/peripheral'}):
            path = f'/machine/peripheral/{entry["name"]}'
            if entry['type'] == 'child<virtio-blk-pci>' and entry['name'].startswith('w'):
                serial = qmp.execute('qom-get', {'path': path, 'property': 'serial'})
                found[serial] = (qmp.execute('qom-get', {'path': path, 'property': 'addr'}) >> 3, entry['name'])
        return found


def through_guest(node, uuid, name, line):
    """What qemu-io says to a line about the volume, from inside of the guest's process."""
    device = disks(node, uuid)[volume(name)['uuid'][:20]][1]
    with monitor(node, uuid) as qmp:
        return qmp.execute('human-monitor-command', {'command-line': f'qemu-io -d /machine/peripheral/{device}/virtio-backend "{line}"'})


def has_it(node, uuid, name, slot=30):
    found = disks(node, uuid)
    assert {serial: at for serial, (at, _) in found.items()} == {volume(name)['uuid'][:20]: slot}, found


def is_locked(name):
    done = subprocess.run(['qemu-io', '-f', 'raw', '-c', 'read 0 512', data(name)], capture_output=True, text=True, check=False)
    return done.returncode != 0 and 'Failed to get' in done.stderr


def pattern(name, at=0):
    with open(data(name), 'rb') as file:
        file.seek(at)
        return file.read(4096)


def patiently(*words):
    """While a node daemon has only just begun."""
    wait_until(' '.join(words), lambda: lab.run(*words, check=False, timeout=120)[0] == 0, PATIENCE_S)


def refused(code, message, *words):
    got, _, err = lab.run(*words, check=False, timeout=120)
    assert got == code and message in err, (words, got, err)


@title('/volume-attach/bad-input')
def test_input():
    lab.cli('volume', 'create', 'near', '--size', '1', '--backend', 'only2')
    refused(3, 'volume "nodata" does not exist', 'volume', 'attach', 'nodata', 'web1')
    refused(3, 'instance "web9" does not exist', 'volume', 'attach', 'data1', 'web9')
    refused(5, 'volume data1 is not attached to anything', 'volume', 'detach', 'data1')
    lab.cli('volume', 'reset-state', 'data2', '--status', 'error')
    refused(5, 'volume data2 is error; only an available one can be attached', 'volume', 'attach', 'data2', 'web1')
    lab.cli('volume', 'reset-state', 'data2', '--status', 'available')
    refused(5, 'node3, where instance "far" is, does not serve back end only2, where volume near is', 'volume', 'attach', 'near', 'far')
    assert volume('near')['status'] == 'available'


@title('/volume-attach/running-guest-has-it-and-nobody-else#SAF-57')
def test_attach(uuid):
    assert lab.cli('volume', 'attach', 'data1', 'web1', '--dry-run')
    assert volume('data1')['status'] == 'available'
    assert lab.cli('volume', 'attach', 'data1', 'web1') == 'Volume data1 is attached to web1.\n'
    found = volume('data1')
    assert (found['status'], found['instance'], found['device']) == ('in-use', 'web1', 'virtio-' + found['uuid'][:20]), found
    has_it('node2', uuid, 'data1')
    assert is_locked('data1')
    said = through_guest('node2', uuid, 'data1', 'write -P 0xab 0 4096')
    assert 'rror' not in said, said
    wait_until('it is in the file', lambda: pattern('data1') == b'\xab' * 4096, PATIENCE_S)
    assert lab.instance('web1', 'task_state')['task_state'] in ('', None)
    said = lab.cli('volume', 'info', 'data1')
    assert re.search(r'^  Attached to +web1, as virtio-', said, re.M), said
    said = lab.cli('instance', 'info', 'web1')
    assert re.search(r'^  Volume +data1, 1 GiB on dir1, in-use as virtio-', said, re.M), said


@title('/volume-attach/what-an-attachment-forbids#SAF-53')
def test_forbids():
    sentence = 'volume data1 is attached to web1; detach it first'
    refused(5, sentence, 'volume', 'delete', 'data1', '--yes')
    refused(5, sentence, 'volume', 'reset-state', 'data1', '--status', 'available')
    refused(5, sentence, 'volume', 'attach', 'data1', 'far')
    refused(5, sentence, 'volume', 'attach', 'data1', 'web1')
    refused(5, '--force: instance "web1" may run on node2', 'volume', 'detach', 'data1', '--force')
    refused(5, 'nodes: node2 cannot leave, volume data1 is attached to web1 there', 'backend', 'modify', 'dir1', '--nodes', 'node1,node3')


def guest_bytes(node, uuid, name):
    """How large the guest's process takes the volume to be."""
    device = disks(node, uuid)[volume(name)['uuid'][:20]][1]
    with monitor(node, uuid) as qmp:
        return next(entry['inserted']['image']['virtual-size'] for entry in qmp.execute('query-block')
                    if entry['qdev'] == f'/machine/peripheral/{device}/virtio-backend')


@title('/volume-attach/grows-under-its-guest#SAF-53')
def test_extend(uuid):
    pids = lab.qemu_processes(uuid)
    assert guest_bytes('node2', uuid, 'data1') == GIB
    lab.cli('volume', 'extend', 'data1', '--size', '2')
    assert guest_bytes('node2', uuid, 'data1') == 2 * GIB
    assert volume('data1')['status'] == 'in-use' and os.path.getsize(data('data1')) == 2 * GIB
    said = through_guest('node2', uuid, 'data1', f'write -P 0xef {2 * GIB - 4096} 4096')
    assert 'rror' not in said, said
    wait_until('it is in the file', lambda: pattern('data1', 2 * GIB - 4096) == b'\xef' * 4096, PATIENCE_S)
    if e2e.LONG:  # nobody can be told: the node daemon that comes next looks for itself
        lab.lab('pause', 'noded@node2')
        try:
            lab.cli('volume', 'extend', 'data1', '--size', '3')
        finally:
            lab.lab('kill', 'noded@node2')
        wait_until('its guest knows', lambda: guest_bytes('node2', uuid, 'data1') == 3 * GIB, PATIENCE_S)
    assert pattern('data1') == b'\xab' * 4096 and lab.qemu_processes(uuid) == pids


@contextlib.contextmanager
def small_disk(name):
    """A back end of node2 on a disk of its own, with little room."""
    with fettlelib.disk_of_its_own(os.path.join(lab.directory, 'shared', name), 64, '-m', '0') as place:
        lab.cli('backend', 'add', name, '--nodes', 'node2', '--path', place, '--overcommit', '100000')
        yield place
        lab.cli('backend', 'remove', name)


def fill(place):
    with contextlib.suppress(OSError), open(os.path.join(place, 'filler'), 'wb', buffering=0) as file:
        for size in (1 << 20, 4096):
            with contextlib.suppress(OSError):
                while file.write(b'\1' * size) == size:
                    pass


def state(name):
    return lab.instance(name, 'status')['status']


@title('/volume-attach/a-full-back-end-stops-its-guest#SAF-27')
def test_full():
    uuid = moves.create('ticker', 'diskless')
    lab.cli('instance', 'shutdown', 'ticker', '--timeout', '0')
    with small_disk('small') as place:
        lab.cli('volume', 'create', 'boot', '--size', '1', '--backend', 'small')
        path = os.path.join(place, 'volumes', volume('boot')['data'])
        with open(os.path.join(lab.root('node2'), 'var', 'images', 'tick.raw'), 'rb') as image, open(path, 'r+b') as file:
            file.write(image.read(512))  # what it writes itself is to find holes
        lab.cli('volume', 'attach', 'boot', 'ticker')
        lab.cli('instance', 'startup', 'ticker')
        e2e.wait_counting(lab, 'ticker', uuid, 'node2', 2)
        pids = lab.qemu_processes(uuid)
        fill(place)
        wait_until('it is shown to stand still', lambda: state('ticker') == 'ERROR_nospace', 60)
        printed = e2e.wait_frozen(lab, 'ticker', uuid, 'node2')
        why = 'there is no room for its volume boot on back end small'
        code, text = e2e.verify(lab)
        assert code == 1 and f'instance ticker: status is ERROR_nospace: it stands still: {why}' in text, text
        assert f'It stands still, as {why}. Make room there, and it goes on by itself.' in lab.cli('instance', 'info', 'ticker')
        assert f'ticker is ERROR_nospace: {why}.' in lab.cli('why', 'ticker')
        wait_until('a record tells of it', lambda: 'Volume-no-space' in lab.cli('why', 'ticker'), PATIENCE_S)
        refused(5, 'there is no room for its volume ' + path, 'instance', 'shutdown', 'ticker', '--timeout', '5')
        os.unlink(os.path.join(place, 'filler'))
        e2e.wait_counting(lab, 'ticker', uuid, 'node2', printed, 60)
        wait_until('it is well', lambda: state('ticker') == 'running', PATIENCE_S)
        assert lab.qemu_processes(uuid) == pids and lab.instance('ticker', 'io.errors')['io.errors'] == 0
        lab.cli('instance', 'shutdown', 'ticker', '--timeout', '0')
        assert fettlelib.image_count(path) >= lab.printed('ticker', uuid, 'node2')
        with open(lab.console_path('ticker', uuid, 'node2'), 'rb') as file:
            assert b'DISKERR' not in file.read(), 'it was told of an error'
        lab.do('OP_INSTANCE_REMOVE', instance_name='ticker')
        lab.cli('volume', 'delete', 'boot', '--yes')


@title('/volume-attach/lives-through-node-daemon-stop-and-start')
def test_power(uuid):
    lab.lab('restart', 'noded@node2')
    patiently('instance', 'reboot', 'web1', '--shutdown-timeout', '0')
    has_it('node2', uuid, 'data1')
    lab.cli('instance', 'shutdown', 'web1', '--timeout', '0')
    assert not is_locked('data1')
    assert volume('data1')['status'] == 'in-use'
    lab.cli('volume', 'attach', 'data2', 'web1')
    lab.cli('instance', 'startup', 'web1')
    found = {serial: at for serial, (at, _) in disks('node2', uuid).items()}
    assert found == {volume('data1')['uuid'][:20]: 30, volume('data2')['uuid'][:20]: 29}, found
    lab.cli('instance', 'shutdown', 'web1', '--timeout', '0')
    assert lab.cli('volume', 'detach', 'data2') == 'Volume data2 is attached to nothing any more.\n'
    lab.cli('instance', 'startup', 'web1')
    has_it('node2', uuid, 'data1')
    assert pattern('data1') == b'\xab' * 4096


@title('/volume-attach/migrates-with-its-guest')
def test_migrate(uuid):
    moves.migrate('web1')
    assert moves.place('web1') == 'node3'
    moves.one_process('web1', uuid)
    has_it('node3', uuid, 'data1')
    assert is_locked('data1')
    said = through_guest('node3', uuid, 'data1', 'write -P 0xcd 4096 4096')
    assert 'rror' not in said, said
    wait_until('it is in the file', lambda: pattern('data1', 4096) == b'\xcd' * 4096, PATIENCE_S)
    assert pattern('data1') == b'\xab' * 4096
    e2e.wait_healthy(lab, 'web1')


@title('/volume-attach/no-node-that-does-not-see-it')
def test_targets():
    lab.cli('instance', 'shutdown', 'far', '--timeout', '0')
    lab.cli('volume', 'attach', 'data2', 'far')
    lab.cli('instance', 'startup', 'far')
    refused(5, 'does not serve back end dir1', 'instance', 'migrate', 'far', '--target-node', 'node1')
    lab.cli('instance', 'shutdown', 'far', '--timeout', '0')
    lab.cli('volume', 'detach', 'data2')
    lab.cli('instance', 'startup', 'far')


@title('/volume-attach/a-guest-that-does-not-give-it-up#SAF-124')
def test_leaving(uuid):
    sentence = 'was asked to give volume data1 up, and has not yet'
    if e2e.LONG:
        refused(7, sentence, 'volume', 'detach', 'data1')
    else:  # the same, without the wait of 30 s
        job = lab.json('volume', 'detach', 'data1', '--submit')['job']
        wait_until('it is asked', lambda: volume('data1')['status'] == 'detaching', PATIENCE_S)
        lab.cli('job', 'cancel', str(job))
        wait_until('the job has ended', lambda: volume('data1')['status'] == 'in-use', PATIENCE_S)
        assert sentence in lab.run('job', 'info', str(job))[1]
    assert re.search(r'INSTANCE_DETACH_VOLUME', lab.cli('why', 'web1')), lab.cli('why', 'web1')
    found = volume('data1')
    assert found['status'] == 'in-use' and found['leaving_since'], found
    has_it('node3', uuid, 'data1')
    assert is_locked('data1')
    # A node daemon that has not asked for it asks on; the guest gives it up when it is reset.
    lab.lab('restart', 'noded@node3')
    patiently('instance', 'reboot', 'web1', '--reboot-type', 'hard', '--shutdown-timeout', '0')
    wait_until('it is nobody\'s', lambda: volume('data1')['status'] == 'available', PATIENCE_S)
    assert disks('node3', uuid) == {}
    assert not is_locked('data1')


@title('/volume-attach/gone-with-its-instance')
def test_remove():
    lab.cli('volume', 'attach', 'data1', 'web1')
    lab.do('OP_INSTANCE_REMOVE', instance_name='web1', shutdown_timeout=0)
    assert volume('data1')['status'] == 'available'
    lab.cli('volume', 'delete', 'data1', '--yes')


@title('/volume-attach/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=3) as lab:
        moves.lab = lab
        folder = os.path.join(lab.directory, 'shared', 'dir1')
        for name, nodes in (('dir1', 'node2,node3'), ('only2', 'node2')):
            os.makedirs(os.path.join(lab.directory, 'shared', name), 0o755)
            # The disk of a lab is small.
            lab.cli('backend', 'add', name, '--nodes', nodes, '--path', os.path.join(lab.directory, 'shared', name), '--overcommit', '100000')
        for name in ('data1', 'data2'):
            lab.cli('volume', 'create', name, '--size', '1', '--backend', 'dir1')
        web = moves.create('web1', 'mirror', disks=[{'size': 8}])
        moves.create('far', 'diskless', nodes=('node3',))
        e2e.wait_healthy(lab, 'web1')
        e2e.run(test_input, e2e.named(test_attach, web), test_forbids, e2e.named(test_extend, web), test_full, e2e.named(test_power, web),
                e2e.named(test_migrate, web), test_targets, e2e.named(test_leaving, web), test_remove, test_logs)
