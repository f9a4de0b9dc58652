#!/usr/bin/env python3
"""One daemon after the other is replaced while jobs run, as an upgrade does it: the program's file is another one from one
moment to the next, then the daemon is asked to end (SIGTERM) and its supervisor starts the new file. No job fails, none
runs twice, and what a job holds it keeps. The newer programs are those of a build in which every record – objects, arguments,
answers, opcodes, job files – has one field more, so that each of two that talk knows what the other does not.
FETTLE_LONG=1: images come and go meanwhile, too.
"""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid

import api
import e2e
import test_api_images as images
import test_images as i
import test_volumes as v
import units
import bench_wconfd
from e2e import fettlelib, title, wait_until

PATIENCE_S = 120
SHORT_S = 0.3
OLDER, NEWER = 'older', 'newer'
# In the order of an upgrade; each is the first of its version among those behind it, and the last among those before it.
ORDER = (('wconfd', 'node1'), ('noded', 'node1'), ('job', None), ('luxid', 'node1'), ('watcher', 'node1'), ('rconfd', 'node1'), ('volumed', 'node1'),
         ('mond', 'node1'), ('noded', 'node2'), ('wconfd', 'node2'), ('rconfd', 'node2'), ('volumed', 'node2'), ('mond', 'node2'))
PASSING = fettlelib.PASSING + ('not_master',)

lab = None
programs = None  # folder of those that run
newer = None  # folder of the build of the newer ones


def program(daemon):
    return os.path.join(programs, 'src', 'daemons', daemon, f'fettle-{daemon}')


def build_newer():
    """Nothing is left to do when the whole build was made (meson.build of this folder)."""
    folder = os.path.join(e2e.build(), 'tests', 'e2e', 'newer')
    done = subprocess.run([os.path.join(e2e.ROOT, 'tests', 'e2e', 'build-newer'), e2e.ROOT, folder], check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def put_program(daemon, version):
    """The file of this version in the place of the one that there is; its inode."""
    source = os.path.join(e2e.build() if version == OLDER else newer, 'src', 'daemons', daemon, f'fettle-{daemon}')
    path = program(daemon)
    shutil.copy(source, path + '.new')
    inode = os.stat(path + '.new').st_ino
    os.replace(path + '.new', path)
    return inode


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


def upgrade(daemon, node, version):
    """Until a program of this version runs and is ready."""
    new = put_program(daemon, version)
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
        patience = fettlelib.Patience(PATIENCE_S)
        while True:
            try:
                luxi = lab.luxi_new()
                try:
                    return luxi.call('SubmitJob', [opcode])
                finally:
                    luxi.close()
            except (OSError, fettlelib.LuxiError) as error:
                if getattr(error, 'code', PASSING[0]) not in PASSING or patience.is_over():
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


# --- objects that have a member of the later version ---

def without_defaults(text):
    """A store has what it was told by who wrote it; a newer program adds its own defaults when it tells it to others."""
    version, json_of = text.split(' ', 1)
    def plain(value):
        if isinstance(value, list):
            return [plain(one) for one in value]
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items() if (key, one) != ('newer', '')}
        return value
    return version, json.dumps(plain(json.loads(json_of)), sort_keys=True)


