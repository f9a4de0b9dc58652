#!/usr/bin/env python3
"""Rows of the table of repair operations that need two nodes in a bad state, and diskless guests: on real guests.

One lab goes through the table: node2 and node3 are drained, node2 is lost, node3 is lost, both come back. Each guest has a policy only
when its row has come, and then no more than the type that the table names. The other rows are in test_repair.py.
"""
import os
import re

import e2e
import repairs
from e2e import fettlelib, title, wait_until
from repairs import PREFIX, check_counts, opcodes, placed, result, show, tags

NODES = [f'node{number}' for number in range(1, 5)]
WELL = ['node1', 'node4']
STATEMENT = 'test: the power was cut'
GUESTS = {
    'spare': ('mirror', 'node1', 'node3'),
    'both': ('mirror', 'node2', 'node3'),
    'local': ('file', 'node3', None),
    'bare': ('diskless', 'node2', None),
    'half': ('mirror', 'node2', 'node3'),
    'crashed': ('diskless', 'node2', None),
    'gone': ('mirror', 'node2', 'node3'),
}
OPCODES = {
    'replace-disks': ['INSTANCE_REPLACE_DISKS'],
    'migrate': ['INSTANCE_MIGRATE'],
    'failover': ['INSTANCE_FAILOVER'],
    'recreate-disks and reinstall': ['INSTANCE_RECREATE_DISKS', 'INSTANCE_REINSTALL', 'INSTANCE_STARTUP'],
}
lab = None
uuids = {}
pids = {}
lost = {}  # the last count on record of each guest when its primary node was lost


# --- what is done to the nodes ---

def drain(node):
    return {'OP_ID': 'OP_NODE_SET_PARAMS', 'node_name': node, 'drained': 'yes'}


def declare_lost(node):
    return {'OP_ID': 'OP_NODE_SET_PARAMS', 'node_name': node, 'offline': 'yes', 'statement': STATEMENT}


def allow(name, kind):
    return {'OP_ID': 'OP_TAGS_SET', 'kind': 'instance', 'name': name, 'tags': [PREFIX + kind]}


def remove(name):
    return {'OP_ID': 'OP_INSTANCE_REMOVE', 'instance_name': name, 'shutdown_timeout': 0}


def one_job(*steps):
    status, results = lab.wait_job(lab.submit(*steps), 120)
    assert status == 'success', (status, results)


def make_guests():
    jobs = []
    for name, (template, primary, secondary) in GUESTS.items():
        more = {} if template == 'diskless' else {'disks': [{'size': 8}], 'os_type': 'tick'}
        more |= {'snode': secondary} if secondary else {}
        jobs.append(lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': name, 'disk_template': template, 'memory': 8,
                                'pnode': primary, **more}))
    for job, (name, (template, primary, _)) in zip(jobs, GUESTS.items()):
        status, results = lab.wait_job(job, 120)
        assert status == 'success', (name, status, results)
        uuids[name] = e2e.uuid_of(lab, name)
        pids[name] = lab.qemu_processes(uuids[name])
        if template != 'diskless':
            e2e.wait_counting(lab, name, uuids[name], primary)


def two_are_drained():
    one_job(drain('node2'), drain('node3'), allow('spare', 'fix-storage'), allow('both', 'migrate'), allow('bare', 'migrate'),
            allow('local', 'reinstall'))


def one_is_lost():
    for name in ('spare', 'both', 'bare'):
        result(name, 'success')
    one_job(*map(remove, ('spare', 'both', 'bare', 'local')))
    lose('node2', 'half', 'gone')
    one_job(declare_lost('node2'), allow('half', 'failover'), allow('crashed', 'failover'))


def both_are_lost():
    for name in ('half', 'crashed'):
        result(name, 'success')
    assert not tags('gone', 'pending') and placed('gone') == ['node2', 'node3'], 'nobody has allowed anything'
    lose('node3')
    one_job(declare_lost('node3'), allow('gone', 'reinstall'))


