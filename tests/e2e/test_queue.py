#!/usr/bin/env python3
"""The queue as its users see it: the archive of jobs, limits of LUXI, the stream of changes."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

import e2e
from e2e import title, wait_until

ALL = ['node1', 'node2', 'node3']
lab = None


def delay(**more):
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0, **more})
    assert lab.wait_job(job)[0] == 'success'
    return job


def archive_path(node, job):
    return os.path.join(lab.root(node), 'var', 'queue', 'archive', str(job // 10000), f'job-{job}')


def archived_on(job):
    return [node for node in ALL if os.path.exists(archive_path(node, job))]


@title('/queue/archive-one#LUX-06,LUX-10')
def test_archive_one():
    job, other = delay(), delay()
    out = lab.cli('job', 'archive', str(job))
    assert out == f'Job {job} is archived.\n', out
    assert archived_on(job) == ALL, archived_on(job)
    with open(archive_path('node2', job), encoding='utf-8') as file:
        record = json.load(file)
    assert record['id'] == job and record['status'] == 'success', record
    ids = [row['id'] for row in lab.json('job', 'list')]
    assert other in ids and job not in ids, ids
    rows = {row['id']: row['archived'] for row in lab.json('job', 'list', '--archived')}
    assert rows[job] is True and rows[other] is False, rows
    assert lab.cli('job', 'info', str(job)).startswith(f'Job {job}: success\n')
    assert lab.cli('job', 'watch', str(job)).endswith(f'Job {job} has succeeded.\n')
    # Asked again it is there; what it was submitted with is still its own.
    assert lab.cli('job', 'archive', str(job)) == out
    for words in (('cancel', str(job)), ('change-priority', str(job), 'low')):
        e2e.expect_cli_error(lab, 5, f'fettle: Job {job} has ended already, with success, and is archived', 'job', *words)
    assert lab.cli('job', 'list', '--no-headers', '-o', 'id,status', str(job), str(other)) == f'{job} success\n{other} success\n'
    assert [row['id'] for row in lab.json('job', 'list', '--archived', '--filter', f'id >= {job} and status == "success" and archived')] == [job]


@title('/queue/archive-refused')
def test_archive_refused():
    running = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 30})
    wait_until('it runs', lambda: lab.job_status(running)[0] == 'running')
    for args, code, message in (
            (('archive', str(running)), 5, f'fettle: job {running} is running: only a job that has ended can be archived'),
            (('archive', '999999'), 3, 'fettle: job 999999 does not exist'),
            (('archive', 'x'), 2, 'fettle: "x" is no job id'),
            (('autoarchive', '5y'), 2, 'fettle: "5y" is no age of at most 365d: a number of seconds, or one with s, m, h, d or w behind it, or all'),
            (('autoarchive', '366d'), 2, 'fettle: "366d" is no age of at most 365d: a number of seconds, or one with s, m, h, d or w behind it, or all')):
        e2e.expect_cli_error(lab, code, message, 'job', *args)
    lab.call('CancelJob', running)
    lab.wait_job(running)


@title('/queue/autoarchive#LUX-06')
def test_autoarchive():
    jobs = [answer[1] for answer in lab.call('SubmitManyJobs', [[{'OP_ID': 'OP_TEST_DELAY', 'duration': 0}]] * 150)]
    for job in jobs:
        lab.wait_job(job)
    assert lab.cli('job', 'autoarchive', '1h') == '0 jobs are archived now, 0 of that age are left.\n'
    wait_until('all of them are gone from the list', lambda: lab.cli('job', 'autoarchive', 'all') and not
               {row['id'] for row in lab.query('job', ['id'])} & set(jobs))
    for job in jobs:
        assert archived_on(job) == ALL, (job, archived_on(job))


@title('/queue/old-jobs-go-by-themselves#LUX-06')
def test_by_age():
    old = delay()
    time.sleep(1.1) # old enough when the age is set, which is looked at at once
    lab.cli('cluster', 'modify', '--job-archive-age-s', '1')
    wait_until('an old job is archived', lambda: archived_on(old) == ALL, 90, step=0.5)
    lab.cli('cluster', 'modify', '--job-archive-age-s', '0')


@title('/queue/archive-waits-for-every-candidate#LUX-10')
def test_archive_waits():
    job = delay()
    lab.lab('power', 'node2', 'off')
    code, _, err = lab.run('job', 'archive', str(job), check=False)
    assert code != 0 and 'jobs stay on record until candidate node2 has them in its archive, or is marked offline: ' in err, err
    assert lab.job_status(job)[0] == 'success' and job in [row['id'] for row in lab.query('job', ['id'])]
    lab.cli('node', 'modify', 'node2', '--offline', 'yes', '--statement', 'its power is off')
    lab.cli('job', 'archive', str(job))
    assert archived_on(job) == ['node1', 'node3'], archived_on(job)
    lab.lab('power', 'node2', 'on')
    lab.cli('node', 'modify', 'node2', '--offline', 'no')
    wait_until('node2 has what it has missed', lambda: archived_on(job) == ALL, 120, step=0.5)


@title('/queue/luxid-dies-while-it-archives#LUX-06')
def test_archive_crashes():
    jobs = [answer[1] for answer in lab.call('SubmitManyJobs', [[{'OP_ID': 'OP_TEST_DELAY', 'duration': 0}]] * 200)]
    for job in jobs:
        lab.wait_job(job)
    for _ in range(6):
        with_luxi = lab.luxi_new()
        with_luxi.send({'method': 'AutoArchiveJobs', 'args': [-1, 5]})
        time.sleep(0.02)
        lab.lab('kill', 'luxid@node1')
        with_luxi.close()
        # At every moment each of them is known, once, as it has ended.
        rows = lab.query('job', ['id', 'status', 'archived'])
        found = [row['id'] for row in rows]
        assert len(found) == len(set(found)), found
        assert {row['id'] for row in rows if row['status'] == 'success'} >= set(jobs), rows
        for row in rows:
            if row['id'] in jobs and row['archived']:
                assert archived_on(row['id']) == ALL, row


class Stream:
    """A client of WatchChanges; `anew` is why it had to begin, each time."""

    def __init__(self, kinds):
        self.kinds, self.stream, self.serial, self.anew = kinds, '', 0, []

    def ask(self, timeout=20, connection=None):
        answer = (connection or lab).call('WatchChanges', self.kinds, self.stream, self.serial, timeout)
        self.stream, self.serial = answer['stream'], answer['serial']
        if answer['anew']:
            self.anew.append(answer['why'])
            assert answer['changes'] == [], answer
        else:
            assert answer['why'] == '', answer
        return answer['changes']

    def until(self, wanted):
        """Asks until the last row of each object of interest is as wanted: {(kind, key): row or None}; returns all it was told."""
        told, last = [], {}
        def there():
            for kind, key, row in self.ask():
                last[kind, key] = row and [value for _, value in row]
                told.append((kind, key, last[kind, key]))
            return all(one in last and last[one] == row for one, row in wanted.items())
        wait_until(f'the stream tells {wanted}', there, 60, step=0)
        return told


@title('/queue/stream-of-changes#LUX-03,LUX-33')
def test_stream():
    stream = Stream({'job': ['status'], 'instance': ['name', 'admin_state', 'tags'], 'decision': ['summary']})
    stream.ask()
    assert stream.anew == ['this is where the stream stands'], stream.anew
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0.5})
    told = stream.until({('job', str(job)): ['success']})
    states = [row[0] for kind, key, row in told if (kind, key) == ('job', str(job))]
    order = ['queued', 'waiting', 'running', 'success']
    assert 'running' in states and states == sorted(states, key=order.index), states
    lab.cli('instance', 'create', 'watched', '--disk-template', 'diskless', '--memory', '8M', '--no-start')
    uuid = e2e.uuid_of(lab, 'watched')
    stream.until({('instance', uuid): ['watched', 'down', []]})
    lab.cli('tag', 'add', 'instance', 'watched', 'owner:mail')
    stream.until({('instance', uuid): ['watched', 'down', ['owner:mail']]})
    # The watcher leaves a decision: the guest of an instance that should run is gone.
    lab.cli('instance', 'startup', 'watched')
    os.kill(lab.qemu_processes(uuid)[0], signal.SIGKILL)
    told = []
    wait_until('the stream tells of a decision', lambda: told.extend(stream.ask()) or 'decision' in [c[0] for c in told], 60, step=0)
    lab.cli('instance', 'remove', 'watched', '--yes', '--shutdown-timeout', '0')
    stream.until({('instance', uuid): None})
    lab.cli('job', 'archive', str(job))
    stream.until({('job', str(job)): None})
    assert len(stream.anew) == 1, stream.anew


@title('/queue/stream-ends-with-its-luxid#LUX-16')
def test_stream_restart():
    stream, seen = Stream({'job': ['status']}), []
    stream.ask()
    connection = lab.luxi_new()
    def wait_long():
        try:
            stream.ask(60, connection)
        except (OSError, ConnectionError, EOFError, e2e.fettlelib.LuxiError) as error:
            seen.append(error)
    waiting = threading.Thread(target=wait_long)
    waiting.start()
    time.sleep(0.2)
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 3})
    waiting.join(240)
    assert not waiting.is_alive() and not seen, seen
    lab.lab('kill', 'luxid@node1')
    connection.close()
    lab.luxi_connection = None
    former = stream.stream
    wait_until('luxid answers', lambda: lab.run('queue', 'info', check=False)[0] == 0, 30)
    assert stream.ask() == [] and len(stream.anew) == 2 and stream.stream != former
    assert stream.anew[1] == 'this is another stream: luxid was started anew, or has read the configuration anew', stream.anew
    # A job that runs is told of by the new luxid as by the one that has started it.
    if lab.job_status(job)[0] != 'success':
        stream.until({('job', str(job)): ['success']})


@title('/queue/stream-bad-input')
def test_stream_refused():
    jobs = {'job': ['id']}
    answer = lab.call('WatchChanges', jobs)
    for args, message in (
            ([], 'WatchChanges: kinds: is missing'),
            ([{}], 'WatchChanges: kinds: must be {kind: [fields], …}, with at least one of job, instance, node'),
            ([{'moon': []}], 'WatchChanges: kinds: "moon" cannot be watched; what can is job, instance, node'),
            ([{'job': ['nope']}], 'WatchChanges: kinds.job: there is no field "nope"'),
            ([{'instance': ['status']}], 'WatchChanges: kinds.instance: the nodes are asked for "status", so it changes untold; '
                                         'it can be had by Query only'),
            ([jobs, answer['stream'], answer['serial'] + 1000000],
             f'WatchChanges: serial: the stream is at {answer["serial"]} and has no {answer["serial"] + 1000000} yet'),
            ([jobs, answer['stream'], 'x'], 'WatchChanges: serial: must be a number'),
            ([jobs, '', 3], 'WatchChanges: stream: is missing, for serial 3; to begin, leave out both'),
            ([jobs, None, None, 601], 'WatchChanges: timeout: must be at most 600')):
        try:
            lab.call('WatchChanges', *args)
        except e2e.fettlelib.LuxiError as error:
            assert message in str(error), (message, str(error))
        else:
            raise AssertionError(f'{args} was taken')
    for words, message in (
            (['--live', '--archived'], 'fettle: --live shows jobs that are not in the archive: leave out "archived"'),
            (['--live', '-o', 'id,archived'], 'fettle: --live shows jobs that are not in the archive: leave out "archived"'),
            (['--live', '5'], 'fettle: job list: --live follows all jobs: leave out ids, --status, --filter, --sort and --limit')):
        e2e.expect_cli_error(lab, 2, message, 'job', 'list', *words)
    code, _, err = lab.run('job', 'list', '--live', '-o', 'id,nope', check=False)
    assert code == 2 and err == 'fettle: -o: job has no field "nope"; see fettle query-fields job\n', err


class Live:
    """`fettle job list --live` with its output in files."""

    def __init__(self, *words, node='node1'):
        self.out, self.err = tempfile.TemporaryFile('w+'), tempfile.TemporaryFile('w+')
        self.process = subprocess.Popen([lab.fettle, '--root', lab.root(node), 'job', 'list', '--live', *words],
                                        stdout=self.out, stderr=self.err)

    def text(self, file):
        return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)

    def lines(self, file):
        return self.text(file).decode().splitlines()

    def wait(self, what, found, file=None):
        """Until a line is there, to its end."""
        def lines():
            whole = self.text(file or self.out).rpartition(b'\n')[0]
            return [line for line in whole.decode().splitlines() if found(line)]
        return wait_until(what, lines, 40)

    def end(self):
        """Ctrl-C; returns (exit code, standard output, standard error) as lines."""
        self.process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self):
        code = self.process.wait(30)
        try:
            return code, self.lines(self.out), self.lines(self.err)
        finally:
            self.out.close()
            self.err.close()


def ask_and_leave(method, args, nothing):
    """More clients than may wait come, ask and leave; the next one may wait nevertheless."""
    path = os.path.join(lab.root('node1'), 'run', 'luxid.sock')
    frame = json.dumps({'method': method, 'args': [*args, 600]}).encode() + b'\x03'
    for _ in range(11):
        clients = [socket.socket(socket.AF_UNIX) for _ in range(100)]
        for client in clients:
            client.connect(path)
            client.sendall(frame)
        lab.call('QueryTags', 'cluster', '')  # all of them wait by now
        for client in clients:
            client.close()
    answer = lab.call(method, *args, 1)
    if isinstance(answer, dict):
        assert answer.pop('record') > 0
    assert answer == nothing, answer


@title('/queue/calls-of-clients-that-are-gone-take-no-place')
def test_gone():
    delay()
    stream = Stream({'job': ['status']})
    stream.ask()
    ask_and_leave('WatchChanges', [stream.kinds, stream.stream, stream.serial],
                  {'stream': stream.stream, 'serial': stream.serial, 'anew': False, 'why': '', 'changes': [], 'serials': []})
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 3600})
    wait_until('it runs', lambda: lab.job_status(job)[0] == 'running')
    ask_and_leave('WaitForJobChange', [job, ['status'], ['running'], 1000], 'nochange')
    lab.call('CancelJob', job)
    lab.wait_job(job)


@title('/queue/job-list-live#LUX-16')
def test_live():
    before = delay()
    lines = Live('-o', 'id,status,summary')
    objects = Live('--json', '-o', 'status,request_id')
    lines.wait('the list is shown', lambda line: line.split()[:2] == [str(before), 'success'])
    objects.wait('the list is shown', lambda line: json.loads(line)['id'] == before)
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 1.5})
    lines.wait('it runs', lambda line: line.split()[:2] == [str(job), 'running'])
    lab.lab('kill', 'luxid@node1')
    lab.luxi_connection = None
    lines.wait('it goes on', lambda line: line.startswith('The list is read anew: '), lines.err)
    lines.wait('it has ended', lambda line: line.split()[:2] == [str(job), 'success'])
    after = wait_until('a job is taken', lambda: delay(request_id='told'), 30)
    wait_until('it is archived', lambda: lab.run('job', 'archive', str(after), check=False)[0] == 0, 30)
    lines.wait('it is gone', lambda line: line.split()[:2] == [str(after), 'archived'])
    objects.wait('it is gone', lambda line: json.loads(line)['change'] == 'gone')
    code, out, err = lines.end()
    assert code == 0 and out[0].split() == ['ID', 'State', 'Summary'], (code, out)
    assert err == ['luxid does not answer; it is asked again until it does',
                   'The list is read anew: this is another stream: luxid was started anew, or has read the configuration anew.'], err
    # Nothing is said twice, although the list was read twice.
    assert len(out) == len(set(out)), out
    assert [line.split()[1] for line in out if line.split()[0] == str(job)][-1] == 'success', out
    code, out, _ = objects.end()
    told = [json.loads(line) for line in out]
    assert code == 0 and all(set(one) == {'change', 'id', 'status', 'request_id'} for one in told), told
    assert {'change': 'listed', 'id': before, 'status': 'success', 'request_id': ''} in told, told
    last = {one['id']: one for one in told}
    assert last[job] == {'change': 'changed', 'id': job, 'status': 'success', 'request_id': ''}, last[job]
    assert last[after] == {'change': 'gone', 'id': after, 'status': 'success', 'request_id': 'told'}, last[after]


@title('/queue/archive-and-stream-after-a-change-of-master#LUX-01,LUX-10,LUX-11,SAF-31')
def test_change_of_master():
    job = delay(request_id='archived-once')
    lab.cli('job', 'archive', str(job))
    live, stream = Live(), Stream({'job': ['status']})
    stream.ask()
    live.wait('the list is shown', lambda line: line.startswith('ID '))
    lab.lab('power', 'node1', 'off')
    lab.luxi_connection = None
    lab.master = 'node2'
    def taken_over():
        text = lab.run('cluster', 'master-failover', '--yes', check=False)[1]
        return re.search(r'^Node (node[23]) becomes the master', text, re.M)
    lab.master = wait_until('another node becomes the master', taken_over, 40, step=0.5).group(1)
    wait_until('it serves', lambda: lab.run('node', 'list', check=False)[0] == 0, 30)
    lab.cli('node', 'modify', 'node1', '--offline', 'yes', '--statement', 'its power is off')
    assert lab.call('QueryJobs', [job], ['status', 'archived']) == [['success', True]]
    assert job in [row['id'] for row in lab.json('job', 'list', '--archived')]
    assert lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0, 'request_id': 'archived-once'}) == job
    assert stream.ask() == [] and len(stream.anew) == 2, stream.anew
    new = delay()
    assert new > job, (new, job)
    stream.until({('job', str(new)): ['success']})
    lab.cli('job', 'archive', str(new))
    assert archived_on(new) == ['node2', 'node3'], archived_on(new)
    stream.until({('job', str(new)): None})
    # The list that was begun on the old master waits for its luxid, which says that this is not the master any more.
    lab.lab('power', 'node1', 'on')
    code, _, err = live.ended()
    assert (code, err[0]) == (9, 'luxid does not answer; it is asked again until it does'), (code, err)
    assert err[-1].startswith('fettle: this node is not the master'), err


def main():
    global lab
    with e2e.new_lab(options=('--candidates', '3', '--replica-lost-ms', '1000', '--watcher-interval-ms', '500')) as lab:
        e2e.run(test_archive_one, test_archive_refused, test_autoarchive, test_by_age, test_archive_waits, test_archive_crashes, test_stream, test_stream_restart,
                test_stream_refused, test_gone, test_live, test_change_of_master)


if __name__ == '__main__':
    main()
