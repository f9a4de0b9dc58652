#!/usr/bin/env python3
"""Recovery of what dead jobs leave on real guests, at every request and every outside call of ten operations.

A job dies at a request that it sends to a node. While the queue takes nothing new recovery alone is at work: what it says is what is there by
our own eyes, no image and no process is another one. Then the request comes after all, and is refused. Then the queue takes jobs again, all is
settled as the table of tasks has it (docs/reference/tasks.md), and an ordinary operation is accepted. FETTLE_LONG=1 takes all operations, all
requests, and all outside calls of the job's process; else a sample. By hand: FETTLE_CALLS="35-50 41" walks only these calls.
"""
import collections
import functools
import os
import re
import threading

import bus
import e2e
import recoveries
import test_archive as archive
import test_crash as crash
from e2e import title, wait_until
from recoveries import STILL, events, everything, guest_on, images, record, task, wait_settled, whole

SAMPLE = {'creating': ('replica_open', 'guest_start'), 'removing': ('disks_remove',)}  # of `make check`: at these requests
CALLED = ('migrating',)  # … and of these at two of their calls
lab = None
relay = None
number = 0

# How an operation begins with an instance: the opcode; whether the guest runs before, None: there is none; the template.
Operation = collections.namedtuple('Operation', 'opcode before template', defaults=('mirror',))
OPERATIONS = {
    'creating': Operation({'OP_ID': 'OP_INSTANCE_CREATE', 'pnode': 'node2', 'snode': 'node3', **STILL}, None),
    'starting': Operation({'OP_ID': 'OP_INSTANCE_STARTUP'}, False),
    'stopping': Operation({'OP_ID': 'OP_INSTANCE_SHUTDOWN', 'timeout': 0}, True),
    'failing-over': Operation({'OP_ID': 'OP_INSTANCE_FAILOVER', 'shutdown_timeout': 0}, True),
    'replacing-disks': Operation({'OP_ID': 'OP_INSTANCE_REPLACE_DISKS', 'mode': 'replace_on_secondary'}, True),
    'removing': Operation({'OP_ID': 'OP_INSTANCE_REMOVE', 'shutdown_timeout': 0}, True),
    'migrating': Operation({'OP_ID': 'OP_INSTANCE_MIGRATE'}, True),
    'growing-disk': Operation({'OP_ID': 'OP_INSTANCE_GROW_DISK', 'disk': 0, 'amount': 2}, True),
    'recreating-disks': Operation({'OP_ID': 'OP_INSTANCE_RECREATE_DISKS'}, False, 'file'),
    'reinstalling': Operation({'OP_ID': 'OP_INSTANCE_REINSTALL', 'os_type': 'still'}, False),
}


# --- before ---

def prepare(mark):
    """An instance of its own to which the operation can be done: (name, opcode)."""
    global number  # pylint: disable=global-statement
    number += 1
    name, operation = f'{mark.split("-", maxsplit=1)[0]}{number}', OPERATIONS[mark]
    if operation.before is not None:
        where = {'snode': 'node3'} if operation.template == 'mirror' else {}
        lab.do('OP_INSTANCE_CREATE', instance_name=name, pnode='node2',
               **{**STILL, **where, 'disk_template': operation.template, 'start': operation.before})
    if operation.before:
        e2e.wait_healthy(lab, name)
    if mark == 'recreating-disks':  # of a disk that is there nothing is made anew
        uuid = e2e.uuid_of(lab, name)
        for image in images('node2', uuid):
            os.unlink(os.path.join(lab.root('node2'), 'var', 'disks', image))
    return name, {**operation.opcode, 'instance_name': name}


# --- what the table says ---