def both_come_back():
    result('gone', 'success')
    for node in ('node2', 'node3'):
        lab.lab('power', node, 'on')
    one_job(*({'OP_ID': 'OP_NODE_SET_PARAMS', 'node_name': node, 'offline': 'no'} for node in ('node2', 'node3')))
    wait_until('both answer', lambda: all(row['mfree'] is not None for row in lab.query('node', ['mfree'])), 60)


def lose(node, *names):
    lab.lab('power', node, 'off')
    lost.update({name: lab.printed(name, uuids[name], node) for name in names})


ahead = [make_guests, two_are_drained, one_is_lost, both_are_lost, both_come_back]


def until(event):
    """The events before it too, each once."""
    while event in ahead:
        ahead.pop(0)()


# --- what is looked at ---

def check_repair(name, kind, steps, *seen):
    """It ended well, took these steps under one id, and tells what it saw and decided."""
    found, jobs = result(name, 'success')
    assert (found, opcodes(jobs)) == (kind, [opcode for step in steps for opcode in OPCODES[step]]), (found, opcodes(jobs))
    assert len(tags(name, 'result')) == 1 and not tags(name, 'pending'), lab.instance(name, 'tags')
    text = show(name)
    told = re.findall(r'Step (\d+) of the repair: ([a-z -]+)\.', text)
    assert told == [(str(number), step) for number, step in enumerate(steps, 1)], text
    for job in jobs:
        assert re.search(rf'^{job} +success ', text, re.M), text
    evidence = {line for one in lab.json('why', name) for line in one['evidence']}
    assert evidence.issuperset(seen), f'{set(seen) - evidence} is not in {evidence}'


def starts(name, node):
    """The counts that the guest found on its disk at each boot there."""
    try:
        with open(lab.console_path(name, uuids[name], node), 'rb') as file:
            return [int(count) for count in re.findall(rb'START (\d+)\r\n', file.read())]
    except FileNotFoundError:
        return []


def boots(name):
    return {node: found for node in NODES if (found := starts(name, node))}


def check_goes_on(name, node):
    """It counts there, in the only process; no count was printed twice."""
    e2e.wait_counting(lab, name, uuids[name], node, lab.printed_anywhere(name, uuids[name]))
    check_one(name)
    check_counts(name, uuids[name])


def check_one(name):
    wait_until(f'one process of {name}', lambda: len(lab.qemu_processes(uuids[name])) == 1, 60)


def check_replica(name):
    """What the guest has printed is on the other node too."""
    row = lab.instance(name, 'pnode', 'snodes', 'replica', 'replica.state')
    assert row['replica.state'] == 'in-sync', row
    printed = lab.printed(name, uuids[name], row['pnode'])
    image = f'{uuids[name]}.{row["replica"]}.disk0.raw'
    count = fettlelib.image_count(os.path.join(lab.root(row['snodes'][0]), 'var', 'disks', image))
    assert count >= printed > 0, f'{name}: {printed} was printed, the replica has {count}'


# --- two nodes are drained ---

@title('/rows/mirror-online-and-drained#ARP-09,ARP-62,ARP-67')
def test_online_and_drained():
    """Another replica; the guest does not notice."""
    until(two_are_drained)
    check_repair('spare', 'fix-storage', ['replace-disks'], 'secondary node node3 is drained')
    assert placed('spare') == ['node1', 'node4'], placed('spare')
    assert lab.qemu_processes(uuids['spare']) == pids['spare'], 'the guest was restarted'
    check_goes_on('spare', 'node1')
    check_replica('spare')


@title('/rows/mirror-drained-and-drained#ARP-10,ARP-61,ARP-62')
def test_drained_and_drained():
    """It leaves both nodes, without a boot."""
    until(two_are_drained)
    check_repair('both', 'migrate', ['replace-disks', 'migrate', 'replace-disks'], 'primary node node2 is drained',
                 'secondary node node3 is drained')
    assert sorted(placed('both')) == WELL, placed('both')
    check_goes_on('both', placed('both')[0])
    assert boots('both') == {'node2': [0]}, boots('both')
    check_replica('both')


