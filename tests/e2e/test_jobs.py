#!/usr/bin/env python3
"""The queue on real processes: cancel, kill, restart of luxid, damaged job files, repeated submissions."""
import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import tempfile
import threading
import time

import e2e
from e2e import fettlelib, title, wait_until

lab = None
UNKNOWN_RESULT = 20  # exit code


def start_delay(seconds, **more):
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': seconds, **more})
    wait_until(f'job {job} runs', lambda: lab.job_status(job)[0] == 'running')
    return job, wait_until(f'job {job} has a process', lambda: e2e.job_pid(lab, job))


def locks_of(job):
    rows = lab.query('lock', ['name', 'owner'])
    return [row['name'] for row in rows if str(job) in map(str, row['owner'] or [])]


def livelocks():
    folder = os.path.join(lab.root('node1'), 'run', 'livelocks')
    return [name for name in os.listdir(folder) if name.startswith('job')]


def parent(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
        return int(file.read().rpartition(')')[2].split()[1])


def program(pid):
    return os.path.basename(os.readlink(f'/proc/{pid}/exe'))


def file_of(job):
    with open(os.path.join(lab.root('node1'), 'run', 'queue', f'job-{job}'), encoding='utf-8') as file:
        return json.load(file)


def named_in(pid):
    """Names of the job files that have this process."""
    folder, found = os.path.join(lab.root('node1'), 'run', 'queue'), []
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding='utf-8') as file:
            if json.load(file)['process_id'] == pid:
                found.append(name)
    return found


@title('/jobs/killed-job-ends-in-error-and-frees-its-locks#LUX-07,LUX-08,LUX-14,LUX-36,DTH-09,WCF-15')
def test_kill():
    other, first = start_delay(2)
    job, pid = start_delay(60, no_locks=False, on_nodes=['node2'], on_instances=['web'])
    # A process for each, of luxid's nursery (architecture.md 6), and named in its own file only.
    assert first != pid and parent(first) == parent(pid), (first, pid)
    assert [program(parent(pid)), program(parent(parent(pid)))] == ['fettle-job', 'fettle-luxid'], pid
    assert named_in(pid) == [f'job-{job}'], named_in(pid)
    assert locks_of(job), 'the job holds no lock'
    os.kill(pid, signal.SIGKILL)
    status, result = lab.wait_job(job)
    assert status == 'error' and result == [f'detected death of job {job}'], (status, result)
    wait_until('its locks are free', lambda: not locks_of(job))
    assert lab.wait_job(other)[0] == 'success'
    wait_until('its lock file is removed', lambda: not livelocks(), 30)


@title('/jobs/cancel#LUX-06,LUX-08')
def test_cancel():
    asked, _ = start_delay(60)
    job, _ = start_delay(8)
    done = lab.call('CancelJob', asked)
    assert done == [True, 'Job will be canceled: it is asked to give up at the next safe point'], done
    assert lab.wait_job(asked)[0] == 'canceled'
    wait_until('its locks are free', lambda: not locks_of(asked))
    many = [ok[1] for ok in lab.call('SubmitManyJobs', [[{'OP_ID': 'OP_TEST_DELAY', 'duration': 1}]] * 40)]
    rows = lab.call('QueryJobs', many, ['status'])
    queued = [one for one, row in zip(many, rows) if row[0] == 'queued']
    assert queued, 'no job waits in the queue'
    done = lab.call('CancelJob', queued[-1])
    assert done == [True, 'Job successfully cancelled'], done
    assert lab.job_status(queued[-1])[0] == 'canceled'
    for one in many[:-1]:
        lab.wait_job(one)
    assert lab.wait_job(job)[0] == 'success'