def seen(name):
    """Of an instance by our own eyes: "running", "held" by a process that does not run, or "none"; and its disks: "whole", "part", "none"."""
    row = lab.instance(name, 'uuid', 'pnode', 'snodes', 'disk.count')
    hosts = [row['pnode'], *(row['snodes'] or [])]
    guests = {node: guest_on(node, row['uuid']) for node in recoveries.NODES}
    guest = 'running' if guests[row['pnode']] == 'running' else 'held' if any(guests.values()) else 'none'
    some = any(images(node, row['uuid']) for node in hosts)
    disks = 'whole' if whole(row['pnode'], row['uuid'], row['disk.count']) else 'part' if some else 'none'
    return guest, disks


def has_replica(name):
    row = lab.instance(name, 'uuid', 'snodes', 'replica', 'replica.state')
    if not row['replica'] or row['replica.state'] == 'stale':
        return True
    return f'{row["uuid"]}.{row["replica"]}.disk0.raw' in images(row['snodes'][0], row['uuid'])


POWER = {'running': 'active', 'none': 'stopped', 'held': 'finishing'}
AS_RECORDED = {'running': 'active', 'none': 'stopped', 'held': 'stopped'}


def expected(mark, name):
    """(rule, new state) of what is there."""
    guest, disks = seen(name)
    if mark in ('creating', 'removing'):
        rule = 'RCV-47' if mark == 'creating' else 'RCV-70'
        if guest == 'held':
            return f'D9/{mark}', 'finishing'
        if mark == 'removing' and (guest, disks) == ('none', 'none'):
            return rule, 'removed'
        return rule, POWER[guest] if disks == 'whole' and has_replica(name) else 'finishing'
    if mark in ('starting', 'stopping'):
        return 'D9/' + mark if guest == 'held' else {'starting': 'RCV-54', 'stopping': 'RCV-53'}[mark], POWER[guest]
    if mark == 'migrating':
        return ('RCV-69', 'finishing') if on_its_way(name) else ('D9/migrating', AS_RECORDED[guest])
    if mark == 'growing-disk':
        return 'D9/growing-disk', AS_RECORDED[guest] if has_its_size(name) else 'finishing'
    if mark == 'reinstalling':
        return 'RCV-49', POWER[guest] if is_held(name) and guest == 'none' else 'finishing'
    if mark == 'recreating-disks':
        return 'D9/recreating-disks', 'finishing'
    return f'D9/{mark}', AS_RECORDED[guest]


def on_its_way(name):
    return bool(record(name).get('migration'))


def is_held(name):
    return bool(record(name).get('holder'))


def has_its_size(name):
    now = record(name)
    folder = os.path.join(lab.root(lab.instance(name, 'pnode')['pnode']), 'var', 'disks')
    return all(os.path.getsize(os.path.join(folder, f'{now["uuid"]}.disk{at}.raw')) >> 20 >= disk['size'] for at, disk in enumerate(now['disks']))


# --- afterwards ---

def accepts_an_operation(mark, name):
    """What is on record takes the next operation as ever, and is removed by one."""
    row = lab.instance(name, 'status')
    if row is None:
        assert mark in ('creating', 'removing'), f'{name} is gone'
        lab.do('OP_INSTANCE_CREATE', instance_name=name, pnode='node2', snode='node3', **STILL)
    elif row['status'] in ('running', 'ERROR_up'):
        lab.do('OP_INSTANCE_SHUTDOWN', instance_name=name, timeout=0)
        lab.do('OP_INSTANCE_STARTUP', instance_name=name)
    else:
        lab.do('OP_INSTANCE_STARTUP', instance_name=name)
    uuid, node = lab.instance(name, 'uuid', 'pnode').values()
    assert guest_on(node, uuid) == 'running' and len(lab.qemu_processes(uuid)) == 1
    lab.do('OP_INSTANCE_REMOVE', instance_name=name, shutdown_timeout=0)


def log_of(node):
    with open(os.path.join(lab.directory, 'log', node, 'noded.log'), encoding='utf-8', errors='replace') as file:
        return file.read()


