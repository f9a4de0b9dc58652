"""Clients that submit jobs to a cluster whose master comes and goes, and that repeat what got no answer under its request_id."""
import contextlib
import os
import threading
import time

import e2e
from e2e import fettlelib

LOST = (OSError, fettlelib.LuxiError, ValueError)
FINAL = ('success', 'error', 'canceled')
TIMEOUT_S = 10


class Client(threading.Thread):
    """One client: jobs one after the other, each until it was answered. `load` has what was answered to it."""

    def __init__(self, load, name):
        super().__init__(daemon=True)
        self.load, self.name = load, name

    def run(self):
        number = 0
        while not self.load.ending:
            number += 1
            self.one(f'{self.name}-{number}')

    def one(self, request):
        raise NotImplementedError

    def call(self, method, *args):
        """The first answer of anybody; None: the load is to end."""
        lab = self.load.lab
        while not self.load.ending:
            for node in [lab.master, *[f'node{n + 1}' for n in range(lab.nodes)]]:
                with contextlib.suppress(*LOST):
                    line = fettlelib.Luxi(os.path.join(lab.root(node), 'run', 'luxid.sock'), timeout=TIMEOUT_S)
                    with contextlib.closing(line):
                        return line.call(method, *args)
            self.load.repeated += 1
            time.sleep(0.2)
        return None

    def submit(self, request, **opcode):
        """The number of the job."""
        job = self.call('SubmitJob', [{**opcode, 'request_id': request}])
        if job is not None:
            self.load.jobs[request] = job
        return job


class Changes(Client):
    """Tags of the cluster; `load.answered` has those of which the client knows that they are there."""

    def one(self, request):
        job = self.submit(request, OP_ID='OP_TAGS_SET', kind='cluster', name='', tags=[request])
        while job is not None:
            row = self.call('QueryJobs', [job], ['status'])
            if not row or (row[0] and row[0][0] in FINAL):
                if row and row[0][0] == 'success':
                    self.load.answered[request] = job
                return
            time.sleep(0.05)


class Jobs(Client):
    """Jobs that last for a moment, submitted whether the ones before have ended or not."""

    def one(self, request):
        self.submit(request, OP_ID='OP_TEST_DELAY', duration=0.2)
        time.sleep(0.1)


class Starts(threading.Thread):
    """Counts how often each job was begun: `seen` has the processes that have run a job, of all nodes, as (pid, start time).
    What lasts for less than a look may be missed."""

    def __init__(self, load):
        super().__init__(daemon=True)
        self.load, self.seen = load, {}

    def run(self):
        lab = self.load.lab
        nodes = [f'node{n + 1}' for n in range(lab.nodes)]
        while not self.load.ending:
            for process in e2e.job_processes(lab, *nodes):
                self.seen.setdefault(process.job, set()).add((process.pid, process.start))
            time.sleep(0.02)

    def check(self, lasting):
        """No job was begun twice; the jobs in `lasting` ended well and were there long enough to be seen."""
        twice = {job: sorted(processes) for job, processes in list(self.seen.items()) if len(processes) > 1}
        assert not twice, f'jobs that ran in more than one process: {twice}'
        missed = [job for job in lasting if job not in self.seen]
        assert len(missed) <= len(lasting) // 10, f'too many jobs were run unseen to say that none ran twice: {missed}'


class Load:
    """Both clients, until end(), and who watches what becomes of their jobs."""

    def __init__(self, lab):
        self.lab, self.ending = lab, False
        self.answered = {}  # tag: job, of changes that were made
        self.jobs = {}  # request_id: job
        self.repeated = 0  # calls that nobody answered
        self.clients = [Changes(self, 'change'), Jobs(self, 'job')]
        self.starts = Starts(self)
        for thread in [*self.clients, self.starts]:
            thread.start()

    def end(self):
        self.ending = True
        for thread in [*self.clients, self.starts]:
            thread.join(60)
