#!/usr/bin/env python3
"""What `collect` tells of real guests: each state by its name, drives, taps and images as they are (RCV-16); one that crashes while its job dies."""
import os
import re
import signal

import bus
import e2e
import recoveries
import test_crash as crash
from e2e import title, wait_until
from recoveries import STILL, events, wait_settled

MIB = 1 << 20
lab = None
relay = None


def collect(node, name):
    """What a node shows of an instance; nobody is refused anything by that."""
    now = recoveries.record(name)
    subject = {'instance': now['uuid'], 'disks': now['disks'], 'disk_template': now['disk_template']}
    answer = bus.ask(lab, lab.master, node, 'watcher', 'collect', {'subjects': [subject]})
    sight, = answer['result']['sights']
    assert (sight['instance'], sight['busy'], sight['silent']) == (now['uuid'], '', ''), sight
    return sight


def check_command(name, *sights):
    """`fettle recovery collect` of a person shows what the nodes have just answered: (node, that)."""
    hosts = {host['node']: host for host in lab.json('recovery', 'collect', 'instance', name)['hosts']}
    assert {host['answer'] for host in hosts.values()} == {'given'}, hosts
    for node, sight in sights:
        assert {**hosts[node]['sight'], 'taken_us': 0} == {**sight, 'taken_us': 0}, (node, hosts[node]['sight'], sight)
        assert hosts[node]['sight']['taken_us'] > sight['taken_us'] and hosts[node]['boot_id'], (node, hosts[node], sight)


def sizes(sight):
    return [disk['bytes'] for disk in sight['disks']]


def own_images(sight):
    return [(image['replica'], image['disks']) for image in sight['images']]


def ports_of(node):
    """What is on its bridge."""
    return set(re.findall(r'^\d+: ([^:@]+)', lab.exec(node, 'ip', '-o', 'link', 'show', 'master', 'br0'), re.M))


def create(name, template='mirror', **more):
    where = {'snode': 'node3'} if template == 'mirror' else {}
    lab.do('OP_INSTANCE_CREATE', instance_name=name, pnode='node2', **{**STILL, **where, 'disk_template': template, **more})
    return e2e.uuid_of(lab, name)


def remove(name):
    lab.do('OP_INSTANCE_REMOVE', instance_name=name, shutdown_timeout=0)


@title('/collect/running-paused-shut-off-absent#RCV-15,RCV-16,RCV-20')
def test_states():
    uuid = create('web1', disks=[{'size': 4}, {'size': 6}])
    e2e.wait_healthy(lab, 'web1')
    before = recoveries.everything()
    generation, replica = lab.instance('web1', 'generation', 'replica').values()
    sight = collect('node2', 'web1')
    assert (sight['state'], sight['generation'], sight['crashed'], sight['migration']) == ('running', generation, '', ''), sight
    assert sizes(sight) == [4 * MIB, 6 * MIB] and own_images(sight) == [('', 3)], sight
    assert len(sight['drives']) == 2, sight
    other = collect('node3', 'web1')
    assert other['state'] == 'absent' and own_images(other) == [(replica, 3)] and not other['drives'] and not any(sizes(other)), other
    assert sight['taken_us'] <= other['taken_us'], (sight, other)
    check_command('web1', ('node2', sight), ('node3', other))
    with recoveries.monitor('node2', uuid) as qmp:
        qmp.execute('stop')
        sight = collect('node2', 'web1')
        assert (sight['state'], sight['generation'], len(sight['drives'])) == ('paused', generation, 2), sight
        check_command('web1', ('node2', sight))
        qmp.execute('cont')
    assert collect('node2', 'web1')['state'] == 'running'
    assert recoveries.everything() == before, 'who looks changes nothing'
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='web1', timeout=0)
    sight = collect('node2', 'web1')
    assert (sight['state'], sight['crashed'], sizes(sight), sight['drives']) == ('absent', '', [4 * MIB, 6 * MIB], []), sight
    # Grown by hand, cut off by hand: as they really are, not as the record has them.
    path = os.path.join(lab.root('node2'), 'var', 'disks', f'{uuid}.disk1.raw')
    os.truncate(path, 8 * MIB)
    assert sizes(collect('node2', 'web1')) == [4 * MIB, 8 * MIB]
    os.rename(path, path + '.away')
    sight = collect('node2', 'web1')
    assert sizes(sight) == [4 * MIB, 0] and ('', 1) in own_images(sight), sight
    check_command('web1', ('node2', sight))
    os.rename(path + '.away', path)
    os.truncate(path, 6 * MIB)
    remove('web1')


