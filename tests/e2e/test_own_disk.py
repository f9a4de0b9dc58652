#!/usr/bin/env python3
"""The disks of a counting guest's own node fail, and it is ended in an orderly way: nothing printed is lost, as nothing
would be by a power cut."""
import contextlib

import e2e
from e2e import title

lab = None
NOT_SOUND = ('node3 says that the images that it ran from are not sound, and the replica of instance "{0}" on node2 has '
             'every acknowledged write: fettle instance failover {0}; or, if the images on node3 are to be gone on with '
             'all the same: fettle instance startup {0} --from-primary --statement ...')


@contextlib.contextmanager
def broken(name):
    """A guest on node3 with a replica in sync on node2, whose own disks fail; its UUID and what it had printed."""
    lab.do('OP_INSTANCE_CREATE', instance_name=name, pnode='node3', snode='node2', **e2e.BUSY)
    uuid = e2e.uuid_of(lab, name)
    e2e.wait_counting(lab, name, uuid, 'node3', 100)
    lab.lab('disk-fail', 'node3')
    try:
        yield uuid, lab.printed(name, uuid, 'node3')
    finally:
        lab.lab('power', 'node3', 'off')
        lab.lab('power', 'node3', 'on')


def goes_on(name, uuid, printed):
    e2e.wait_counting(lab, name, uuid, 'node2', printed)
    with open(lab.console_path(name, uuid, 'node2'), 'rb') as file:
        found = [int(line.split(b'START ')[1]) for line in file.read().split(b'\r\n') if b'START ' in line]
    if found[-1] < printed:
        raise AssertionError(f'{name} printed {printed} on node3, but node2 started from {found[-1]}')
    lab.do('OP_INSTANCE_REMOVE', instance_name=name, shutdown_timeout=0)


@title('/own-disk/shutdown#SAF-11,SAF-13,SAF-24')
def test_shutdown():
    with broken('shut') as (uuid, printed):
        lab.do('OP_INSTANCE_SHUTDOWN', instance_name='shut', timeout=0)
        row = lab.instance('shut', 'replica.state', 'clean')
        if row != {'replica.state': 'in-sync', 'clean': False}:
            raise AssertionError(f'after the shutdown: {row}')
        e2e.expect_job_error(lab, NOT_SOUND.format('shut'), 'OP_INSTANCE_STARTUP', instance_name='shut')
        lab.do('OP_INSTANCE_FAILOVER', instance_name='shut')
        lab.do('OP_INSTANCE_STARTUP', instance_name='shut')
        goes_on('shut', uuid, printed)
    e2e.verify_clean(lab)


@title('/own-disk/failover#SAF-13,SAF-16,SAF-24')
def test_failover():
    with broken('over') as (uuid, printed):
        lab.do('OP_INSTANCE_FAILOVER', instance_name='over', shutdown_timeout=0)
        goes_on('over', uuid, printed)
    e2e.verify_clean(lab)


@title('/own-disk/power-cut#SAF-10,SAF-24')
def test_power_cut():
    """What a power cut leaves can be read: it starts again by itself, and is copied while the old copy is kept."""
    lab.do('OP_INSTANCE_CREATE', instance_name='cut', pnode='node3', snode='node2', **e2e.BUSY)
    uuid = e2e.uuid_of(lab, 'cut')
    e2e.wait_counting(lab, 'cut', uuid, 'node3', 100)
    lab.lab('power', 'node3', 'off')
    printed = lab.printed('cut', uuid, 'node3')
    lab.lab('power', 'node3', 'on')
    e2e.wait_counting(lab, 'cut', uuid, 'node3', printed)
    e2e.wait_healthy(lab, 'cut')
    lab.do('OP_INSTANCE_REMOVE', instance_name='cut', shutdown_timeout=0)


@title('/own-disk/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab() as lab:
        e2e.run(test_shutdown, test_failover, test_power_cut, test_logs)