@title('/jobs/never-more-than-the-limit#LUX-12')
def test_limit():
    """As the system counts processes, and as luxid counts jobs."""
    lab.cli('cluster', 'modify', '--max-running-jobs', '4')
    many = [ok[1] for ok in lab.call('SubmitManyJobs', [[{'OP_ID': 'OP_TEST_DELAY', 'duration': 1}]] * 20)]
    most, said, states = 0, 0, ['queued']
    while set(states) - {'success', 'error'}:
        states = [status for [status] in lab.call('QueryJobs', many, ['status'])]
        said = max(said, sum(status in ('waiting', 'running') for status in states))
        # One whose lock file is gone has ended; what it still does is to go.
        most = max(most, sum(process.lock in livelocks() for process in e2e.job_processes(lab, 'node1')))
    assert most == 4 and said == 4, (most, said)
    assert all(lab.wait_job(job)[0] == 'success' for job in many)
    lab.cli('cluster', 'modify', '--max-running-jobs', '20')


@title('/jobs/a-process-for-each#LUX-07')
def test_processes():
    jobs = dict(start_delay(60) for _ in range(5))
    assert len(set(jobs.values())) == 5, jobs
    assert {parent(pid) for pid in jobs.values()} == {parent(next(iter(jobs.values())))}, jobs
    nursery = parent(jobs[min(jobs)])
    assert [program(nursery), program(parent(nursery))] == ['fettle-job', 'fettle-luxid'], nursery
    for job, pid in jobs.items():
        assert named_in(pid) == [f'job-{job}'], (job, pid, named_in(pid))
    for job in jobs:
        lab.call('CancelJob', job)
    assert all(lab.wait_job(job)[0] == 'canceled' for job in jobs)


@title('/jobs/no-locks-without-wconfd#LUX-09')
def test_no_locks():
    """A job that comes to need a lock while wconfd is stopped has it, and goes on, no sooner than wconfd does."""
    for seconds in (3, 15, 60):
        delay = {'OP_ID': 'OP_TEST_DELAY', 'duration': seconds}
        job = lab.call('SubmitJob', [delay, {**delay, 'duration': 3, 'no_locks': False, 'on_instances': ['web']}])
        wait_until('it has begun', lambda: lab.call('QueryJobs', [job], ['opstatus'])[0][0] != ['queued', 'queued'])
        lab.lab('pause', 'wconfd@node1')
        with contextlib.suppress(FileNotFoundError):
            if file_of(job)['ops'][0]['status'] == 'running':
                break
        lab.lab('resume', 'wconfd@node1')  # it was too fast for this machine
        lab.wait_job(job, 200)
    try:
        wait_until('its first opcode has ended', lambda: file_of(job)['ops'][0]['status'] == 'success')
        for _ in range(20):
            second = file_of(job)['ops'][1]
            assert second['status'] in ('queued', 'waiting') and not second.get('exec_us'), second
            time.sleep(0.1)
    finally:
        resumed = time.time()
        lab.lab('resume', 'wconfd@node1')
    assert lab.wait_job(job)[0] == 'success'
    begun = lab.call('QueryJobs', [job], ['opexec'])[0][0][1]
    assert begun[0] + begun[1] / 1e6 >= resumed, (begun, resumed)


@title('/jobs/queries-without-other-daemons#LUX-03')
def test_alone():
    """Static and live fields, in full, while neither the watcher nor any fettle-rconfd says anything."""
    lab.do('OP_INSTANCE_CREATE', instance_name='lively', pnode='node2', **{**e2e.TICK, 'disk_template': 'file'})
    stopped = ['watcher@node1', *(f'rconfd@node{number}' for number in (1, 2, 3))]
    for daemon in stopped:
        lab.lab('pause', daemon)
    try:
        rows = lab.call('Query', 'node', ['name', 'offline', 'mtotal', 'mfree', 'dtotal', 'bootid', 'pinst_list'], None)['data']
        assert [row[0] for row in rows] == [[0, f'node{number}'] for number in (1, 2, 3)], rows
        assert all(status == 0 and value is not None for row in rows for status, value in row), rows
        assert rows[1][6] == [0, ['lively']], rows
        row, = lab.call('Query', 'instance', ['status', 'oper_state', 'oper_ram', 'pnode', 'be/memory'], ['=', 'name', 'lively'])['data']
        assert row[:2] == [[0, 'running'], [0, True]] and row[2][0] == 0 and row[3:] == [[0, 'node2'], [0, 8]], row
    finally:
        for daemon in stopped:
            lab.lab('resume', daemon)
    lab.do('OP_INSTANCE_REMOVE', instance_name='lively', shutdown_timeout=0)