def check_refused(late, uuid, before):
    """It comes when its job has been given up: it is told, and nothing is done."""
    answer = relay.deliver(late)
    if uuid in str(late.args):
        words = f'job {late.job} has been given up for instance "'
        said = answer.get('error', {}).get('message', '')
        assert said.startswith(words) and said.endswith('"; nothing was done'), f'{late.node} has carried out {late.method}: {answer}'
        wait_until(f'{late.node} tells of it', lambda: words in log_of(late.node), 20)
    check_same(before, f'{late.method} came late to {late.node}')


def check_same(before, what):
    """No other image, and no other process."""
    now = everything()
    files = sorted(name for name, _ in before[0].items() ^ now[0].items())
    assert now == before, f'{what}: {sorted(set(files))} and processes {before[1]}, {now[1]} are not as they were'


def recovery_alone(mark, name, late):
    """What it does by itself; whether the job had left a mark."""
    if not task(name):
        lab.lab('resume', f'watcher@{lab.master}')
        return False
    assert task(name) == mark, (name, task(name))
    uuid, before, want = e2e.uuid_of(lab, name), recoveries.at_rest(), expected(mark, name)
    wish = record(name)['admin_state']
    lab.lab('resume', f'watcher@{lab.master}')
    found = wait_until(f'{name} is recovered', lambda: events(name), 60)
    check_same(before, 'recovery')
    assert [(row['rule'], row['new']) for row in found] == [want], (want, found)
    # A removal has taken the wish away: what it left running is to run.
    assert (mark, want[1]) == ('removing', 'active') or want[1] == 'removed' or record(name)['admin_state'] == wish
    assert (task(name) == '') == (want[1] != 'finishing'), (task(name), want)
    if late:
        check_refused(late, uuid, before)
    return True


def run_point(mark, die):
    """One operation whose job dies by `die`, which submits it, waits for its end, and says what is delivered late."""
    name, opcode = prepare(mark)
    left_before = strangers()
    lab.lab('pause', f'watcher@{lab.master}')
    try:
        late = die(opcode)
        lab.cli('queue', 'drain')
        marked = recovery_alone(mark, name, late)
    finally:
        relay.on_request = None
        lab.lab('resume', f'watcher@{lab.master}')
        lab.cli('queue', 'undrain')
    wait_settled(name)
    assert not events(name, 'alert') or marked
    if OPERATIONS[mark].before is not None or lab.instance(name, 'uuid'):
        wait_until(f'{name} is as it is to be', lambda: is_as_wished(name), 60)
    accepts_an_operation(mark, name)
    wait_until('nothing is left of it', lambda: strangers() <= left_before, 60)
    return marked


def is_as_wished(name):
    row = lab.instance(name, 'admin_state', 'status')
    # Who was not stopped, as the job that was to do it is dead, runs on.
    return not row or row['status'] in (('running',) if row['admin_state'] == 'up' else ('ADMIN_down', 'ERROR_up'))


def strangers():
    return set(crash.strangers())


# --- every request ---

def die_at(at, ends):
    def die(opcode):
        death = relay.on_request = recoveries.Death(at)
        ends.append(lab.wait_job(death.submit(opcode))[0])
        return death.held
    return die


def requests_of(mark):
    """Those of an operation that nobody disturbs, in order: [(node, method)]."""
    name, opcode = prepare(mark)
    count = relay.on_request = recoveries.Death()
    job = count.submit(opcode)
    assert lab.wait_job(job)[0] == 'success', lab.job_status(job)
    relay.on_request = None
    if mark != 'removing':
        lab.do('OP_INSTANCE_REMOVE', instance_name=name, shutdown_timeout=0)
    return count.seen


def walk(mark, places):
    """A job dies at each place, (words for it, what arms that and gives what submits); how the jobs ended, and how many left a mark."""
    marked, ends, failures = 0, [], []
    for where, arm in places:
        try:
            marked += run_point(mark, arm(ends))
        except Exception as error:  # pylint: disable=broad-except
            failures.append(f'{mark}: died at {where}: {error}')
            if not e2e.LONG:
                break
            e2e.mend_labs()
        print(f'# {mark}: died at {where}: {ends[-1:]}, {marked} marks', flush=True)
    assert not failures, '\n'.join(failures)
    return ends, marked


