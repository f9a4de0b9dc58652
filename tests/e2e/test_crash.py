#!/usr/bin/env python3
"""Death at every call to the outside, of each process, while an instance is created, failed over, migrated,
while disks of it come and go, and while two jobs come in one call of which one waits for the other.

A daemon is restarted with a crash point of the coming operation armed (io/crash.h): it kills itself right before its
n-th write, send, sync, spawn or monitor command, once. Whatever n is, the accepted job has one final state, nothing ran
twice, no lock is left, and the cluster is whole again by itself. FETTLE_LONG=1 walks all n, otherwise a spread sample.
"""
import json
import os
import re
import shutil
import tempfile
import time

import e2e
from e2e import fettlelib, title, wait_until

SAMPLE = 2
FINAL = ('success', 'error', 'canceled')
HEAL_S = 60
PROCESSES = ('wconfd', 'luxid', 'job-start', 'job', 'primary', 'secondary')
OF_A_JOB = {'job-start': '_JOB_START', 'job': '_JOB'}
SESSION = re.compile(rb'(START|COUNT) (\d+)\r\n')
UUID = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')

lab = None
folder = None
points = {}  # (operation, process) -> number of crash points
run_number = 0


# --- arming ---

class Arming:
    """The variables that arm one process for one operation, and the files that they speak of."""

    def __init__(self):
        self.since = os.path.join(folder, f'since-{run_number}')
        self.once = os.path.join(folder, f'once-{run_number}')

    def variables(self, process, at=None, log=None):
        suffix = OF_A_JOB.get(process, '')
        values = [f'FETTLE_CRASH_SINCE{suffix}={self.since}', f'FETTLE_CRASH_ONCE{suffix}={self.once}']
        if at:
            values.append(f'FETTLE_CRASH_AT{suffix}={at}')
        if log:
            values.append(f'FETTLE_CRASH_LOG{suffix}={log}')
        return values

    def begin(self):
        with open(self.since, 'w', encoding='utf-8'):
            pass

    def happened(self):
        return os.path.exists(self.once)


def daemon_of(process, nodes):
    if process == 'primary':
        return f'noded@{nodes[0]}'
    if process == 'secondary':
        return f'noded@{nodes[1]}'
    return f'{"luxid" if process in OF_A_JOB else process}@{lab.master}'


def restart(daemon, variables):
    lab.lab('restart', daemon, *variables)
    name, node = daemon.split('@')
    def ready():
        return any(d['ready'] for n in lab.status()['nodes'] if n['name'] == node
                   for d in n['daemons'] if d['name'] == name)
    wait_until(f'{daemon} is ready', ready)
    if name == 'luxid':
        lab.luxi_connection = None
    e2e.verify_clean(lab, HEAL_S)


# --- the operations ---

def submit_surely(*opcodes):
    """Submits until luxid has answered with an id, as a careful client does: under one request id. Several as jobs of one call."""
    patience = fettlelib.Patience(HEAL_S)
    while True:
        try:
            if len(opcodes) == 1:
                return [lab.submit(opcodes[0])]
            answers = lab.call('SubmitManyJobs', [[opcode] for opcode in opcodes])
            assert all(taken for taken, _ in answers), answers
            return [job for _, job in answers]
        except fettlelib.LuxiError as error:
            if error.code not in fettlelib.PASSING or patience.is_over():
                raise
        time.sleep(0.1)


def create_opcode():
    return {'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': f'c{run_number}', 'pnode': 'node2', 'snode': 'node3',
            **e2e.TICK}


def failover_opcode():
    return {'OP_ID': 'OP_INSTANCE_FAILOVER', 'instance_name': 'walker', 'shutdown_timeout': 0}


def migrate_opcode():
    return {'OP_ID': 'OP_INSTANCE_MIGRATE', 'instance_name': 'walker'}


def copies_of(name):
    """QEMU processes of an instance by its name, on all nodes."""
    found = []
    for entry in os.listdir('/proc'):
        try:
            with open(f'/proc/{entry}/cmdline', 'rb') as file:
                words = file.read().split(b'\0')
            with open(f'/proc/{entry}/stat', encoding='utf-8', errors='replace') as file:
                dead = file.read().rsplit(')', 1)[1].split()[0] == 'Z'
        except (OSError, IndexError):
            continue
        ours = any(lab.directory.encode() in word for word in words)
        if ours and not dead and b'qemu-system' in words[0] and b'guest=' + name.encode() in words:
            found.append(int(entry))
    return found