class Marked:
    """The cluster, a node, an instance and a tag with a value in the field that only newer programs know. Jobs change them;
    nobody may lose it."""
    VALUE = 'kept'

    def __init__(self):
        lab.cli('instance', 'create', 'marked', '--disk-template', 'diskless', '--memory', '8', '--pnode',
                'node2', '--no-start')
        lab.cli('tag', 'add', 'instance', 'marked', 'marked')
        objects = self.objects()
        self.keys = [next(key for key, (_, json_of) in objects.items() if key.startswith(kind + '/') and mark in json_of)
                     for kind, mark in (('cluster', ''), ('node', '"node3"'), ('instance', '"marked"'), ('tag', '"marked"'))]
        self.commit(objects)
        self.count = 0

    @staticmethod
    def objects():
        """{kind/key: [version, text of the object]} in the master's store."""
        return {key: text.split(' ', 1) for key, text in e2e.content_of(lab, 'node1')[1].items()}

    def commit(self, objects):
        client = bench_wconfd.Client(lab.root('node1'), bench_wconfd.AS_JOB)
        bench_wconfd.hold_file(lab.root('node1'))
        locks = [{'name': f'{name}', 'mode': 'exclusive'} for name in ('cluster/BGL', 'instance/[lockset]', 'node/[lockset]', 'cluster/config')]
        answer = client.call('update_locks', {'owner': bench_wconfd.OWNER, 'locks': locks, 'wait': True, 'wait_ms': 20000})
        assert answer['granted'], answer
        client.call('commit', bench_wconfd.commit_args(*(
            {'op': 'put', 'kind': key.split('/', 1)[0], 'key': key.split('/', 1)[1], 'version': int(objects[key][0]),
             'object': {**json.loads(objects[key][1]), 'newer': self.VALUE}} for key in self.keys)))
        client.call('free_locks', {'owner': bench_wconfd.OWNER})
        client.close()

    def change(self, drained):
        """By jobs; the tag is left as it is."""
        self.count += 1
        lab.cli('cluster', 'modify', '--job-archive-age-s', str(20000 + self.count))
        lab.cli('node', 'modify', 'node3', '--drained', 'no' if drained else 'yes')
        lab.cli('instance', 'modify', 'marked', '--memory', str(8 + self.count))

    def check(self, when):
        before = self.objects()
        self.change(json.loads(before[self.keys[1]][1])['drained'])
        wait_until(f'{when}: the copy is that of the master', lambda: e2e.equal_copies(lab, 'node1', 'node2', normal=without_defaults), PATIENCE_S)
        objects = self.objects()
        for key in self.keys:
            assert key.startswith('tag/') or objects[key] != before[key], f'{when}: no job has changed {key}'
            found = json.loads(objects[key][1]).get('newer')
            assert found == self.VALUE, f'{when}: {key} has "{found}" in the field of the later version'


# --- one after the other ---

def replaced(version, *daemons, marked=None):
    """Each in turn by this version while a long job and short ones run."""
    epoch = lab.json('cluster', 'info')['epoch']
    long = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 3600, 'no_locks': False, 'on_nodes': ['node2'],
                       'on_instances': ['long']})
    wait_until('the long job runs', lambda: lab.job_status(long)[0] == 'running', PATIENCE_S)
    held = locks_of(long)
    assert held
    with Load() as load:
        load.wait_more()
        for daemon, node in daemons:
            when = f'{version} {daemon} of {node}'
            if node:
                upgrade(daemon, node, version)
            else:
                put_program(daemon, version)
            load.wait_more()
            assert lab.job_status(long)[0] == 'running', f'{when}: {lab.job_status(long)}'
            assert locks_of(long) == held, when
            wait_until(f'{when}: all nodes know the master', lambda: not lab.json('cluster', 'info')['nodes_pending'], PATIENCE_S)
            if marked:
                marked.check(when)
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
    replaced(NEWER, ('wconfd', 'node1'))
    replaced(OLDER, ('wconfd', 'node1'))


@title('/upgrade/luxid#FUT-12,LUX-16,LUX-30,LUX-34')
def test_luxid():
    replaced(NEWER, ('luxid', 'node1'))
    replaced(OLDER, ('luxid', 'node1'))


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
    for version in (NEWER, OLDER):
        old = inode_of_next()
        new = put_program('job', version)
        assert old != new == inode_of_next(), (old, new)


def is_newer(daemon):
    """Whether the program in this place is of the later version; so the test cannot pass with two of the same."""
    with open(program(daemon), 'rb') as file:
        return b'Of a later version.' in file.read()


@title('/upgrade/one-after-the-other#FUT-12,DTH-02')
def test_all():
    """There and back: so of each two that talk each is the newer one once. The one that is not replaced is node3's."""
    marked = Marked()
    for version in (NEWER, OLDER):
        replaced(version, *ORDER, marked=marked)
        assert {is_newer(daemon) for daemon, _ in ORDER} == {version == NEWER}
        for node in ('node1', 'node2'):
            lab.exec(node, lab.fettle, '--root', lab.root(node), 'confd', 'status')
        lab.cli('node', 'modify', 'node3', '--drained', 'no')
        e2e.verify_clean(lab, PATIENCE_S)