@title('/rows/diskless-drained#ARP-10,ARP-62')
def test_diskless_drained():
    """It migrates: its process is one that waited for what the old one sent."""
    until(two_are_drained)
    check_repair('bare', 'migrate', ['migrate'], 'primary node node2 is drained')
    assert placed('bare')[0] in WELL, placed('bare')
    check_one('bare')
    with open(f'/proc/{lab.qemu_processes(uuids["bare"])[0]}/cmdline', 'rb') as file:
        words = file.read().split(b'\0')
    assert b'-incoming' in words, words


@title('/rows/file-drained-is-left-alone#ARP-62,ARP-68')
def test_local_drained():
    """Its data is there and alive: nothing is done although its policy allows everything."""
    until(two_are_drained)
    wait_until('it is said', lambda: 'Its only data is there and alive: reinstalling would destroy it.' in lab.cli('why', 'local'), 60)
    for name in ('spare', 'both', 'bare'):
        result(name, 'success')
    done = [opcode for opcode in opcodes(repairs.jobs_of('local')) if opcode.startswith('INSTANCE')]
    assert done == ['INSTANCE_CREATE'] and not tags('local', 'pending') and not tags('local', 'result'), done
    assert placed('local') == ['node3'] and lab.qemu_processes(uuids['local']) == pids['local']
    check_goes_on('local', 'node3')


# --- one of them is lost ---

@title('/rows/mirror-offline-and-drained#ARP-11,ARP-61,ARP-62')
def test_offline_and_drained():
    """It is booted once, on the drained node, from a disk that has every count; from there it leaves without a boot."""
    until(one_is_lost)
    check_repair('half', 'failover', ['failover', 'replace-disks', 'migrate', 'replace-disks'],
                 f'primary node node2 is offline: {STATEMENT}', 'secondary node node3 is drained')
    assert sorted(placed('half')) == WELL, placed('half')
    check_goes_on('half', placed('half')[0])
    found = boots('half')
    assert list(found) == ['node2', 'node3'] and len(found['node3']) == 1, found
    assert found['node3'][0] >= lost['half'] > 0, (found, lost)
    check_replica('half')


@title('/rows/diskless-offline#ARP-11,ARP-62')
def test_diskless_offline():
    until(one_is_lost)
    check_repair('crashed', 'failover', ['failover'], f'primary node node2 is offline: {STATEMENT}')
    assert placed('crashed')[0] in WELL, placed('crashed')
    check_one('crashed')
    assert not set(lab.qemu_processes(uuids['crashed'])) & set(pids['crashed'])


# --- both are lost ---

@title('/rows/mirror-offline-and-offline#ARP-12,ARP-62,SAF-22')
def test_offline_and_offline():
    """New disks with the image on them: it counts from the beginning, and has a replica again."""
    until(both_are_lost)
    check_repair('gone', 'reinstall', ['recreate-disks and reinstall'], f'primary node node2 is offline: {STATEMENT}',
                 f'secondary node node3 is offline: {STATEMENT}')
    assert sorted(placed('gone')) == WELL, placed('gone')
    node = placed('gone')[0]
    e2e.wait_counting(lab, 'gone', uuids['gone'], node)
    check_one('gone')
    assert boots('gone') == {'node2': [0], node: [0]}, boots('gone')
    check_replica('gone')


@title('/rows/nodes-that-come-back-run-no-old-copy#SAF-10,SAF-19,SAF-22')
def test_back():
    until(both_come_back)
    e2e.verify_clean(lab, 60)
    for name in ('half', 'crashed', 'gone'):
        check_one(name)
        assert not set(placed(name)) & {'node2', 'node3'}, placed(name)
    check_goes_on('half', placed('half')[0])
    assert lab.printed('gone', uuids['gone'], 'node2') == lost['gone'], 'the copy that was given up ran again'
    assert not lab.printed('gone', uuids['gone'], 'node3')


@title('/rows/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=len(NODES), options=('--replica-lost-ms', '2000', '--watcher-interval-ms', '500')) as lab:
        repairs.lab = lab
        e2e.run(test_online_and_drained, test_drained_and_drained, test_diskless_drained, test_local_drained,
                test_offline_and_drained, test_diskless_offline, test_offline_and_offline, test_back, test_logs)