@title('/jobs/luxid-restarts-while-jobs-run#LUX-16,LUX-30,LUX-34,DTH-02')
def test_luxid_restart():
    short, _ = start_delay(1)
    long, pid = start_delay(12)
    lab.lab('kill', 'luxid@node1')
    found = lab.job_status(long)
    assert found[0] == 'running', found
    assert e2e.job_pid(lab, long) == pid
    status, _ = lab.wait_job(short)
    assert status == 'success', status
    assert lab.wait_job(long)[0] == 'success'


@title('/jobs/both-daemons-die-then-the-job#DTH-02,WCF-08,WCF-12')
def test_daemons_restart_then_death():
    job, pid = start_delay(60, no_locks=False, on_nodes=['node3'])
    before = locks_of(job)
    lab.lab('kill', 'wconfd@node1')
    lab.lab('kill', 'luxid@node1')
    wait_until('the locks are the same after the restart', lambda: locks_of(job) == before)
    os.kill(pid, signal.SIGKILL)
    assert lab.wait_job(job)[0] == 'error'
    wait_until('its locks are free', lambda: not locks_of(job))


def nurseries():
    """{nursery: its warm processes}, of node1."""
    root, found = lab.root('node1').encode(), {}
    for entry in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{entry}/cmdline', 'rb') as file:
                words = file.read().split(b'\0')
            if words[0].endswith(b'/fettle-job-nursery') and words[2] == root:
                found[int(entry)] = parent(entry)
        except (OSError, IndexError):
            continue
    return {pid: [warm for warm, of in found.items() if of == pid] for pid, above in found.items() if above not in found}


def one_warm():
    """(nursery, warm process), if there is one of each."""
    found = nurseries()
    return len(found) == 1 and len(list(found.values())[0]) == 1 and (list(found)[0], list(found.values())[0][0])


@title('/jobs/process-of-the-next-job-is-killed#LUX-07,DTH-07')
def test_warm_killed():
    for _ in range(3):
        assert lab.wait_job(start_delay(0.5)[0])[0] == 'success'
        nursery, warm = wait_until('a process is ready', one_warm)
        os.kill(warm, signal.SIGKILL)
        wait_until('it is gone', lambda warm=warm: warm not in sum(nurseries().values(), []))
        job, pid = start_delay(0.5)
        assert pid != warm and parent(pid) == nursery, (pid, warm)
        assert lab.wait_job(job)[0] == 'success'
    nursery, warm = wait_until('a process is ready again', one_warm)
    job, pid = start_delay(0.5)
    assert pid == warm and lab.wait_job(job)[0] == 'success', (pid, warm)
    assert not [name for name in livelocks() if name.endswith(f'-{warm}')]


@title('/jobs/luxid-is-killed-while-a-process-is-ready#LUX-16,LUX-26')
def test_warm_outlived():
    """By luxid's death, by the nursery's: what was ready goes too, and jobs begin all the same."""
    job, pid = start_delay(8)
    old = wait_until('a process is ready', one_warm)
    lab.lab('kill', 'luxid@node1')
    assert lab.wait_job(start_delay(0.5)[0])[0] == 'success'
    wait_until('nothing of the old nursery is left', lambda: not set(old) & set(sum(nurseries().values(), list(nurseries()))))
    nursery, warm = wait_until('a process is ready again', one_warm)
    os.kill(nursery, signal.SIGKILL)
    wait_until('both are gone', lambda: not {nursery, warm} & set(sum(nurseries().values(), list(nurseries()))))
    assert lab.wait_job(start_delay(0.5)[0])[0] == 'success'
    assert e2e.job_pid(lab, job) == pid
    assert lab.wait_job(job)[0] == 'success'


@title('/jobs/job-ends-while-luxid-and-wconfd-are-away#LUX-34,LUX-35')
def test_end_without_daemons():
    job, _ = start_delay(1.5)
    lab.lab('pause', 'wconfd@node1')
    lab.lab('pause', 'luxid@node1')
    time.sleep(3)
    lab.lab('resume', 'wconfd@node1')
    lab.lab('resume', 'luxid@node1')
    assert lab.wait_job(job)[0] == 'success'