def walk_requests(mark):
    places = [(f'{at[2]}: {at[1]} to {at[0]}', functools.partial(die_at, at)) for at in requests_of(mark)
              if at[1] != 'node_report' and (e2e.LONG or at[1] in SAMPLE[mark])]
    _, marked = walk(mark, places)
    assert marked >= len(places) // 2, f'only {marked} of {len(places)} deaths left a mark'


def request_walker(mark):
    return title(f'/recovery/{mark}/dies-at-a-request#RCV-05,RCV-09,RCV-11,RCV-22,RCV-27,SAF-81,SAF-83')(lambda: walk_requests(mark))


# --- every outside call ---

def arm(ends, **how):
    """The first job that is submitted by what this gives is armed as crash.Arming says."""
    crash.run_number += 1
    arming = crash.Arming()
    crash.restart(f'luxid@{lab.master}', arming.variables('job', **how))
    def die(opcode):
        arming.begin()
        ends.append(lab.wait_job(lab.submit(opcode))[0])
    return die


def calls_of(mark):
    """How many outside calls the process of a job makes that nobody disturbs."""
    log, ends = archive.path(f'calls-{mark}'), []
    submit = arm(ends, log=log)
    name, opcode = prepare(mark)
    submit(opcode)
    assert ends == ['success'], ends
    if mark != 'removing':
        lab.do('OP_INSTANCE_REMOVE', instance_name=name, shutdown_timeout=0)
    return crash.first_life(log)


def chosen_calls(count):
    ranges = [[int(end) for end in word.split('-')] for word in os.environ.get('FETTLE_CALLS', '').split()]
    return [at for ends in ranges for at in range(ends[0], ends[-1] + 1)] or crash.chosen(count)


def walk_calls(mark):
    count = calls_of(mark)
    places = [(f'call {at} of {count}', functools.partial(arm, at=at)) for at in chosen_calls(count)]
    ends, marked = walk(mark, places)
    reached = ends.count('error')
    assert reached >= len(places) * 3 // 4, f'only {reached} of {len(places)} calls were reached'
    assert marked, f'none of {len(places)} deaths left a mark'


def call_walker(mark):
    return title(f'/recovery/{mark}/dies-at-a-call#RCV-05,RCV-09,RCV-11,RCV-22,RCV-27,SAF-81,SAF-83')(lambda: walk_calls(mark))


# --- a store that is older than what has been done ---

HELD = {  # request before which the backup is taken
    'creating': ('node3', 'replica_open', 0),
    'removing': ('node2', 'disks_remove', 0),
    'growing-disk': ('node2', 'disk_grow', 0),
    'migrating': ('node2', 'migration_start', 0),
}
RECORDED = ('uuid', 'pnode', 'disk.sizes', 'status')  # a replica that nobody vouches for any more may be made elsewhere


class Backup:
    """A hook that has a backup taken at a request, which then goes on."""

    def __init__(self, at):
        self.at, self.taken = at, False

    def __call__(self, request):
        if not self.taken and (request.node, request.method, 0) == self.at:
            self.taken = True
            lab.cli('cluster', 'backup', '--to', archive.path('backup'))
        return True


