#!/usr/bin/env python3
"""Power cuts, cut links and failing replica disks under real counting guests: nothing printed is ever lost."""
import os
import random
import time

import e2e
from e2e import title, wait_until

ROUNDS = 50 if e2e.LONG else 5
SEED = int(os.environ.get('FETTLE_SEED', str(random.randrange(1 << 30))))
chance = random.Random(SEED)
lab = None


def image(node, uuid, replica=None):
    name = f'{uuid}.{replica}.disk0.raw' if replica else f'{uuid}.disk0.raw'
    return os.path.join(lab.root(node), 'var', 'disks', name)


def guest(name, primary, secondary, params=None):
    """A running instance with these nodes and a replica in sync; returns its UUID."""
    lab.do('OP_INSTANCE_CREATE', instance_name=name, pnode=primary, snode=secondary, **(params or e2e.BUSY))
    uuid = e2e.uuid_of(lab, name)
    e2e.wait_counting(lab, name, uuid, primary)
    return uuid


def starts(name, uuid, node):
    """The counts that the guest found on its disk each time it booted on a node."""
    with open(lab.console_path(name, uuid, node), 'rb') as file:
        return [int(line.split(b'START ')[1]) for line in file.read().split(b'\r\n')[0:] if b'START ' in line
                and line.split(b'START ')[1].isdigit()]


def offline(node, statement):
    lab.cli('node', 'modify', node, '--offline', 'yes', '--statement', statement)


def bring_back(node):
    lab.lab('power', node, 'on')
    lab.cli('node', 'modify', node, '--offline', 'no')


def check_promoted(name, uuid, old, new, printed):
    """After a failover: what was printed on `old` is there, one copy runs, and it goes on."""
    e2e.wait_counting(lab, name, uuid, new, printed)
    found = starts(name, uuid, new)[-1]
    if found < printed:
        raise AssertionError(f'{name} printed {printed} on {old}, but {new} started from {found} (seed {SEED})')
    if len(lab.qemu_processes(uuid)) > 1:
        raise AssertionError(f'{name} runs {len(lab.qemu_processes(uuid))} times (seed {SEED})')


def one_round(name, uuid, cut):
    row = lab.instance(name, 'pnode', 'snodes')
    old, new = row['pnode'], row['snodes'][0]
    if old == 'node1':
        lab.do('OP_INSTANCE_FAILOVER', instance_name=name, shutdown_timeout=0)
        e2e.wait_healthy(lab, name)
        return False
    e2e.wait_counting(lab, name, uuid, old, lab.printed(name, uuid, old))
    time.sleep(chance.random() * 0.3)
    cut(old)
    printed = lab.printed(name, uuid, old)
    offline(old, 'test: the power was cut')
    check_promoted(name, uuid, old, new, printed)
    bring_back(old)
    e2e.wait_healthy(lab, name)
    time.sleep(0.3)
    now, copies = lab.printed(name, uuid, old), len(lab.qemu_processes(uuid))
    if now != printed or copies != 1:
        raise AssertionError(f'the old guest on {old} came back to life: it had printed {printed}, now {now}; '
                             f'{copies} processes (seed {SEED})')
    return True


@title(f'/power/primary-cut-{ROUNDS}-rounds#SAF-10,SAF-13,SAF-16,SAF-19,SAF-20,ARP-11,ARP-61')
def test_primary_cut():
    uuid = guest('cut', 'node2', 'node3')
    done = 0
    while done < ROUNDS:
        done += one_round('cut', uuid, lambda node: lab.lab('power', node, 'off'))
    lab.do('OP_INSTANCE_REMOVE', instance_name='cut', shutdown_timeout=0)


@title('/power/link-cut-first#SAF-13,SAF-16,SAF-19')
def test_link_cut_first():
    """The primary freezes when it is cut off, is promoted elsewhere, and is killed when the link is back."""
    uuid = guest('frozen', 'node2', 'node3', e2e.TICK)
    for _ in range(5 if e2e.LONG else 2):
        row = lab.instance('frozen', 'pnode', 'snodes')
        old, new = row['pnode'], row['snodes'][0]
        if old == 'node1':
            lab.do('OP_INSTANCE_FAILOVER', instance_name='frozen', shutdown_timeout=0)
            e2e.wait_healthy(lab, 'frozen')
            continue
        e2e.wait_counting(lab, 'frozen', uuid, old, lab.printed('frozen', uuid, old))
        lab.lab('link', old, 'down')
        printed = e2e.wait_frozen(lab, 'frozen', uuid, old)
        wait_until('node does not answer', lambda: lab.query('node', ['mfree'], ['=', 'name', old])[0]['mfree'] is None)
        offline(old, 'test: the link was cut')
        e2e.wait_counting(lab, 'frozen', uuid, new, printed)
        found = starts('frozen', uuid, new)[-1]
        if found < printed:
            raise AssertionError(f'printed {printed} before the cut, started from {found}')
        if lab.printed('frozen', uuid, old) != printed:
            raise AssertionError('the cut primary acknowledged writes after the promotion')
        lab.lab('link', old, 'up')
        lab.cli('node', 'modify', old, '--offline', 'no')
        wait_until('the superseded guest is killed', lambda: len(lab.qemu_processes(uuid)) == 1)
        if lab.printed('frozen', uuid, old) != printed:
            raise AssertionError('the superseded guest acknowledged writes after the link was healed')
        e2e.wait_healthy(lab, 'frozen')
    lab.do('OP_INSTANCE_REMOVE', instance_name='frozen', shutdown_timeout=0)