F_OFD_GETLK = 36
FLOCK = 'hhqqi4x'  # type, whence, start, len, pid


def lives(job):
    """Whether the process of a job lives, from nothing but its file: the lock file that it names is locked."""
    with open(os.path.join(lab.root('node1'), 'run', 'queue', f'job-{job}'), encoding='utf-8') as file:
        name = json.load(file)['livelock']
    with open(os.path.join(lab.root('node1'), 'run', 'livelocks', name), 'rb') as file:
        answer = fcntl.fcntl(file, F_OFD_GETLK, struct.pack(FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
    return struct.unpack(FLOCK, answer)[0] != fcntl.F_UNLCK


@title('/jobs/its-file-tells-whether-its-process-lives#LUX-29,DTH-01')
def test_file_tells():
    """With all daemons stopped; and one that only stands still is not dead, for those who come back either."""
    job, pid = start_delay(300)
    doomed, other = start_delay(300)
    for daemon in ('luxid', 'wconfd', 'noded', 'watcher'):
        lab.lab('pause', f'{daemon}@node1')
    try:
        assert lives(job) and lives(doomed)
        os.kill(pid, signal.SIGSTOP)
        os.kill(other, signal.SIGKILL)
        wait_until('it is seen to be dead', lambda: not lives(doomed))
        assert lives(job)
    finally:
        for daemon in ('watcher', 'noded', 'wconfd', 'luxid'):
            lab.lab('resume', f'{daemon}@node1')
    assert lab.wait_job(doomed) == ('error', [f'detected death of job {doomed}'])
    lab.lab('kill', 'luxid@node1')
    lab.luxi_connection = None
    wait_until('luxid is back', lambda: lab.job_status(job)[0] is not None)
    # Its death would be found at once, as that of the other was.
    for _ in range(20):
        assert lab.job_status(job)[0] == 'running' and lives(job)
        time.sleep(0.1)
    os.kill(pid, signal.SIGCONT)
    assert lab.call('CancelJob', job)[0] is True
    assert lab.wait_job(job)[0] == 'canceled'


@title('/jobs/same-request-id-same-job#SAF-31')
def test_request_id():
    opcode = {'OP_ID': 'OP_TEST_DELAY', 'duration': 0, 'request_id': 'once'}
    first = lab.submit(opcode)
    assert lab.submit(opcode) == first
    lab.wait_job(first)
    assert lab.submit(opcode) == first
    try:
        lab.submit({**opcode, 'duration': 1})
    except e2e.fettlelib.LuxiError as error:
        assert 'once' in error.message, error.message
    else:
        raise AssertionError('another body under the same request id was accepted')
    lab.lab('kill', 'luxid@node1')
    assert lab.submit(opcode) == first


class Between:
    """A luxid of our own for one command: `answer(request)` gives the reply, None ends the connection instead."""

    def __init__(self, answer):
        self.answer = answer
        self.root = tempfile.mkdtemp(prefix='fettle-between-')
        os.makedirs(os.path.join(self.root, 'run'))
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(os.path.join(self.root, 'run', 'luxid.sock'))
        self.socket.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.socket.accept()
            with connection:
                self.serve(connection)

    def serve(self, connection):
        buffer = b''
        while True:
            data = connection.recv(65536)
            buffer += data
            if not data:
                return
            while b'\x03' in buffer:
                frame, buffer = buffer.split(b'\x03', 1)
                reply = self.answer(json.loads(frame))
                if reply is None:
                    return
                connection.sendall(json.dumps(reply).encode() + b'\x03')

    def run(self, *words):
        try:
            done = fettlelib.run_command([lab.fettle, '--root', self.root, *words], 120,
                                         env={**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'})
            return done.returncode, done.stdout, done.stderr
        finally:
            shutil.rmtree(self.root)


def pass_on(request):
    """To the luxid that there is, as soon as there is one."""
    def try_it():
        try:
            return {'success': True, 'result': lab.call(request['method'], *request['args'])}
        except (OSError, EOFError):
            lab.luxi_connection = None
            return None
    return wait_until('luxid answers', try_it, 30)


@title('/jobs/a-submission-that-is-cut-off-is-one-job#SAF-31,LUX-16')
def test_cut_off():
    """luxid is killed before it has the submission, then when it has put it on record and nobody knows."""
    told = []

    def cut(request):
        if request['method'] != 'SubmitJob':
            return pass_on(request)
        told.append(request['args'][0][0]['request_id'])
        if len(told) > 2:
            return pass_on(request)
        if len(told) == 2:
            pass_on(request)
        lab.lab('kill', 'luxid@node1')
        lab.luxi_connection = None
        return None

    # One whose start is cut off ends without having run: that is another matter.
    rule = lab.json('queue', 'filter', 'add', '--opcode', 'OP_TEST_DELAY', 'PAUSE')['uuid']
    code, out, err = Between(cut).run('test', 'delay', '0', '--comment', 'cut off', '--submit')
    lab.cli('queue', 'filter', 'remove', rule)
    jobs = [row['id'] for row in lab.query('job', ['id', 'ops']) if row['ops'][0].get('comment') == 'cut off']
    assert len(jobs) == 1 and len(told) == 3 and len(set(told)) == 1, (jobs, told)
    assert (code, out) == (0, f'Job {jobs[0]} is submitted; follow it with: fettle job watch {jobs[0]}\n'), (code, out, err)
    assert err == 'luxid does not answer; it is asked again until it does\n', err
    assert lab.wait_job(jobs[0])[0] == 'success'


@title('/jobs/what-becomes-of-a-submission-may-stay-unknown#SAF-31')
def test_stays_unknown():
    """Then it is said how to go on: with the same request id."""
    told = []

    def deposed(request):
        told.append(request['args'][0][0]['request_id'])
        refusal = ['OpPrereqError', ['the master is node2', 'not_master']]
        return None if len(told) == 1 else {'success': False, 'result': refusal}

    code, out, err = Between(deposed).run('test', 'delay', '0', '--request-id', 'mine')
    assert told == ['mine', 'mine'] and out == '', (told, out)
    assert code == UNKNOWN_RESULT and err.endswith(
        'it is not known whether the job was accepted: the master is node2. Look at `fettle job list`, or say the same again '
        'with --request-id mine: that gives one job, not two\n'), (code, err)


@title('/jobs/cancel-of-a-job-that-ends-at-that-moment#LUX-08')
def test_ended_already():
    rows = [[[[0, False], [2, None]]], [[[0, 'success']]]]

    def answer(request):
        if request['method'] == 'Query':
            return {'success': True, 'result': {'fields': [], 'data': rows.pop(0)}}
        return {'success': True, 'result': [True, 'Job will be canceled: it is asked to give up at the next safe point']}

    code, out, err = Between(answer).run('job', 'cancel', '5')
    assert (code, out, err) == (0, 'Job 5 had ended already, with success. What it did: fettle job info 5\n', ''), (code, out, err)
    assert rows == []


@title('/jobs/kill-of-a-job-whose-file-is-damaged#LUX-08,LUX-14')
def test_kill_damaged():
    """It stands still, and luxid has only its lock file to tell which process it is."""
    job, pid = start_delay(300, no_locks=False, on_instances=['web'])
    os.kill(pid, signal.SIGSTOP)
    with open(os.path.join(lab.root('node1'), 'run', 'queue', f'job-{job}'), 'r+b') as file:
        file.truncate(40)
    lab.lab('kill', 'luxid@node1')
    lab.luxi_connection = None
    wait_until('luxid is back', lambda: lab.job_status(job)[0] is not None)
    lab.cli('job', 'cancel', '--kill', str(job))
    assert lab.wait_job(job) == ('error', [f'detected death of job {job}; its job file was damaged'])
    wait_until('its locks are free', lambda: not locks_of(job))


@title('/jobs/power-cut-of-the-master#SAF-01,SAF-30')
def test_master_power_cut():
    info = lab.call('QueryClusterInfo')
    queued = [ok[1] for ok in lab.call('SubmitManyJobs', [[{'OP_ID': 'OP_TEST_DELAY', 'duration': 2}]] * 30)]
    done = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0})
    lab.lab('power', 'node1', 'off')
    lab.luxi_connection = None
    lab.lab('power', 'node1', 'on')
    after = lab.call('QueryClusterInfo')
    assert after['epoch'] > info['epoch'], (info['epoch'], after['epoch'])
    assert after['serial'] >= info['serial']
    for job in queued + [done]:
        status, _ = lab.wait_job(job, 60)
        assert status in ('success', 'error'), (job, status)
    new = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0})
    assert new > max(queued), 'a job id was given out twice'
    assert lab.wait_job(new)[0] == 'success'