def restore_in_between(mark):
    """The operation ends after its backup; with that restored its record ends as the nodes are."""
    name, opcode = prepare(mark)
    backup = relay.on_request = Backup(HELD[mark])
    job = lab.submit(opcode)
    assert lab.wait_job(job)[0] == 'success' and backup.taken, (lab.job_status(job), backup.taken)
    relay.on_request = None
    row = lab.instance(name, *RECORDED)
    pids = set(recoveries.processes())
    there, history, cluster = recoveries.at_rest(), bus.announced(lab, 'node2')['history'], archive.cluster_name()
    archive.wreck_store()
    archive.restore_surely(cluster)
    wait_until('it is believed', lambda: bus.announced(lab, 'node2')['history'] > history, 60)
    for daemon in ('luxid', 'watcher'):
        lab.lab('restart', f'{daemon}@{lab.master}')
    lab.luxi_connection = None
    wait_until('the cluster answers again', lambda: lab.run('cluster', 'info', check=False)[0] == 0, 60)
    wait_until('all nodes have answered', lambda: 'has not answered this epoch' not in e2e.verify(lab)[1], 60)
    assert task(name) == mark, (task(name), mark)
    check_same(there, 'the restore')
    lab.cli('repair', 'continue', '--statement', 'compared')
    wait_settled(name)
    if row:
        e2e.wait_mended(lab, name)
    now = lab.instance(name, *RECORDED)
    assert now == row and set(recoveries.processes()) == pids, (row, now, pids, recoveries.processes())
    if row:
        accepts_an_operation(mark, name)
    wait_until('nothing is left of it', lambda: not strangers(), 60)


def restorer(mark):
    return title(f'/recovery/{mark}/restored-in-mid-operation#RCV-06')(lambda: restore_in_between(mark))


# --- a node daemon that stands still ---

class Standstill(recoveries.Death):
    """… which is sent to a node daemon that is stopped before it; nobody hears its answer."""

    def die(self, request):
        lab.lab('pause', f'noded@{request.node}')
        relay.send(request)
        recoveries.kill(request.job)


def stand_still(mark):
    """A request lies in the socket of a stopped node daemon while its job dies and recovery gives up asking. When that node goes on nothing
    of the job is done any more, and it is found as it was."""
    name, opcode = prepare(mark)
    death = relay.on_request = Standstill(HELD[mark])
    lab.cli('cluster', 'modify', '--recovery-resync-count', '1', '--recovery-resync-interval', '1')
    lab.lab('pause', f'watcher@{lab.master}')
    try:
        assert lab.wait_job(death.submit(opcode))[0] == 'error' and death.held and task(name) == mark
        lab.cli('queue', 'drain')
        before = recoveries.at_rest()
        lab.lab('resume', f'watcher@{lab.master}')
        blind = wait_until(f'{name} is in ERROR', lambda: events(name), 120)
        assert [(row['rule'], row['new']) for row in blind] == [('RCV-39', 'error')], blind
        check_same(before, 'recovery that cannot ask')
        want = expected(mark, name)
        given_up = relay.answer_to(death.held)['error']
        assert given_up['code'] == 'unknown_result' and given_up['message'].endswith('no sign of life for 4000 ms'), given_up
        lab.lab('resume', f'noded@{death.held.node}')
        *_, found = wait_until(f'{name} is found', lambda: events(name)[1:], 120)
        check_same(before, f'{death.held.method} lay in the socket of {death.held.node}')
        assert (found['rule'], found['new']) == want, (want, found)
    finally:
        relay.on_request = None
        for daemon in (f'watcher@{lab.master}', 'noded@node2', 'noded@node3'):
            lab.lab('resume', daemon)
        lab.cli('queue', 'undrain')
        lab.cli('cluster', 'modify', '--recovery-resync-count', '5', '--recovery-resync-interval', '60')
    wait_settled(name)
    accepts_an_operation(mark, name)
    wait_until('nothing is left of it', lambda: not strangers(), 60)


def stander(mark):
    return title(f'/recovery/{mark}/a-node-daemon-stands-still#RCV-05,RCV-09,RCV-39,RCV-40,SAF-81')(lambda: stand_still(mark))


# --- who is there ---

