#!/usr/bin/env python3
"""Nodes whose disks have no room: guests stand still, are shown, and go on by themselves; nothing that was printed is lost."""
import json
import os
import re
import socket

import e2e
from e2e import fettlelib, title, wait_until

lab = None


def create(name, template='mirror', **more):
    uuid = e2e.create(lab, name, template, **more)
    e2e.wait_counting(lab, name, uuid, 'node2', 2)
    return uuid


def field(name, what):
    return lab.instance(name, what)[what]


def mend_and_remove(name):
    if field(name, 'replica.state') == 'stale':
        lab.cli('instance', 'replace-disks', name)
    e2e.wait_healthy(lab, name)
    lab.do('OP_INSTANCE_REMOVE', instance_name=name, shutdown_timeout=0)


def stands_still(name, uuid):
    """Waits until the cluster says so; what it has printed by then."""
    wait_until(f'{name} is shown to stand still', lambda: field(name, 'status') == 'ERROR_nospace', 60)
    return e2e.wait_frozen(lab, name, uuid, 'node2')


def fails(code, message, *args):
    got, _, err = lab.run(*args, check=False, timeout=180)
    assert got == code and message in err, (args, got, err)


def monitor(uuid, line):
    """What a person types at the guest's second monitor."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(os.path.join(lab.root('node2'), 'run', 'guests', uuid, 'rescue.sock'))
        stream = sock.makefile('rw')
        stream.readline()
        for command, arguments in (('qmp_capabilities', {}), ('human-monitor-command', {'command-line': line})):
            stream.write(json.dumps({'execute': command, 'arguments': arguments}) + '\n')
            stream.flush()
            while 'event' in json.loads(stream.readline()):
                pass


@title('/room/full-stands-still-goes-on#SAF-27,ARP-68')
def test_goes_on():
    uuids = {'plain': create('plain', 'file'), 'layered': create('layered', 'file', disks=[{'size': 8, 'format': 'qcow2'}]),
             'twice': create('twice')}
    pids = {name: lab.qemu_processes(uuid) for name, uuid in uuids.items()}
    lab.lab('disk-fill', 'node2', '--leave', '0')
    printed = {name: stands_still(name, uuids[name]) for name in ('plain', 'twice')}
    code, text = e2e.verify(lab)
    assert code == 1 and 'instance plain: status is ERROR_nospace: it stands still: there is no room for its disks on node2' in text, text
    assert re.search(r'node node2: (9\d|100) % of its disk space are used', text), text
    assert 'goes on by itself when there is room' in lab.cli('why', 'plain')
    wait_until('a record tells of it', lambda: 'No-space' in lab.cli('why', 'twice'), 30)
    wait_until('a record tells of the node', lambda: 'Full' in lab.cli('why', 'node2'), 30)
    assert field('twice', 'replica.state') == 'in-sync'
    fails(5, 'stands still, because there is no room for its disks on this node: it cannot shut down; make room and it goes on by itself, '
             'or end it as by a power cut with --timeout 0', 'instance', 'shutdown', 'plain', '--timeout', '5')
    assert field('plain', 'admin_state') == 'up'
    lab.lab('disk-unfill', 'node2')
    for name, uuid in uuids.items():
        e2e.wait_counting(lab, name, uuid, 'node2', printed.get(name, 0), 60)
        assert lab.qemu_processes(uuid) == pids[name], f'{name} was restarted'
        wait_until(f'{name} is well', lambda name=name: field(name, 'status') == 'running', 30)
        assert field(name, 'io.errors') == 0
    e2e.verify_clean(lab)
    for name, uuid in uuids.items():
        lab.do('OP_INSTANCE_SHUTDOWN', instance_name=name, wait=240)
        printed = lab.printed(name, uuid, 'node2')
        if name != 'layered':
            assert fettlelib.image_count(os.path.join(lab.root('node2'), 'var', 'disks', f'{uuid}.disk0.raw')) >= printed
        with open(lab.console_path(name, uuid, 'node2'), 'rb') as file:
            assert b'DISKERR' not in file.read(), f'{name} was told of an error'
        lab.do('OP_INSTANCE_REMOVE', instance_name=name)


@title('/room/a-power-cut-takes-a-word#SAF-27')
def test_power_cut():
    uuid = create('cut', 'file')
    lab.lab('disk-fill', 'node2', '--leave', '0')
    printed = stands_still('cut', uuid)
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='cut', timeout=0)
    lab.lab('disk-unfill', 'node2')
    lab.do('OP_INSTANCE_STARTUP', instance_name='cut')
    e2e.wait_counting(lab, 'cut', uuid, 'node2', printed)
    lab.do('OP_INSTANCE_REMOVE', instance_name='cut', shutdown_timeout=0)


@title('/room/moves-to-its-replica#SAF-17,SAF-27')
def test_moves():
    uuid = create('mover')
    lab.lab('disk-fill', 'node2', '--leave', '0')
    printed = stands_still('mover', uuid)
    lab.cli('instance', 'migrate', 'mover')
    e2e.wait_counting(lab, 'mover', uuid, 'node3', printed, 60)
    lab.lab('disk-unfill', 'node2')
    mend_and_remove('mover')


@title('/room/both-nodes-full#SAF-13,SAF-15,SAF-27')
def test_both():
    uuid = create('both')
    pids = lab.qemu_processes(uuid)
    lab.lab('disk-fill', 'node3', '--leave', '0')
    lab.lab('disk-fill', 'node2', '--leave', '0')
    wait_until('it stands still', lambda: field('both', 'status') == 'ERROR_nospace', 90)
    printed = e2e.wait_frozen(lab, 'both', uuid, 'node2')
    lab.lab('disk-unfill', 'node2')
    e2e.wait_counting(lab, 'both', uuid, 'node2', printed, 60)
    assert lab.qemu_processes(uuid) == pids, 'it was restarted'
    lab.lab('disk-unfill', 'node3')
    wait_until('its replica is settled', lambda: field('both', 'replica.state') in ('in-sync', 'stale'), 60)
    mend_and_remove('both')


@title('/room/switches-itself-off-while-its-replica-is-away#SAF-13,SAF-15,SAF-27')
def test_off():
    """A stop by itself waits for what the replica does not answer, and its monitor with it."""
    uuid = create('off')
    lab.lab('link', 'node3', 'down')
    monitor(uuid, 'o /w 0x604 0x2000')  # what the guest does to switch itself off
    wait_until('its replica is on record as stale', lambda: field('off', 'replica.state') == 'stale', 90)
    wait_until('it is closed', lambda: not lab.qemu_processes(uuid), 90)
    lab.lab('link', 'node3', 'up')
    lab.do('OP_INSTANCE_STARTUP', instance_name='off')
    e2e.wait_counting(lab, 'off', uuid, 'node2', lab.printed('off', uuid, 'node2'), 60)
    e2e.wait_healthy(lab, 'off')
    lab.do('OP_INSTANCE_REMOVE', instance_name='off', shutdown_timeout=0)


@title('/room/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab() as lab:
        e2e.run(test_goes_on, test_power_cut, test_moves, test_both, test_off, test_logs)