@title('/collect/crashed#RCV-16')
def test_crashed():
    """Its process is killed while its node daemon lives; what is shut off by its node is not crashed."""
    lab.lab('pause', f'watcher@{lab.master}')
    try:
        uuid = create('web2', 'file')
        pid, = lab.qemu_processes(uuid)
        os.kill(pid, signal.SIGKILL)
        sight = wait_until('its node knows', lambda: (now := collect('node2', 'web2'))['crashed'] and now)
        assert (sight['state'], sizes(sight), own_images(sight), sight['drives']) == ('absent', [4 * MIB], [('', 1)], []), sight
    finally:
        lab.lab('resume', f'watcher@{lab.master}')
    wait_until('it is started again', lambda: lab.instance('web2', 'status')['status'] == 'running' and lab.qemu_processes(uuid), 60)
    assert collect('node2', 'web2')['crashed'] == '', 'it runs, and says that it crashed'
    remove('web2')


@title('/collect/incoming#RCV-16')
def test_incoming():
    """The job dies when the target waits: neither end is taken for the other. Then it is settled where it runs."""
    uuid = create('web3')
    e2e.wait_healthy(lab, 'web3')
    pids = lab.qemu_processes(uuid)
    death = relay.on_request = recoveries.Death(('node2', 'migration_start', 0))
    lab.lab('pause', f'watcher@{lab.master}')
    try:
        job = death.submit({'OP_ID': 'OP_INSTANCE_MIGRATE', 'instance_name': 'web3'})
        assert lab.wait_job(job)[0] == 'error' and death.held
        migration = recoveries.record('web3')['migration']
        source, target = collect('node2', 'web3'), collect('node3', 'web3')
        assert (source['state'], target['state'], target['migration']) == ('running', 'incoming', migration), (source, target)
        assert migration and target['generation'] != source['generation'] and len(target['drives']) == 1, target
    finally:
        relay.on_request = None
        lab.lab('resume', f'watcher@{lab.master}')
    wait_settled('web3')
    wait_until('its target does not wait any more', lambda: lab.qemu_processes(uuid) == pids)
    assert collect('node3', 'web3')['state'] == 'absent'
    e2e.wait_healthy(lab, 'web3')
    remove('web3')


@title('/collect/taps#RCV-16')
def test_taps():
    before = ports_of('node2')
    create('web4', 'diskless', disks=[], os_type='', nics=[{}, {}])
    made = ports_of('node2') - before
    sight = collect('node2', 'web4')
    assert {tuple(tap.split()) for tap in sight['taps']} == {(name, 'br0') for name in made} and len(made) == 2, (sight, made)
    assert sight['images'] == [] and sight['disks'] == [], sight
    nowhere = collect('node3', 'web4')
    assert (nowhere['state'], nowhere['images'], nowhere['taps'], nowhere['crashed']) == ('absent', [], [], ''), nowhere
    remove('web4')


@title('/collect/crashed-in-mid-task#RCV-80,RCV-29')
def test_crash_in_mid_task():
    """Its job dies, and then its process: it counts as shut off, with an alert, and nothing is removed. Who starts it is not undone by
    whoever closes its last run."""
    uuid = create('web5', 'file')
    death = relay.on_request = recoveries.Death(('node2', 'guest_stop', 0))
    lab.lab('pause', f'watcher@{lab.master}')
    try:
        assert lab.wait_job(death.submit({'OP_ID': 'OP_INSTANCE_REMOVE', 'instance_name': 'web5', 'shutdown_timeout': 0}))[0] == 'error'
        assert recoveries.task('web5') == 'removing'
        pid, = lab.qemu_processes(uuid)
        os.kill(pid, signal.SIGKILL)
        wait_until('its node knows', lambda: collect('node2', 'web5')['crashed'])
        before = recoveries.at_rest()
    finally:
        relay.on_request = None
        lab.lab('resume', f'watcher@{lab.master}')
    wait_settled('web5')
    assert recoveries.everything() == before, 'something was changed'
    assert [(row['rule'], row['new']) for row in events('web5')] == [('RCV-70', 'stopped')], events('web5')
    assert [row['level'] for row in events('web5', 'alert')] == ['warning'], events('web5', 'alert')
    lab.do('OP_INSTANCE_STARTUP', instance_name='web5')
    remove('web5')


@title('/collect/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab() as lab:
        recoveries.lab = crash.lab = lab
        recoveries.install_still()
        relay = recoveries.Relay()
        e2e.run(test_states, test_crashed, test_incoming, test_taps, test_crash_in_mid_task, test_logs)