@title('/recovery/a-person-between#RCV-21,RCV-23,SAF-83')
def test_person():
    """It is found half removed, and the job that is to go on waits for its turn; a person says that it is stopped, and starts it."""
    lab.do(**{'opcode': 'OP_INSTANCE_CREATE', 'instance_name': 'dear', 'pnode': 'node2', 'snode': 'node3', **STILL})
    death = relay.on_request = recoveries.Death(('node2', 'disks_remove', 0))
    lab.cli('cluster', 'modify', '--max-running-jobs', '1')
    blocker = None
    try:
        lab.lab('pause', f'watcher@{lab.master}')
        job = death.submit({'OP_ID': 'OP_INSTANCE_REMOVE', 'instance_name': 'dear', 'shutdown_timeout': 0})
        assert lab.wait_job(job)[0] == 'error' and death.held
        relay.on_request = None
        blocker = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 600})
        wait_until('the queue is held', lambda: lab.job_status(blocker)[0] == 'running')
        lab.lab('resume', f'watcher@{lab.master}')
        settling = wait_until('it is to be undone', lambda: recoveries.jobs_of('INSTANCE_SETTLE(dear)'), 60)
        assert [row['status'] for row in settling] == ['queued'], settling
        said = {'reason': [['test', 'looked at it myself', 0]], 'priority': -20}
        resets = lab.submit({'OP_ID': 'OP_RECOVERY_RESET', 'kind': 'instance', 'instance_name': 'dear', 'state': 'stopped', **said})
        starts = lab.submit({'OP_ID': 'OP_INSTANCE_STARTUP', 'instance_name': 'dear', 'priority': -20})
        lab.cli('job', 'cancel', str(blocker), '--kill')
        blocker = None
        assert lab.wait_job(resets)[0] == 'success', lab.job_status(resets)
        assert lab.wait_job(starts)[0] == 'success', lab.job_status(starts)
        uuid = e2e.uuid_of(lab, 'dear')
        pids = lab.qemu_processes(uuid)
        assert lab.wait_job(settling[0]['id'])[0] == 'success', lab.job_status(settling[0]['id'])
    finally:
        relay.on_request = None
        lab.lab('resume', f'watcher@{lab.master}')
        if blocker:
            lab.cli('job', 'cancel', str(blocker), '--kill')
        lab.cli('cluster', 'modify', '--max-running-jobs', '20')
    log = lab.query('job', ['oplog'], ['=', 'id', settling[0]['id']])[0]['oplog'][0]
    assert 'nothing is done: instance dear has no longer the task removing' in str(log), log
    assert lab.qemu_processes(uuid) == pids and guest_on('node2', uuid) == 'running'
    assert recoveries.jobs_of('INSTANCE_SETTLE(dear)') == [{**settling[0], 'status': 'success', 'opresult': [None]}]
    e2e.wait_mended(lab, 'dear')
    lab.do('OP_INSTANCE_REMOVE', instance_name='dear', shutdown_timeout=0)


@title('/recovery/a-living-owner#RCV-03,RCV-10')
def test_living():
    """A job that waits for its copy for several stale periods is told each time, and left alone."""
    held, goes_on = threading.Event(), threading.Event()
    def hold(request):
        if request.method == 'mirror_wait' and not held.is_set():
            held.set()
            goes_on.wait()
        return True
    relay.on_request = hold
    lab.cli('cluster', 'modify', '--recovery-stale-period', '1', '--recovery-interval-period', '1')
    try:
        job = lab.submit({**OPERATIONS['creating'].opcode, 'instance_name': 'slow'})
        wait_until('its copy is under way', held.is_set)
        pids, mark = lab.qemu_processes(e2e.uuid_of(lab, 'slow')), None
        def told():
            nonlocal mark
            row = lab.instance('slow', 'task_state', 'task_owner', 'admin_state')
            mark = mark or row
            assert row == mark and lab.job_status(job)[0] == 'running', (row, mark, lab.job_status(job))
            return len(events('slow', 'alert')) >= 3
        wait_until('three alerts', told, 60)
        alerts = events('slow', 'alert')
        assert {(row['rule'], row['level']) for row in alerts} == {('RCV-10', 'warning')}, alerts
        assert all(f'({what}); nothing is changed while it lives' in row['summary']
                   for what, row in zip(('alert 1', 'alert 2', 'alert 3'), alerts)), alerts
        goes_on.set()
        assert lab.wait_job(job, 120)[0] == 'success', lab.job_status(job)
    finally:
        goes_on.set()
        relay.on_request = None
        lab.cli('cluster', 'modify', '--recovery-stale-period', '600', '--recovery-interval-period', '60')
    assert not events('slow') and lab.qemu_processes(e2e.uuid_of(lab, 'slow')) == pids != []
    lab.do('OP_INSTANCE_REMOVE', instance_name='slow', shutdown_timeout=0)


