#!/usr/bin/env python3
"""The disks of a counting guest's own node fail, and it is ended in an orderly way: nothing printed is lost, as nothing
would be by a power cut."""
import e2e
from e2e import title

lab = None
NOT_SOUND = ('node3 says that the images that it ran from are not sound, and the replica of instance "shut" on node2 has '
             'every acknowledged write: fettle instance failover shut; or, if the images on node3 are to be gone on with '
             'all the same: fettle instance startup shut --from-primary --statement ...')


def counting(name, node):
    """A guest on a node, with a replica in sync on node2; its UUID."""
    lab.do('OP_INSTANCE_CREATE', instance_name=name, pnode=node, snode='node2', **e2e.BUSY)
    uuid = e2e.uuid_of(lab, name)
    e2e.wait_counting(lab, name, uuid, node, 100)
    return uuid


def broken(name, node):
    """The same, and the node's disks fail, for good; the UUID, and what the guest had printed."""
    uuid = counting(name, node)
    lab.lab('disk-fail', node)
    return uuid, lab.printed(name, uuid, node)


def goes_on(name, uuid, printed):
    e2e.wait_counting(lab, name, uuid, 'node2', printed)
    with open(lab.console_path(name, uuid, 'node2'), 'rb') as file:
        found = [int(line.split(b'START ')[1]) for line in file.read().split(b'\r\n') if b'START ' in line]
    if found[-1] < printed:
        raise AssertionError(f'{name} had printed {printed}, but node2 started from {found[-1]}')


@title('/own-disk/power-cut#SAF-10,SAF-24')
def test_power_cut():
    """What a power cut leaves can be read: it starts again by itself, and is copied while the old copy is kept."""
    uuid = counting('cut', 'node3')
    lab.lab('power', 'node3', 'off')
    printed = lab.printed('cut', uuid, 'node3')
    lab.lab('power', 'node3', 'on')
    e2e.wait_counting(lab, 'cut', uuid, 'node3', printed)
    e2e.wait_healthy(lab, 'cut')
    lab.do('OP_INSTANCE_REMOVE', instance_name='cut', shutdown_timeout=0)


@title('/own-disk/shutdown#SAF-11,SAF-13,SAF-24')
def test_shutdown():
    uuid, printed = broken('shut', 'node3')
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='shut', timeout=0)
    row = lab.instance('shut', 'replica.state', 'clean', 'sound')
    if row != {'replica.state': 'in-sync', 'clean': False, 'sound': 'no'}:
        raise AssertionError(f'after the shutdown: {row}')
    page = lab.cli('instance', 'info', 'shut')
    for line in ('  Images         not sound: when it ended, a write to its images on node3 had failed, or they could not be synced or read',
                 '  Go on from its replica on node2: fettle instance failover shut'):
        if line not in page.splitlines():
            raise AssertionError(f'{line}\nis not in\n{page}')
    e2e.expect_job_error(lab, NOT_SOUND, 'OP_INSTANCE_STARTUP', instance_name='shut')
    lab.do('OP_INSTANCE_FAILOVER', instance_name='shut')
    lab.do('OP_INSTANCE_STARTUP', instance_name='shut')
    goes_on('shut', uuid, printed)


@title('/own-disk/failover#SAF-13,SAF-16,SAF-24')
def test_failover():
    uuid, printed = broken('over', 'node4')
    lab.do('OP_INSTANCE_FAILOVER', instance_name='over', shutdown_timeout=0)
    goes_on('over', uuid, printed)


@title('/own-disk/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=4) as lab:
        e2e.run(test_power_cut, test_shutdown, test_failover, test_logs)