def job_processes(job):
    """(pid, start time, name of the lock file) of the processes that run a job's program."""
    return {(process.pid, process.start, process.lock) for process in e2e.job_processes(lab, lab.master) if process.job == int(job)}


def job_file(job):
    """What the job file says, None if there is none (any more)."""
    try:
        with open(os.path.join(lab.root(lab.master), 'run', 'queue', f'job-{job}'), encoding='utf-8') as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def follow(job, name, most):
    """Watches a job to its final state; at no moment may more than so many QEMU processes of the instance be there."""
    seen, in_file = set(), None
    patience = fettlelib.Patience(HEAL_S)
    while True:
        now = job_processes(job)
        said = job_file(job)
        in_file = said['status'] if said and said['status'] in FINAL else in_file
        for _, _, lock in now:
            said = job_file(job)
            named = said['livelock'] if said else None
            assert named in (None, lock), f'job {job} runs under {lock}, its file names {named}'
        seen |= now
        assert len(seen) <= 1, f'job {job} ran in {len(seen)} processes: {seen}'
        copies = copies_of(name)
        assert len(copies) <= most, f'{name} runs {len(copies)} times'
        status = lab.job_status(job)[0]
        if status in FINAL:
            assert in_file in (None, status), f'job {job} is {status}, its file said {in_file}'
            return status
        assert not patience.is_over(), f'job {job} is {status} after {HEAL_S} s'
        time.sleep(0.02)


def check_one_final_state(job, status, request_id):
    rows = lab.query('job', ['id', 'status'], ['=', 'request_id', request_id])
    assert [(row['id'], row['status']) for row in rows] == [(job, status)], (job, status, rows)


def check_file(job, status):
    """A final state in the job file is that of the record, in each opcode; a file without one is on its way out."""
    ops = lab.query('job', ['opstatus'], ['=', 'id', job])[0]['opstatus']
    def settled():
        said = job_file(job)
        if said and said['status'] in FINAL:
            assert (said['status'], [op['status'] for op in said['ops']]) == (status, ops), (job, status, ops, said)
        return not said or said['status'] in FINAL
    wait_until(f'the file of job {job}, which is {status}, says so or is gone', settled, HEAL_S)


NOT_BEGUN = re.compile(r'job (\d+) did not start: .*|detected death of job (\d+) before its first opcode began')


def check_not_begun(job):
    """A job that died on its way to its program says so, and no opcode of it has run."""
    row, = lab.query('job', ['opexec', 'oplog', 'opresult'], ['=', 'id', job])
    result, = row['opresult']
    text = result if isinstance(result, str) else result[1][0]
    found = NOT_BEGUN.fullmatch(text)
    assert found and str(job) in found.groups(), text
    assert row['opexec'] == [None] and row['oplog'] == [[]], row


def wait_no_locks(job):
    def held():
        return [row['name'] for row in lab.query('lock', ['name', 'owner'])
                if str(job) in map(str, row['owner'] or [])]
    wait_until(f'job {job} holds no lock', lambda: not held(), HEAL_S)


def strangers():
    """Images and processes' files of instances that the cluster does not know, on any node."""
    known = {uuid for row in lab.query('instance', ['uuid', 'replica']) for uuid in row.values()}
    found = []
    for node in range(1, lab.nodes + 1):
        for below in ('var/disks', 'run/guests', 'run/exports'):
            path = os.path.join(lab.root(f'node{node}'), below)
            for name in os.listdir(path) if os.path.isdir(path) else ():
                uuid = UUID.search(name)
                if uuid and uuid.group() not in known:
                    found.append(f'node{node}/{below}/{name}')
    return found


# --- what must be true afterwards ---

printed_before = {}  # node -> bytes that walker had printed there before the operation


def console(name, uuid, node):
    try:
        with open(lab.console_path(name, uuid, node), 'rb') as file:
            return file.read()
    except FileNotFoundError:
        return b''


def note_printed():
    printed_before.clear()
    if row := lab.instance('walker', 'uuid'):
        printed_before.update((f'node{n}', console('walker', row['uuid'], f'node{n}')) for n in range(1, lab.nodes + 1))


