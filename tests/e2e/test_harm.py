#!/usr/bin/env python3
"""Rounds of faults of the master while instances are created, moved, removed and grown: recovery harms nothing.

In each round a removal dies one of whose nodes is then off, so it is looked at in vain, and that is counted; and a creation whose guest runs
and whose second node never made its image. Others are begun, and the master's power is cut, its wconfd killed or stopped. Once all hosts are
back no task is left, no guest that ran and nothing that was whole has been stopped or removed, and no count was lost. FETTLE_ROUNDS sets how many
rounds, FETTLE_SEED which ones, FETTLE_LONG=1 makes it 100.
"""
import os
import random
import time

import e2e
import recoveries
import test_crash as crash
import test_rounds as rounds
from e2e import fettlelib, title, wait_until
from load import FINAL
from recoveries import STILL, guest_on, images, jobs_of

FAULTS = ('power of the master', 'kill of the master', 'pause of the master')
ROUNDS = int(os.environ.get('FETTLE_ROUNDS', '100' if e2e.LONG else '1'))
HOSTS = ('node3', 'node4')  # of guests; their power is not cut, and neither becomes the master
OFF = 'node5'
SIZE_MIB = 16  # at which a disk that grows is made anew
BESIDE = {  # what is done in each round to an instance of its own, beside the creation
    'moved': {'OP_ID': 'OP_INSTANCE_MIGRATE'},
    'grown': {'OP_ID': 'OP_INSTANCE_GROW_DISK', 'disk': 0, 'amount': 1},
    'removed': {'OP_ID': 'OP_INSTANCE_REMOVE', 'shutdown_timeout': 0},
}
SECONDARIES = {**dict.fromkeys(BESIDE, 'node4'), 'left': OFF}
lab = None
relay = None


# --- what is there ---

def processes(uuid):
    """{pid: node} of it."""
    return {pid: node for pid, (node, words) in recoveries.processes().items() if uuid.encode() in words}


def running(uuid):
    """{pid: node} of what runs of it, by its own word."""
    return {pid: node for pid, node in processes(uuid).items() if guest_on(node, uuid) == 'running'}


def own_images(uuid):
    """Where its own images are."""
    return {node for node in HOSTS if recoveries.whole(node, uuid, 1)}


def rest(uuids):
    """{name: (guests that run, own images)} once that does not change any more: what dead jobs have sent has been done."""
    last = []
    def same():
        last[:] = [*last[-1:], {name: (running(uuid), own_images(uuid)) for name, uuid in uuids.items()}]
        return len(last) == 2 and last[0] == last[1] and last[1]
    return wait_until('what dead jobs have sent is done', same, 60, step=0.4)


def looks(uuid):
    """How often the hosts of an instance were looked at in vain, as the master's own store has it; 0: not once, or it cannot be read now."""
    text = e2e.content_of(lab, lab.master)[1].get(f'stuck/instance/{uuid}')
    return recoveries.json.loads(text.split(' ', 1)[1])['looks'] if text else 0


def counted_on(uuid, before):
    """Whether more was counted than before; never less."""
    now = looks(uuid)
    assert not now or now >= before, f'{now} looks after {before}'
    return now > before


# --- a round ---