def moved(name, primary, secondary):
    """The copies have changed places, and were never less than two."""
    row = lab.instance(name, 'pnode', 'snodes', 'replica.state')
    if row != {'pnode': primary, 'snodes': [secondary], 'replica.state': 'in-sync'}:
        raise AssertionError(f'{name} after its failover: {row}')


@title('/power/failover-keeps-a-replica#SAF-13,SAF-16,SAF-26')
def test_failover_keeps_a_replica():
    """Both nodes live: what is left behind is the replica, with no copy made, while it runs and while it does not."""
    uuid = guest('planned', 'node2', 'node3', e2e.TICK)
    printed = lab.printed('planned', uuid, 'node2')
    job = lab.do('OP_INSTANCE_FAILOVER', instance_name='planned', shutdown_timeout=0)
    moved('planned', 'node3', 'node2')
    said = lab.cli('job', 'info', str(job))
    assert 'its images on node2 are its replica now, in-sync' in said and 'copied' not in said, said
    e2e.wait_counting(lab, 'planned', uuid, 'node3', printed)
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='planned', timeout=0)
    lab.do('OP_INSTANCE_FAILOVER', instance_name='planned')
    moved('planned', 'node2', 'node3')
    e2e.verify_clean(lab)
    lab.do('OP_INSTANCE_FAILOVER', instance_name='planned')
    moved('planned', 'node3', 'node2')
    printed = lab.printed('planned', uuid, 'node3')
    lab.do('OP_INSTANCE_STARTUP', instance_name='planned')
    moved('planned', 'node3', 'node2')
    e2e.wait_counting(lab, 'planned', uuid, 'node3', printed)
    # What was never copied is as good as the other: the power of that one is cut.
    lab.lab('power', 'node3', 'off')
    printed = lab.printed('planned', uuid, 'node3')
    offline('node3', 'test: the power was cut')  # then auto-repair does it
    check_promoted('planned', uuid, 'node3', 'node2', printed)
    bring_back('node3')
    lab.do('OP_INSTANCE_REMOVE', instance_name='planned', shutdown_timeout=0)


def replica_fault(name, fault, mend):
    """A replica fails under a counting guest: stale is on record before the guest goes on."""
    uuid = guest(name, 'node2', 'node3')
    row = lab.instance(name, 'replica', 'replica.state')
    assert row['replica.state'] == 'in-sync', row
    pid = lab.qemu_processes(uuid)
    fault()
    # Whenever the record says in-sync, the replica must hold what had been printed before it was asked.
    def stale():
        printed = lab.printed(name, uuid, 'node2')
        state = lab.instance(name, 'replica.state')['replica.state']
        if state == 'in-sync':
            return False
        return state, printed
    wait_until('the replica is recorded as lost', stale, step=0.02)
    e2e.wait_counting(lab, name, uuid, 'node2', lab.printed(name, uuid, 'node2') + 1)
    if lab.qemu_processes(uuid) != pid:
        raise AssertionError('the guest was restarted')
    mend()
    e2e.wait_healthy(lab, name)
    if lab.qemu_processes(uuid) != pid:
        raise AssertionError('the guest was restarted by the repair')
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name=name)
    row = lab.instance(name, 'replica', 'snodes')
    printed = lab.printed(name, uuid, 'node2')
    counts = [e2e.fettlelib.image_count(image('node2', uuid)),
              e2e.fettlelib.image_count(image(row['snodes'][0], uuid, row['replica']))]
    if min(counts) < printed:
        raise AssertionError(f'printed {printed}, copies have {counts}')
    lab.do('OP_INSTANCE_REMOVE', instance_name=name)


@title('/power/secondary-cut#SAF-12,SAF-13,SAF-15,SAF-18,ARP-09,ARP-67')
def test_secondary_cut():
    def fault():
        lab.lab('power', 'node3', 'off')
        offline('node3', 'test: the power was cut')
    replica_fault('second', fault, lambda: bring_back('node3'))


@title('/power/secondary-link-cut#SAF-13,SAF-15')
def test_secondary_link_cut():
    replica_fault('unplugged', lambda: lab.lab('link', 'node3', 'down'), lambda: lab.lab('link', 'node3', 'up'))


@title('/power/replica-disk-full#SAF-13,SAF-14')
def test_replica_disk_full():
    replica_fault('full', lambda: lab.lab('disk-fill', 'node3', '--leave', '0'), lambda: lab.lab('disk-unfill', 'node3'))


@title('/power/replica-disk-fails#SAF-13,SAF-14')
def test_replica_disk_fails():
    def mend():
        lab.lab('power', 'node3', 'off')
        lab.lab('power', 'node3', 'on')
    replica_fault('broken', lambda: lab.lab('disk-fail', 'node3'), mend)


@title('/power/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    print(f'# seed {SEED}')
    with e2e.new_lab() as lab:
        lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
        e2e.run(test_failover_keeps_a_replica, test_primary_cut, test_link_cut_first, test_secondary_cut, test_secondary_link_cut,
                test_replica_disk_full, test_replica_disk_fails, test_logs)