def printed_since(name, uuid, node):
    before, now = printed_before.get(node, b'') if name == 'walker' else b'', console(name, uuid, node)
    return SESSION.findall(now[len(before):] if now.startswith(before) else now)


def sessions(name, uuid, node):
    """What the guest printed on a node since the operation began: a list of [count found at the start, highest count printed].
    One that runs on goes on with its count."""
    found = []
    for word, number in printed_since(name, uuid, node):
        if word == b'START':
            found.append([int(number), 0])
        elif not found:
            found.append([int(number), int(number)])
        else:
            found[-1][1] = max(found[-1][1], int(number))
    return found


def printed_until_then(name):
    """The highest count of before the operation."""
    numbers = [int(number) for text in printed_before.values() for _, number in SESSION.findall(text)]
    return max(numbers, default=0) if name == 'walker' else 0


def check_nothing_lost(name, uuid):
    """The running session began with every count that any earlier one has printed. It may run and not have printed yet."""
    node = lab.instance(name, 'pnode')['pnode']
    everything, current, printed, floor = {}, [0, 0], 0, printed_until_then(name)
    def began_with_all():
        nonlocal current, printed
        everything.update((f'node{n}', sessions(name, uuid, f'node{n}')) for n in range(1, lab.nodes + 1))
        current = everything[node].pop() if everything[node] else [0, 0]
        printed = max((highest for rows in everything.values() for _, highest in rows), default=0)
        printed = max(printed, floor)
        return current[1] and current[0] >= printed
    try:
        wait_until('', began_with_all, HEAL_S)
    except TimeoutError as error:
        raise AssertionError(f'{name} printed {printed}, and on {node} after {HEAL_S} s {current}: {everything}') from error
    e2e.wait_counting(lab, name, uuid, node, current[1])


def wait_guests_reported(name):
    e2e.verify_clean(lab, HEAL_S)
    wait_until(f'{name} runs once', lambda: len(copies_of(name)) == 1, HEAL_S)


def remove(name):
    """Where the point was not reached by now it may be, by this very job: its answer may get lost, so it is asked
    for under one id, and before it has run it can be given again."""
    for attempt in range(2):
        job, = submit_surely({'OP_ID': 'OP_INSTANCE_REMOVE', 'instance_name': name, 'shutdown_timeout': 0,
                             'request_id': f'remove-{run_number}-{attempt}'})
        status, result = lab.wait_job(job)
        if status == 'success':
            return
        assert 'nothing has run' in str(result) and attempt == 0, f'job {job} ended in {status}: {result}'


def after_create(status):
    name = f'c{run_number}'
    if status == 'success' or lab.instance(name, 'task_state') is not None:
        wait_until(f'{name} has no mark', lambda: not ((row := lab.instance(name, 'task_state')) and row['task_state']), HEAL_S)
        row = lab.instance(name, 'admin_state')
        if row and row['admin_state'] == 'down':  # whole, but its creation had not come to its start
            assert status != 'success', f'{name} does not run after a successful creation'
            lab.do('OP_INSTANCE_STARTUP', instance_name=name)
        def settled():
            row = lab.instance(name, 'task_state', 'status', 'replica.state')
            return row is None or (not row['task_state'] and row['status'] == 'running'
                                   and row['replica.state'] == 'in-sync')
        wait_until(f'{name} is whole or gone', settled, HEAL_S)
    row = lab.instance(name, 'uuid')
    assert row or status != 'success', f'{name} is gone after a successful creation'
    e2e.verify_clean(lab, HEAL_S)
    if row:
        check_nothing_lost(name, row['uuid'])
        assert len(copies_of(name)) == 1
        remove(name)
    wait_until(f'no QEMU of {name}', lambda: not copies_of(name), HEAL_S)
    try:
        wait_until('', lambda: not strangers(), HEAL_S)
    except TimeoutError as error:
        raise AssertionError(f'left of {name} after {HEAL_S} s: {", ".join(strangers())}') from error


def after_failover(_status):
    e2e.wait_healthy(lab, 'walker', HEAL_S)
    wait_guests_reported('walker')
    check_nothing_lost('walker', e2e.uuid_of(lab, 'walker'))
    assert len(copies_of('walker')) == 1