@title('/jobs/damaged-job-file-is-set-aside')
def test_damaged_job_file():
    folder = os.path.join(lab.root('node1'), 'run', 'queue')
    with open(os.path.join(folder, 'job-99999999'), 'w', encoding='utf-8') as file:
        file.write('{"id": 99999999, "ops": [{"inp')
    lab.lab('kill', 'luxid@node1')
    lab.do('OP_TEST_DELAY', duration=0)
    names = os.listdir(folder)
    assert 'job-99999999' not in names, names
    assert any('99999999' in name for name in names), names


@title('/jobs/garbage-on-the-sockets#WCF-11')
def test_garbage():
    for name in ('luxid', 'wconfd', 'noded'):
        path = os.path.join(lab.root('node1'), 'run', name + '.sock')
        for data in (b'garbage\x03', b'\x00' * 100 + b'\x03', b'[1]\x03', b'{}\x03', b'{"hello":{"versions":[7,9],"from":"x"}}\x03',
                     b'"' + b'x' * (9 << 20)):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(60)
                connection.connect(path)
                try:
                    connection.sendall(data)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
                except (BrokenPipeError, ConnectionResetError):
                    pass
    restarts = [d['restarts'] for n in lab.status()['nodes'] for d in n['daemons'] if n['name'] == 'node1']
    lab.do('OP_TEST_DELAY', duration=0)
    assert restarts == [d['restarts'] for n in lab.status()['nodes'] for d in n['daemons'] if n['name'] == 'node1']