@title('/recovery/a-disk-half-written#RCV-28,RCV-30,RCV-35,RCV-39,RCV-40,SAF-84')
def test_half_written():
    """Its node is silent until all looks have failed. What its mark forbids is forbidden when the node is back, until it has been finished."""
    lab.do('OP_INSTANCE_CREATE', instance_name='torn', pnode='node2', snode='node3', **{**STILL, 'start': False})
    lab.cli('cluster', 'modify', '--recovery-resync-count', '1', '--recovery-resync-interval', '1')
    death = relay.on_request = recoveries.Death(('node2', 'disks_create', 0))
    try:
        lab.lab('pause', f'watcher@{lab.master}')
        job = death.submit({'OP_ID': 'OP_INSTANCE_REINSTALL', 'instance_name': 'torn'})
        assert lab.wait_job(job)[0] == 'error' and death.held and task('torn') == 'reinstalling'
        lab.lab('power', 'node2', 'off')
        lab.lab('resume', f'watcher@{lab.master}')
        wait_until('it is in ERROR', lambda: lab.instance('torn', 'status')['status'] == 'ERROR_task', 60)
        assert [(row['rule'], row['new']) for row in events('torn')] == [('RCV-39', 'error')], events('torn')
        assert len(events('torn', 'alert')) == 1 and task('torn') == ''
        lab.lab('pause', f'watcher@{lab.master}')
        lab.lab('power', 'node2', 'on')
        wait_until('its node answers', lambda: lab.query('node', ['mtotal'], ['=', 'name', 'node2'])[0]['mtotal'] is not None, 60)
        for what in ('startup', 'failover'):
            code, _, err = lab.run('instance', what, 'torn', check=False)
            assert code and re.search('reinstall.*; it is in ERROR since .*: fettle recovery show instance torn', err), (what, err)
    finally:
        relay.on_request = None
        lab.lab('resume', f'watcher@{lab.master}')
        lab.cli('cluster', 'modify', '--recovery-resync-count', '5', '--recovery-resync-interval', '60')
    wait_settled('torn')
    ends = [lab.wait_job(row['id']) for row in recoveries.jobs_of('INSTANCE_REINSTALL(torn)')]
    assert [status for status, _ in ends] == ['error', 'success'], ends
    lab.do('OP_INSTANCE_STARTUP', instance_name='torn')
    lab.do('OP_INSTANCE_REMOVE', instance_name='torn', shutdown_timeout=0)


@title('/recovery/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab() as lab:
        recoveries.lab = crash.lab = archive.lab = lab
        archive.folder = crash.folder = lab.directory
        recoveries.install_still()
        relay = recoveries.Relay()
        lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
        e2e.run(*(request_walker(mark) for mark in OPERATIONS if e2e.LONG or mark in SAMPLE),
                *(call_walker(mark) for mark in OPERATIONS if e2e.LONG or mark in CALLED), test_person, test_living, test_half_written,
                *(stander(mark) for mark in HELD if mark != 'migrating' and (e2e.LONG or mark == 'removing')),
                *(restorer(mark) for mark in HELD if e2e.LONG), test_logs)