def check_went_on(name, uuid):
    """Whether it was moved while it ran or started again: it counts on from what it had printed before."""
    floor = printed_until_then(name)
    for node in printed_before:
        for word, number in printed_since(name, uuid, node):
            assert int(number) >= floor, f'{name} printed {floor}, and then {word.decode()} {number.decode()} on {node}'
    e2e.wait_counting(lab, name, uuid, lab.instance(name, 'pnode')['pnode'], floor)


def after_migrate(_status):
    """Whoever has it in the end, it has lost nothing, and the other end is gone."""
    wait_until('the migration is settled', lambda: not lab.instance('walker', 'task_state')['task_state'], HEAL_S)
    e2e.wait_healthy(lab, 'walker', HEAL_S)
    wait_guests_reported('walker')
    check_went_on('walker', e2e.uuid_of(lab, 'walker'))
    assert len(copies_of('walker')) == 1


def disks_of(name):
    return lab.instance(name, 'disk.count')['disk.count']


def disks_opcode():
    """A disk for an instance that rests, or its last one away: one, two, one, …"""
    change = {'add_disks': [{'size': 3}]} if disks_of('resting') == 1 else {'remove_disks': ['-1']}
    return {'OP_ID': 'OP_INSTANCE_SET_PARAMS', 'instance_name': 'resting', **change}


def images_on_record(name):
    """Sizes of the images of both copies, disk by disk; each has to be there."""
    row = lab.instance(name, 'uuid', 'pnode', 'snodes', 'replica')
    stems = [(row['pnode'], row['uuid']), (row['snodes'][0], f'{row["uuid"]}.{row["replica"]}')]
    return [[os.path.getsize(os.path.join(lab.root(node), 'var', 'disks', f'{stem}.disk{disk}.raw')) >> 20
             for node, stem in stems] for disk in range(disks_of(name))]


def after_disks(status):
    """The disks of before or of after, whole on both nodes and promised as such; the same word again does the rest."""
    row = lab.instance('resting', 'task_state', 'replica.state', 'clean')
    assert row == {'task_state': '', 'replica.state': 'in-sync', 'clean': True}, row
    count = disks_of('resting')
    assert images_on_record('resting') == [[8, 8], [3, 3]][:count]
    e2e.verify_clean(lab, HEAL_S)
    if status == 'success':
        return
    # What a death has left: added again it is made anew, removed again it goes.
    again = {'remove_disks': ['1']} if count == 2 else {'add_disks': [{'size': 3}]}
    lab.do('OP_INSTANCE_SET_PARAMS', instance_name='resting', **again)
    assert images_on_record('resting') == [[8, 8], [3, 3]][:disks_of('resting')]
    assert not copies_of('resting')


def pair_opcodes():
    """Jobs that come in one call are not committed as started with it; the second waits for the end of the first, whatever that is."""
    delay = {'OP_ID': 'OP_TEST_DELAY', 'duration': 0.1, 'no_locks': False, 'on_instances': ['pair']}
    return delay, {**delay, 'depends': [[-1, list(FINAL)]]}


def after_pair(_status):
    pass


def check_order(first, second):
    """Whatever became of the first, the second has done nothing before that was on record."""
    rows = {row['id']: row for row in lab.query('job', ['id', 'end_ts', 'opexec'], ['|', ['=', 'id', first], ['=', 'id', second]])}
    begun = rows[second]['opexec'][0]
    assert not begun or begun >= rows[first]['end_ts'], rows


OPERATIONS = {'pair': (pair_opcodes, after_pair), 'create': (create_opcode, after_create), 'failover': (failover_opcode, after_failover),
              'migrate': (migrate_opcode, after_migrate), 'disks': (disks_opcode, after_disks)}
# The process that a guest is sent to waits beside it.
PROCESSES_AT_ONCE = {'pair': 0, 'create': 1, 'failover': 1, 'migrate': 2, 'disks': 0}


def processes_of(operation):
    """No node has anything to do with a delay."""
    return [process for process in PROCESSES if operation != 'pair' or process not in ('primary', 'secondary')]


def opcodes_of(operation):
    opcodes = OPERATIONS[operation][0]()
    return [opcodes] if isinstance(opcodes, dict) else list(opcodes)


def nodes_of(operation):
    if operation in ('create', 'pair'):
        return 'node2', 'node3'
    name = 'resting' if operation == 'disks' else 'walker'
    if operation != 'disks':
        e2e.wait_healthy(lab, name, HEAL_S)
    row = lab.instance(name, 'pnode', 'snodes')
    return row['pnode'], row['snodes'][0]