def prepare():
    """Each instance is there, runs and is whole. {name: UUID}"""
    row = lab.instance('grown', 'disk.sizes')
    if row and row['disk.sizes'][0] >= SIZE_MIB:
        lab.do('OP_INSTANCE_REMOVE', instance_name='grown', shutdown_timeout=0)
    jobs = []
    for name, secondary in SECONDARIES.items():
        row = lab.instance(name, 'admin_state')
        if not row:
            jobs.append(lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': name, 'pnode': 'node3', 'snode': secondary, **STILL}))
        elif row['admin_state'] == 'down':
            jobs.append(lab.submit({'OP_ID': 'OP_INSTANCE_STARTUP', 'instance_name': name}))
    assert all(lab.wait_job(job)[0] == 'success' for job in jobs), [lab.job_status(job) for job in jobs]
    for name in SECONDARIES:
        e2e.wait_mended(lab, name)
    return {name: e2e.uuid_of(lab, name) for name in SECONDARIES}


def die(opcode, name, *at):
    """Its job dies at a request, its mark is left, and nobody looks at it until the watcher goes on."""
    lab.lab('pause', f'watcher@{lab.master}')
    death = relay.on_request = recoveries.Death(at)
    job = death.submit({**opcode, 'instance_name': name})
    assert lab.wait_job(job)[0] == 'error' and death.held and recoveries.task(name), lab.job_status(job)
    relay.on_request = None
    return e2e.uuid_of(lab, name)


def leave(uuids):
    """What dead jobs have left: a removal that cannot be judged, which has been counted, and a creation of which nobody has looked at anything."""
    die(BESIDE['removed'], 'left', OFF, 'disks_remove', 0)
    lab.lab('power', OFF, 'off')
    lab.lab('resume', f'watcher@{lab.master}')
    wait_until('it was looked at in vain', lambda: looks(uuids['left']) > 1, 60)
    create = {'OP_ID': 'OP_INSTANCE_CREATE', 'pnode': 'node3', 'snode': 'node4', **STILL}
    uuids['created'] = die(create, 'created', 'node3', 'mirror_wait', 0)
    for image in images('node4', uuids['created']):
        os.unlink(os.path.join(lab.root('node4'), 'var', 'disks', image))


def play(fault, chance, uuids, jobs):
    """The fault of the master, while one of these jobs is at work. What was there when all were dead and nobody was master; None: they live on."""
    name = chance.choice(tuple(jobs))
    wait_until(f'{name} is under way', lambda: recoveries.task(name) or lab.job_status(jobs[name])[0] in FINAL, step=0.02)
    time.sleep(0.3 * chance.random())
    if not fault.startswith('power'):
        lab.lab('resume', f'watcher@{lab.master}')
        rounds.play(fault, chance)
        return None
    old = lab.master
    lab.lab('power', old, 'off')
    there = rest(uuids)
    rounds.person()
    lab.lab('power', old, 'on')
    return there


def check_whole(name, uuid, there):
    """What ran or was whole when its job was dead is so still."""
    now, pids = lab.instance(name, 'uuid'), running(uuid)
    if there[0]:
        assert now and pids == there[0], f'{name} ran as {there[0]}, and is {now}, {pids}'
    elif there[1]:
        assert now and own_images(uuid) >= there[1], f'{name} was whole on {there[1]}, and is {now}, {own_images(uuid)}'


def check_on(name, uuid, before):
    """It has run all the time."""
    pids = processes(uuid)
    assert pids == before if name != 'moved' else len(pids) == 1, f'{name} ran as {before}, and is there as {pids}'
    wait_until(f'{name} says that it runs', lambda: running(uuid) == pids, 30)  # on a busy machine not at once
    assert lab.instance(name, 'admin_state')['admin_state'] == 'up', f'{name} is to be down'
    for word in ('STARTUP', 'SHUTDOWN'):
        assert not jobs_of(f'INSTANCE_{word}({name})'), f'{word} of {name}: {jobs_of(f"INSTANCE_{word}({name})")}'


def one_round(fault, chance):
    """How many of its jobs have died."""
    global relay  # pylint: disable=global-statement
    uuids = prepare()
    leave(uuids)
    before = {name: running(uuid) for name, uuid in uuids.items()}
    assert {name for name, pids in before.items() if len(pids) == 1} == {*BESIDE, 'created'}, before
    left = before['left'], own_images(uuids['left'])
    jobs = {name: lab.submit({**opcode, 'instance_name': name}) for name, opcode in BESIDE.items()}
    counted = looks(uuids['left'])
    there = play(fault, chance, uuids, jobs)
    wait_until('somebody serves', lambda: rounds.serves(lab.master, *rounds.NODES), 60)
    wait_until('it is counted on', lambda: counted_on(uuids['left'], counted), 60)
    lab.lab('power', OFF, 'on')
    ends = {name: lab.wait_job(job, 120)[0] for name, job in jobs.items()}
    wait_until('no task is left', lambda: not lab.query('task', ['subject_name']), 120)
    for name in ('created', 'moved', 'grown'):
        check_on(name, uuids[name], before[name])
    check_whole('left', uuids['left'], left)
    if there:
        check_whole('removed', uuids['removed'], there['removed'])
    else:
        assert (lab.instance('removed', 'uuid') is None) == (ends['removed'] == 'success'), ends
    print(f'# {fault}: {counted} looks before, {there and there["removed"]}, {ends}', flush=True)
    lab.do('OP_INSTANCE_REMOVE', instance_name='created', shutdown_timeout=0)
    if there:  # another one is the master
        relay = recoveries.Relay()
    return sum(end == 'error' for end in ends.values())


@title('/harm/rounds#RCV-05,RCV-11,RCV-22,RCV-38,SAF-81,SAF-82')
def test_harm():
    chance, died = random.Random(rounds.SEED), 0
    for number in range(ROUNDS):
        fault = FAULTS[number % len(FAULTS)]
        try:
            died += one_round(fault, chance)
        except (AssertionError, TimeoutError, fettlelib.CommandFailed, fettlelib.LuxiError) as error:
            raise AssertionError(f'round {number}, {fault}: {error}') from error
    assert died >= ROUNDS // 6, f'only {died} jobs have died in {ROUNDS} rounds'
    wait_until('nothing is left of it', lambda: not crash.strangers(), 60)


@title('/harm/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    options = ('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '3')
    with e2e.new_lab(nodes=5, options=options) as lab:
        recoveries.lab = crash.lab = rounds.lab = lab
        recoveries.NODES = tuple(f'node{number + 1}' for number in range(lab.nodes))
        recoveries.install_still()
        lab.cli('cluster', 'modify', '--recovery-resync-interval', '1', '--recovery-resync-count', '1000')
        lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:fix-storage')
        relay = recoveries.Relay()
        e2e.run(test_harm, test_logs)