# --- images on their way ---

MEMBERS = (('volumed', 'node1'), ('volumed', 'node2'))
BYTES = os.urandom(8 << 20) + b'end'


def begin_images():
    v.add_backend('dir1', 'node1', 'node2')
    lab.cli('backend', 'modify', 'dir1', '--images', 'yes')
    images.front = api.init(lab)
    wait_until('somebody can log in', images.front.can_log_in, PATIENCE_S)
    images.TOKEN = images.front.login()[1]


def sent(image):
    """Whether all of it was taken."""
    try:
        return images.put(image, BYTES)[0] == 204
    except api.HUNG_UP:
        return False


def taken_and_given(image, name):
    """What was sent is there, comes back and can go."""
    wait_until('what was asked for shows', lambda: images.status_of(name) == 'active', PATIENCE_S)  # who is asked follows the master
    status, _, body = images.ask('GET', f'/images/{image}/file')
    assert (status, body) == (200, BYTES)
    assert images.ask('DELETE', f'/images/{image}')[0] == 204
    wait_until('it is gone', lambda: name not in i.images(), PATIENCE_S)
    i.check('dir1')


def half_sent(name):
    image = images.made(name)
    upload = images.Upload(image, len(BYTES))
    upload.send(BYTES[:4 << 20])
    wait_until('a member has some of it', lambda: images.comes(image), PATIENCE_S)
    return image, upload


def upload_during(version, *daemons, passes):
    """Those are replaced in the middle of it. It passes, or it comes to nothing, and the same again passes."""
    name = f'{version}-{daemons[0][0]}'
    image, upload = half_sent(name)
    for daemon, node in daemons:
        upgrade(daemon, node, version)
    try:
        upload.send(BYTES[4 << 20:])
        status = upload.end()[0]
    except api.HUNG_UP:
        status = None
    upload.gone()
    assert status == 204 or not passes, (name, status)
    if status != 204:
        wait_until('nothing has come of it', lambda: images.status_of(name) == 'queued', PATIENCE_S)
        wait_until('it can be repeated', lambda: sent(image), PATIENCE_S)
    taken_and_given(image, name)


def upload_between(when):
    image = images.made(when)
    assert sent(image), when
    taken_and_given(image, when)


@title('/upgrade/images-on-their-way#FUT-12,SAF-60')
def test_images():
    """By a front end that is newer than master and members, and by one that is older; and while each of them is replaced."""
    begin_images()
    upload_during(NEWER, ('apid', 'node1'), passes=False)
    assert is_newer('apid') and not is_newer('wconfd') and not is_newer('volumed')
    upload_between('by-a-newer-one')
    upload_during(NEWER, ('wconfd', 'node1'), passes=True)
    upload_during(OLDER, ('apid', 'node1'), passes=False)
    assert not is_newer('apid') and is_newer('wconfd') and not is_newer('volumed')
    upload_between('by-an-older-one-with-a-newer-master')
    upload_during(NEWER, *MEMBERS, passes=False)
    upload_between('by-an-older-one')
    upload_during(OLDER, ('wconfd', 'node1'), passes=True)
    upload_between('to-newer-members')
    upload_during(OLDER, *MEMBERS, passes=False)


@title('/upgrade/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with tempfile.TemporaryDirectory(prefix='fettle-upgrade-', dir='/var/tmp') as programs:
        os.chmod(programs, 0o755)
        newer = build_newer()
        units.copy_programs(e2e.build(), programs)
        with fettlelib.Lab(programs, options=('--candidates', '2')) as lab:
            i.lab = v.lab = images.lab = lab
            v.folder = os.path.join(lab.directory, 'shared')
            e2e.run(test_wconfd, test_luxid, test_job_program, test_all, *((test_images,) if e2e.LONG else ()), test_logs)