def perform(operation, process, arming):
    """One operation under an armed crash point; returns the final state of its job, or of each."""
    opcodes = opcodes_of(operation)
    request_ids = [f'crash-{run_number}-{number}' for number in range(len(opcodes))]
    note_printed()
    arming.begin()
    jobs = submit_surely(*[{**opcode, 'request_id': request_id} for opcode, request_id in zip(opcodes, request_ids)])
    states = [follow(job, opcode.get('instance_name', operation), PROCESSES_AT_ONCE[operation]) for job, opcode in zip(jobs, opcodes)]
    assert process != 'job-start' or 'error' in states, states
    for job, status in zip(jobs, states):
        wait_no_locks(job)
        if process in ('luxid', 'job-start') and status == 'error':
            check_not_begun(job)
    if operation == 'pair':
        check_order(*jobs)
    OPERATIONS[operation][1](states[0])
    e2e.verify_clean(lab, HEAL_S)
    for job, status, request_id in zip(jobs, states, request_ids):
        check_one_final_state(job, status, request_id)
        check_file(job, status)
    return ', '.join(states)


# --- counting and crashing ---

def first_life(log):
    """How many points the first process passed that wrote this log (later jobs begin again at 1)."""
    count = 0
    with open(log, encoding='utf-8') as file:
        for line in file:
            number = int(line.split()[0])
            if number <= count:
                break
            count = number
    return count


def count_points(operation):
    global run_number
    run_number += 1
    arming, nodes = Arming(), nodes_of(operation)
    processes = processes_of(operation)
    logs = {process: os.path.join(folder, f'{operation}-{process}.log') for process in processes}
    of_jobs = [value for process in OF_A_JOB for value in arming.variables(process, log=logs[process])]
    for process in processes:
        if process not in OF_A_JOB:
            more = of_jobs if process == 'luxid' else []
            restart(daemon_of(process, nodes), arming.variables(process, log=logs[process]) + more)
    note_printed()
    arming.begin()
    for job in submit_surely(*opcodes_of(operation)):
        assert lab.wait_job(job)[0] == 'success', lab.job_status(job)
    for process in processes:
        points[operation, process] = first_life(logs[process])
    OPERATIONS[operation][1]('success')
    print(f'# crash points of {operation}: ' + ', '.join(f'{p} {points[operation, p]}' for p in processes), flush=True)
    assert all(points[operation, process] for process in processes), points


def chosen(count, sample=SAMPLE):
    if e2e.LONG:
        return list(range(1, count + 1))
    return sorted({max(1, round(count * (2 * i + 1) / (2 * sample))) for i in range(sample)})


def crash(operation, process, at):
    global run_number
    run_number += 1
    arming = Arming()
    restart(daemon_of(process, nodes_of(operation)), arming.variables(process, at=at))
    start = time.monotonic()
    try:
        status = perform(operation, process, arming)
    except Exception as error:
        raise AssertionError(f'{operation}, {process} killed at its point {at} of {points[operation, process]} '
                             f'(run {run_number}): {error}') from error
    print(f'# {operation}, {process} killed at {at} of {points[operation, process]}'
          f'{"" if arming.happened() else " (not reached)"}: {status}, whole after {time.monotonic() - start:.1f} s',
          flush=True)
    return arming.happened()


