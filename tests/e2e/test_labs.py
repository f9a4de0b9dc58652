#!/usr/bin/env python3
"""Two labs of one user at once, with a cluster and guests in each, and processes of neither that have copied the mounts of both:
what is done to one lab ends, and does not touch the other."""
import contextlib
import os
import subprocess

import e2e
from e2e import fettlelib, title

one = two = None
uuids = {}


@contextlib.contextmanager
def stranger(*words):
    """A process of somebody else that sleeps with the mounts that it has copied."""
    with subprocess.Popen([*words, 'sh', '-c', 'echo x && exec sleep 3600'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.read(1) == b'x', words
            yield
        finally:
            process.kill()


@contextlib.contextmanager
def network():
    """A network namespace of somebody else."""
    name = f'fettle-test-{os.getpid()}'
    subprocess.run(['ip', 'netns', 'add', name], check=True)
    try:
        yield name
    finally:
        subprocess.run(['ip', 'netns', 'del', name], check=True)


def counts_on(lab):
    """Its guest goes on from where it is, and a job is done."""
    uuid = uuids[lab]
    printed = lab.printed('web', uuid, 'node2')
    e2e.wait_counting(lab, 'web', uuid, 'node2', printed)
    assert len(lab.qemu_processes(uuid)) == 1
    lab.do('OP_TEST_DELAY', duration=0)


def processes(lab):
    return {daemon['name'] + '@' + node['name']: daemon['pid'] for node in lab.status()['nodes'] for daemon in node['daemons']}


@title('/labs/two-clusters-at-once')
def test_two():
    """Same names and addresses in both, and neither hears of the other."""
    for lab in (one, two):
        lab.do('OP_INSTANCE_CREATE', instance_name='web', pnode='node2', snode='node1', **e2e.TICK)
        uuids[lab] = e2e.uuid_of(lab, 'web')
    for lab in (one, two):
        e2e.wait_healthy(lab, 'web')
        counts_on(lab)
    assert [lab.query('node', ['name', 'pip']) for lab in (one, two)] == [[
        {'name': f'node{number}', 'pip': fettlelib.address(number)} for number in (1, 2)]] * 2
    assert one.json('cluster', 'info')['uuid'] != two.json('cluster', 'info')['uuid']


@title('/labs/power-cut-beside-copied-mounts')
def test_power():
    before = processes(two)
    for node in ('node2', 'node1'):
        one.lab('power', node, 'off')
    counts_on(two)
    for node in ('node1', 'node2'):
        one.lab('power', node, 'on')
    one.luxi_connection = None
    printed = one.printed('web', uuids[one], 'node2')
    e2e.wait_counting(one, 'web', uuids[one], 'node2', printed)
    assert processes(two) == before, 'daemons of the other lab have ended'
    counts_on(two)
    e2e.verify_clean(two)


@title('/labs/one-is-taken-down')
def test_down():
    before = processes(two)
    e2e.check_logs(one)
    folder, prefix = one.directory, fettlelib.namespace_prefix(one.directory)
    one.lab('down')
    assert not os.listdir(folder), os.listdir(folder)
    for words, mark in ((['ip', 'netns', 'list'], prefix), (['losetup', '--all'], folder), (['mount'], folder)):
        left = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert mark not in left, left
    assert processes(two) == before, 'daemons of the other lab have ended'
    counts_on(two)
    e2e.verify_clean(two)
    e2e.check_logs(two)


with contextlib.ExitStack() as stack:
    one = stack.enter_context(e2e.new_lab(nodes=2))
    two = stack.enter_context(e2e.new_lab(nodes=2))
    stack.enter_context(stranger('unshare', '--mount', '--propagation', 'private'))
    stack.enter_context(stranger('ip', 'netns', 'exec', stack.enter_context(network())))
    e2e.run(test_two, test_power, test_down)