@title('/jobs/torn-store-is-refused')
def test_torn_store():
    lab.lab('pause', 'luxid@node1')
    lab.lab('pause', 'wconfd@node1')
    folder = os.path.join(lab.root('node1'), 'var')
    saved = {}
    for name in os.listdir(folder):
        if name.startswith('store.db') and not name.endswith('-shm'):
            with open(os.path.join(folder, name), 'r+b') as file:
                saved[name] = file.read()
                # The middle of every page is overwritten, in the store and in its write-ahead log.
                for offset in range(1000, len(saved[name]), 4096):
                    file.seek(offset)
                    file.write(b'\xff' * 1500)
    lab.lab('kill', 'wconfd@node1')
    log = os.path.join(lab.root('node1'), 'log', 'wconfd.log')
    def refused():
        with open(log, encoding='utf-8', errors='replace') as text:
            return any('store.db' in line and 'damaged' in line for line in text)
    wait_until('wconfd says that its store is damaged', refused)
    for name, content in saved.items():
        with open(os.path.join(folder, name), 'wb') as file:
            file.write(content)
    lab.lab('resume', 'luxid@node1')
    lab.do('OP_TEST_DELAY', duration=0)


@title('/jobs/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab() as lab:
        lab.do('OP_INSTANCE_CREATE', instance_name='web', disk_template='diskless', memory=8, start=False)
        e2e.run(test_kill, test_cancel, test_limit, test_processes, test_no_locks, test_alone, test_luxid_restart, test_warm_killed, test_warm_outlived,
                test_daemons_restart_then_death,
                test_end_without_daemons, test_file_tells, test_request_id, test_cut_off, test_stays_unknown,
                test_ended_already, test_kill_damaged, test_master_power_cut, test_damaged_job_file, test_garbage,
                test_torn_store, test_logs)