def kill_near(kill_at, at):
    """A daemon also passes points for reasons of its own, here more and there fewer, the slower the machine the more: of few places
    each is to be reached, or one a good deal before it."""
    return kill_at(at) or (not e2e.LONG and any(kill_at(max(1, at * part // 3)) for part in (2, 1)))


def walk(process, count, kill_at, sample=SAMPLE):
    """kill_at(at), which says whether it came to that, at the chosen ones of so many points; the long run tells of all."""
    failures = []
    reached, places = 0, chosen(count, sample)
    for at in places:
        try:
            reached += kill_near(kill_at, at)
        except AssertionError as error:
            if not e2e.LONG:
                raise
            failures.append(str(error))
    assert not failures, '\n'.join(failures)
    # So the last ones may not be reached.
    wanted = -(-len(places) * 3 // 4)
    assert reached >= wanted, f'{reached} of {len(places)} armed crash points of {process} were reached, {wanted} should be'


def walker(operation, process, ids):
    # What the processes of a job do around it is much the same in each operation.
    sample = SAMPLE if operation in ('pair', 'create') else 1
    return title(f'/crash/{operation}/{process}#{ids}')(
        lambda: walk(process, points[operation, process], lambda at: crash(operation, process, at), sample))


@title('/crash/count/pair')
def test_count_pair():
    count_points('pair')


@title('/crash/count/create')
def test_count_create():
    count_points('create')


@title('/crash/count/failover')
def test_count_failover():
    lab.do('OP_INSTANCE_CREATE', instance_name='walker', pnode='node2', snode='node3', **e2e.TICK)
    e2e.wait_healthy(lab, 'walker')
    count_points('failover')


@title('/crash/count/migrate')
def test_count_migrate():
    if not lab.instance('walker', 'uuid'):
        lab.do('OP_INSTANCE_CREATE', instance_name='walker', pnode='node2', snode='node3', **e2e.TICK)
    e2e.wait_healthy(lab, 'walker')
    count_points('migrate')


@title('/crash/count/disks')
def test_count_disks():
    lab.do('OP_INSTANCE_CREATE', instance_name='resting', pnode='node2', snode='node3',
           **{**e2e.TICK, 'start': False})
    lab.do('OP_INSTANCE_ACTIVATE_DISKS', instance_name='resting')
    count_points('disks')


@title('/crash/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab, HEAL_S)
    e2e.check_logs(lab)


PROVEN = {
    ('pair', 'wconfd'): 'WCF-16,SAF-30',
    ('pair', 'luxid'): 'LUX-06,LUX-26,LUX-27,LUX-28,SAF-30',
    ('pair', 'job-start'): 'LUX-22,LUX-23,LUX-25,LUX-28',
    ('pair', 'job'): 'LUX-24,LUX-28,LUX-36,SAF-30',
    ('create', 'wconfd'): 'WCF-16,SAF-30',
    ('create', 'luxid'): 'LUX-06,LUX-26,LUX-27,LUX-28,SAF-30',
    ('create', 'job-start'): 'LUX-22,LUX-23,LUX-25,LUX-28',
    ('create', 'job'): 'LUX-24,LUX-28,LUX-36,SAF-30',
    ('create', 'primary'): 'SAF-10,SAF-20',
    ('create', 'secondary'): 'SAF-20',
    ('failover', 'wconfd'): 'WCF-16,SAF-16,SAF-30',
    ('failover', 'luxid'): 'LUX-06,LUX-26,LUX-27,LUX-28,SAF-30',
    ('failover', 'job-start'): 'LUX-22,LUX-23,LUX-25,LUX-28',
    ('failover', 'job'): 'LUX-24,LUX-28,LUX-36,SAF-16,SAF-30',
    ('failover', 'primary'): 'SAF-10,SAF-16,SAF-20',
    ('failover', 'secondary'): 'SAF-10,SAF-16,SAF-20',
    ('disks', 'wconfd'): 'WCF-16,SAF-30',
    ('disks', 'job'): 'LUX-24,LUX-28,SAF-20,SAF-30',
    ('disks', 'primary'): 'SAF-20',
    ('disks', 'secondary'): 'SAF-20',
    ('migrate', 'luxid'): 'LUX-06,LUX-26,LUX-27,LUX-28,SAF-30',
    ('migrate', 'job-start'): 'LUX-22,LUX-23,LUX-25,LUX-28',
    ('migrate', 'job'): 'LUX-24,LUX-28,LUX-36,SAF-10,SAF-30',
}

if __name__ == '__main__':
    folder = tempfile.mkdtemp(prefix='fettle-crash-', dir='/var/tmp')
    only = os.environ.get('FETTLE_CRASH_ONLY', '')  # "failover job": this operation and process only
    try:
        with e2e.new_lab() as lab:
            lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
            # Each death may cost a repair, and a long walk has more of them than an hour's budget.
            lab.cli('cluster', 'modify', '--repair-max-per-hour', '100000')
            counts = {'pair': test_count_pair, 'create': test_count_create, 'failover': test_count_failover, 'migrate': test_count_migrate,
                      'disks': test_count_disks}
            walked = [key for key in PROVEN if only in ' '.join(key)]
            e2e.run(*(count for operation, count in counts.items() if any(key[0] == operation for key in walked)),
                    *(walker(*key, PROVEN[key]) for key in walked), test_logs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
