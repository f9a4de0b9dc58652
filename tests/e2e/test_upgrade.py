#!/usr/bin/env python3
"""One daemon after the other is replaced while jobs run, as an upgrade does it: the program's file is another one from one
moment to the next, then the daemon is asked to end (SIGTERM) and its supervisor starts the new file. No job fails, none
runs twice, and what a job holds it keeps. (Messages with fields that only one side knows: tests/unit/core/test_versions.c.)
"""
import glob
import os
import shutil
import signal
import tempfile
import threading
import time
import uuid

import e2e
from e2e import fettlelib, title, wait_until

PATIENCE_S = 120
SHORT_S = 0.3
PASSING = fettlelib.PASSING + ('not_master',)

lab = None
programs = None


def copy_programs(folder):
    """Our programs in the layout of a build, which they find each other by."""
    source = os.path.join(e2e.build(), 'src')
    for path in glob.glob(os.path.join(source, '**', 'fettle*'), recursive=True):
        if os.path.isfile(path) and (os.access(path, os.X_OK) or path.endswith('.so')):
            to = os.path.join(folder, 'src', os.path.relpath(path, source))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(path, to)
    os.mkdir(os.path.join(folder, 'meson-private'))


def program(daemon):
    return os.path.join(programs, 'src', 'daemons', daemon, f'fettle-{daemon}')


def process_of(daemon, node):
    """(pid, inode of the program that it runs); None while none runs."""
    for one in lab.status()['nodes']:
        for row in one['daemons']:
            if one['name'] == node and row['name'] == daemon and row['state'] == 'running' and row['ready']:
                try:
                    return row['pid'], os.stat(f'/proc/{row["pid"]}/exe').st_ino
                except OSError:
                    return None
    return None


def upgrade(daemon, node='node1'):
    """Until the new program runs and is ready."""
    path = program(daemon)
    shutil.copy(path, path + '.new')
    new = os.stat(path + '.new').st_ino
    os.replace(path + '.new', path)
    old, inode = wait_until(f'{daemon} runs', lambda: process_of(daemon, node), PATIENCE_S)
    assert inode != new
    os.kill(old, signal.SIGTERM)
    def replaced():
        now = process_of(daemon, node)
        return now and now[0] != old and now[1] == new
    wait_until(f'{daemon} is the new one', replaced, PATIENCE_S)


class Load:
    """Short jobs with locks, each submitted until luxid has answered, under a request id of its own."""

    def __init__(self):
        self.jobs = {}  # request id -> job
        self.error = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def submit(self, opcode):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                luxi = lab.luxi_new()
                try:
                    return luxi.call('SubmitJob', [opcode])
                finally:
                    luxi.close()
            except (OSError, fettlelib.LuxiError) as error:
                if getattr(error, 'code', PASSING[0]) not in PASSING or time.monotonic() > end:
                    raise
            time.sleep(0.05)

    def run(self):
        number = 0
        try:
            while not self.over.is_set():
                number += 1
                request = str(uuid.uuid4())
                delay = {'OP_ID': 'OP_TEST_DELAY', 'duration': SHORT_S, 'no_locks': False, 'on_nodes': ['node2'],
                         'on_instances': [f'web{number % 3}'], 'request_id': request}
                self.jobs[request] = self.submit(delay)
                self.over.wait(0.1)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def wait_more(self):
        """Until jobs that were submitted later than now have ended well."""
        count = len(self.jobs)
        def ended():
            assert not self.error, self.error
            later = list(self.jobs.values())[count:count + 2]
            return len(later) == 2 and all(lab.job_status(job)[0] in ('success', 'error') for job in later)
        wait_until('later jobs have ended', ended, PATIENCE_S, step=0.1)


def locks_of(job):
    return sorted(row['name'] for row in lab.query('lock', ['name', 'owner']) if str(job) in map(str, row['owner'] or []))


def replaced(*daemons):
    """Each in turn while a long job and short ones run."""
    epoch = lab.json('cluster', 'info')['epoch']
    long = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 3600, 'no_locks': False, 'on_nodes': ['node3'],
                       'on_instances': ['long']})
    wait_until('the long job runs', lambda: lab.job_status(long)[0] == 'running', PATIENCE_S)
    held = locks_of(long)
    assert held
    with Load() as load:
        load.wait_more()
        for daemon, node in daemons:
            upgrade(daemon, node)
            load.wait_more()
            assert lab.job_status(long)[0] == 'running', f'after {daemon} of {node}: {lab.job_status(long)}'
            assert locks_of(long) == held, f'after {daemon} of {node}'
    assert not load.error, load.error
    for request, job in load.jobs.items():
        status, result = lab.wait_job(job, PATIENCE_S)
        assert status == 'success', f'job {job} is {status}: {result}'
        rows = lab.query('job', ['id'], ['=', 'request_id', request])
        assert [row['id'] for row in rows] == [job], (request, job, rows)
    assert lab.json('cluster', 'info')['epoch'] == epoch, 'an upgrade is no new mastership'
    lab.call('CancelJob', long)
    assert lab.wait_job(long, PATIENCE_S)[0] == 'canceled'
    wait_until('its locks are free', lambda: not locks_of(long), PATIENCE_S)


@title('/upgrade/wconfd#FUT-12,SAF-01,WCF-08,WCF-12')
def test_wconfd():
    replaced(('wconfd', 'node1'), ('wconfd', 'node1'))


@title('/upgrade/luxid#FUT-12,LUX-16,LUX-30,LUX-34')
def test_luxid():
    replaced(('luxid', 'node1'), ('luxid', 'node1'))


def replace_job_program():
    """The inode of the new one."""
    path = program('job')
    shutil.copy(path, path + '.new')
    os.replace(path + '.new', path)
    return os.stat(path).st_ino


@title('/upgrade/program-of-jobs#FUT-12')
def test_job_program():
    """While luxid goes on: a process that was ready is of the old one, and gets no job."""
    def inode_of_next():
        job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 1})
        pid = wait_until('it has a process', lambda: e2e.job_pid(lab, job), PATIENCE_S)
        inode = os.stat(f'/proc/{pid}/exe').st_ino
        assert lab.wait_job(job, PATIENCE_S)[0] == 'success'
        return inode
    inode_of_next()
    for _ in range(2):
        old = inode_of_next()
        new = replace_job_program()
        assert old != new == inode_of_next(), (old, new)


@title('/upgrade/one-after-the-other#FUT-12,DTH-02')
def test_all():
    """With the job's own program first, as a package brings them all at once; old and new ones talk."""
    replace_job_program()
    replaced(('wconfd', 'node1'), ('noded', 'node1'), ('luxid', 'node1'), ('watcher', 'node1'), ('rconfd', 'node1'),
             ('noded', 'node2'), ('wconfd', 'node2'), ('rconfd', 'node2'))
    for node in ('node1', 'node2'):
        lab.exec(node, lab.fettle, '--root', lab.root(node), 'confd', 'status')
    e2e.verify_clean(lab, PATIENCE_S)


@title('/upgrade/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with tempfile.TemporaryDirectory(prefix='fettle-upgrade-', dir='/var/tmp') as programs:
        os.chmod(programs, 0o755)
        copy_programs(programs)
        with fettlelib.Lab(programs, options=('--candidates', '2')) as lab:
            e2e.run(test_wconfd, test_luxid, test_job_program, test_all, test_logs)
