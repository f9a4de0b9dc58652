"""What the end-to-end tests share: TAP output, a lab with the sanitized build, and the checks after every step."""
import collections
import contextlib
import glob
import itertools
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import fettlelib  # noqa: E402
import units  # noqa: E402
from fettlelib import wait_until  # noqa: E402,F401

if fettlelib.machine_is_busy(75):
    os.environ.setdefault('FETTLE_ETCD_PATIENCE', '4')  # members and masters of labs have longer then, and so have commands
UNITS = os.environ.get('FETTLE_LAB_UNITS') == '1'
LONG = os.environ.get('FETTLE_LONG') == '1'
REPORT = re.compile(r'ERROR: \w+Sanitizer|runtime error:|Assertion .* failed|assertion failed|\*\* ERROR|job (?!999999 )\d+ uses the wide commit')
TICK = {'disk_template': 'mirror', 'disks': [{'size': 8}], 'memory': 8, 'os_type': 'tick'}  # four or five counts a second
BUSY = {**TICK, 'os_type': 'tick-fast'}  # as fast as its disk: most of a processor


def build():
    return os.environ.get('FETTLE_BUILD', os.path.join(ROOT, 'build/check'))


# With the rest of the script, which goes on below "$0/merged": this machine under an overlay.
OVERLAY = '''
set -e
mount --make-rprivate /
# Copies of mounts here would keep the disks of labs that run beside this one busy. What is below another goes with it.
awk '/ - ext4 \\/dev\\/loop/ { print $5 }' /proc/self/mountinfo | while read -r point; do umount -l "$point" 2>/dev/null || :; done
mount -t tmpfs none "$0"
mkdir "$0/upper" "$0/work" "$0/merged"
mount -t overlay none -o "lowerdir=/,upperdir=$0/upper,workdir=$0/work" "$0/merged"
mount -t proc proc "$0/merged/proc"
'''
# Three addresses and a bridge, as a cluster on one host takes them.
OVERLAY_NETWORK = '''
ip link set lo up
for number in 1 2 3; do ip addr add 10.77.0.$number/24 dev lo; done
ip link add br0 type bridge
ip link set br0 up
'''


def overlaid(folder, mounts):
    """This machine under an overlay, with processes, network and mounts of its own: what is written there goes with it. `mounts`: shell text for
    what else is mounted there. The process that it lives as long as, the id of one in it, and the words before a command that is run in it."""
    script = OVERLAY + mounts + OVERLAY_NETWORK + 'echo ready\nexec sleep infinity\n'
    outer = subprocess.Popen(['unshare', '--mount', '--net', '--pid', '--fork', '--kill-child', 'sh', '-c', script, folder],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert outer.stdout.readline() == 'ready\n', 'the overlay cannot be made'
    with open(f'/proc/{outer.pid}/task/{outer.pid}/children', encoding='utf-8') as file:
        pid = file.read().split()[0]
    return outer, pid, ['nsenter', '-t', pid, '-m', '-n', '-p', 'chroot', os.path.join(folder, 'merged')]


@contextlib.contextmanager
def new_lab(nodes=3, options=('--replica-lost-ms', '1000', '--watcher-interval-ms', '500')):
    """By hand, and in the long suite: FETTLE_LAB_UNITS=1, with the capabilities and system calls of the daemons' units (units.py)."""
    with tempfile.TemporaryDirectory(prefix='fettle-units-', dir='/var/tmp') as folder:
        os.chmod(folder, 0o755)
        programs = units.make_build(build(), ROOT, folder) if UNITS else build()
        with fettlelib.Lab(programs, nodes=nodes, options=options) as lab:
            yield lab


@contextlib.contextmanager
def lab_folder():
    """Where a program may make its lab; it may leave no folder, network namespace or loop device behind."""
    with tempfile.TemporaryDirectory(prefix='fettle-parent-', dir='/var/tmp') as parent:
        os.chmod(parent, 0o711)  # guests are no root
        folder = os.path.join(parent, 'lab')
        yield folder
        left = os.listdir(parent)
        for command, mark in ((('ip', 'netns', 'list'), fettlelib.namespace_prefix(folder)), (('losetup', '--all'), parent)):
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            left += [line for line in said.splitlines() if mark in line]
        assert not left, f'left behind: {left}'


def run(*tests):
    """Runs functions as TAP points; a test's name is its `title`, which carries the ids that it proves.

    By hand: FETTLE_ONLY="cancel timeout" runs only those whose title has one of these words in it.
    """
    only = os.environ.get('FETTLE_ONLY', '').split()
    tests = [test for test in tests if not only or any(word in getattr(test, 'title', '') for word in only)]
    print(f'1..{len(tests)}', flush=True)
    failed = False
    for number, test in enumerate(tests, 1):
        title = getattr(test, 'title', test.__name__)
        try:
            test()
            print(f'ok {number} {title}', flush=True)
        except Exception:  # pylint: disable=broad-except
            failed = True
            print(f'not ok {number} {title}', flush=True)
            for line in traceback.format_exc().splitlines():
                print('# ' + line, flush=True)
            mend_labs()
    sys.exit(1 if failed else 0)


def mend_labs():
    """A point that has failed may have left anything: what comes after it is not to fail for that."""
    for lab in fettlelib.Lab.living:
        try:
            said = '; '.join(lab.mend()) or 'nothing'
        except Exception as error:  # pylint: disable=broad-except
            said = f'what is left cannot be mended: {error}'
        print(f'# after that failure: {said}', flush=True)


def is_traced(pid):
    """Whether strace -f has all of its threads, and its file is there."""
    found = []
    for path in glob.glob(f'/proc/{pid}/task/*/status'):
        with open(path, encoding='utf-8') as file:
            found.append('TracerPid:\t0\n' not in file.read())
    return all(found) and bool(found)


def title(text):
    def mark(function):
        function.title = text
        return function
    return mark


def named(test, *args):
    """The same test with these arguments."""
    def call():
        test(*args)
    call.title = test.title
    return call


def check_logs(lab):
    """No daemon, job or QEMU of the lab may have been reported by a sanitizer or an assertion, and no job for a commit that names no
    change (WCF-22)."""
    for path in glob.glob(os.path.join(lab.directory, '**', '*.log'), recursive=True):
        with open(path, encoding='utf-8', errors='replace') as file:
            for line in file:
                if REPORT.search(line):
                    report = ''.join([line, *itertools.islice(file, 15)])
                    raise AssertionError(f'{path}: {report.strip()}')


# The master was lost, or has begun anew without the change; and whatever else passes.
ENGINE_AGAIN = (9, 17, *fettlelib.AGAIN)


def change_engine(to, ask, seconds):
    """Until it is made. `ask`: one try, at whoever is the master then; its exit code, and what it said."""
    patience, again = fettlelib.Patience(seconds), False
    while True:
        code, said = ask()
        # By a try before, of which nobody could say so.
        if code == 0 or again and f'the engine is {to} already' in said:
            return
        assert code in ENGINE_AGAIN and not patience.is_over(), (code, said)
        again = True


def lab_engine(lab, to):
    def ask():
        wait_until('somebody serves', lab.find_master, 60)
        code, out, err = lab.run('cluster', 'engine', to, '--yes', check=False)
        return code, out + err
    change_engine(to, ask, 240)


def create(lab, name, template='mirror', **more):
    """A counting guest on node2, with its replica, if it has one, on node3. Its UUID."""
    params = {**TICK, 'disk_template': template, **more}
    if template == 'mirror':
        params['snode'] = 'node3'
    lab.do('OP_INSTANCE_CREATE', instance_name=name, pnode='node2', **params)
    return uuid_of(lab, name)


def uuid_of(lab, name):
    return lab.instance(name, 'uuid')['uuid']


class Beside(threading.Thread):
    """Runs beside a `with` block, at the end of which it is told that it is `over`."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over = False

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.join()


class Commits(Beside):
    """Tags of the cluster, each in a job of its own, one after the other; each that was answered is there afterwards."""

    def __init__(self, lab, name):
        super().__init__()
        self.lab, self.prefix, self.answered = lab, name, []

    def run(self):
        for number in itertools.takewhile(lambda _: not self.over, itertools.count()):
            tag = f'{self.prefix}{number}'
            if self.lab.run('tag', 'add', 'cluster', tag, check=False)[0] == 0:
                self.answered.append(tag)

    def check(self):
        missing = set(self.answered) - set(self.lab.cli('tag', 'list', 'cluster', '--no-headers').split())
        assert self.answered and not missing, f'answered and lost: {sorted(missing)}'


def store_of(lab, node):
    """What a candidate's store says of itself: {"serial", "versions", "epoch", "role", …}; {} while it is made anew."""
    path = os.path.join(lab.root(node), 'var', 'store.db')
    try:
        with contextlib.closing(sqlite3.connect(f'file:{path}?mode=ro', uri=True, timeout=5)) as db:
            return dict(db.execute('SELECT key, value FROM meta'))
    except sqlite3.OperationalError:
        return {}


def content_of(lab, node):
    """A candidate's store at one moment: (what it says of itself, {kind/key: version and object}); two empty ones while it is
    made anew."""
    path = os.path.join(lab.root(node), 'var', 'store.db')
    try:
        with contextlib.closing(sqlite3.connect(f'file:{path}?mode=ro', uri=True, timeout=5)) as db:
            db.execute('BEGIN')
            return (dict(db.execute('SELECT key, value FROM meta')),
                    dict(db.execute("SELECT kind || '/' || key, version || ' ' || json FROM objects")))
    except sqlite3.OperationalError:
        return {}, {}


def equal_copies(lab, *nodes, normal=lambda text: text):
    """(history, serial, versions) of the stores of these nodes if they have come to the same; else None. Then they must have
    the same objects, member for member: `versions` tells of kinds, keys and versions only. `normal` says what of a text counts."""
    stores = [content_of(lab, node) for node in nodes]
    positions = {tuple(meta.get(key) for key in ('history', 'serial', 'versions')) for meta, _ in stores}
    if len(positions) != 1 or None in next(iter(positions)):
        return None
    first, *others = [{key: normal(text) for key, text in objects.items()} for _, objects in stores]
    assert first, 'a store without objects'
    for node, objects in zip(nodes[1:], others):
        differ = sorted({key for key, _ in first.items() ^ objects.items()})
        assert not differ, f'{nodes[0]} and {node} are at one position and differ in {differ[:9]}'
    return positions.pop()


def running_copies(lab, uuid):
    """How many QEMU processes of an instance let their CPUs run, by their own word."""
    return len(lab.qemu_processes(uuid))


JobProcess = collections.namedtuple('JobProcess', 'pid start job lock')


def lives(pid):
    """Not one that has ended and is still listed."""
    try:
        return bool(os.readlink(f'/proc/{pid}/exe'))
    except OSError:
        return False


def job_processes(lab, *nodes):
    """What runs jobs on these nodes now, by its program and its words: fettle-job --root DIR JOB LOCK-NAME."""
    found = {}
    roots = {lab.root(node).encode() for node in nodes}
    for entry in filter(str.isdigit, os.listdir('/proc')):
        try:
            if os.path.basename(os.readlink(f'/proc/{entry}/exe')) != 'fettle-job':
                continue
            with open(f'/proc/{entry}/cmdline', 'rb') as file:
                words = file.read().split(b'\0')
            with open(f'/proc/{entry}/stat', encoding='utf-8', errors='replace') as file:
                fields = file.read().rsplit(')', 1)[1].split()
        except (OSError, IndexError):
            continue
        if len(words) > 4 and words[2] in roots and words[3].isdigit() and fields[0] != 'Z':
            found[int(entry)] = (int(fields[1]), JobProcess(int(entry), int(fields[19]), int(words[3]), words[4].decode()))
    # A child of such a process is the leak checker, which the sanitized build clones at its end: also of one that has ended since
    # the child was looked at, as it may when numbers of processes have begun anew and the child has the lower one.
    return [process for parent, process in found.values() if parent not in found and lives(parent)]


def job_pid(lab, job):
    """Of the master's job; 0, which is no process to be killed but everybody in the test's own group: no process runs it."""
    return next((process.pid for process in job_processes(lab, lab.master) if process.job == int(job)), 0)


def wait_healthy(lab, name, timeout=60):
    """Waits until the instance runs with a replica in sync and no job at work on it."""
    def healthy():
        row = lab.instance(name, 'replica.state', 'task_state', 'status')
        return row and row['replica.state'] == 'in-sync' and not row['task_state'] and row['status'] == 'running'
    wait_until(f'{name} is healthy', healthy, timeout)


def is_whole(row):
    return (row['status'] == 'running' and not row['task_state'] and
            (row['disk_template'] != 'mirror' or row['replica.state'] == 'in-sync'))


def wait_mended(lab, name, seconds=240):
    """Waits for the cluster to mend the instance. A repair that failed asks for a person, who takes its tag away; returns how often."""
    helped = 0
    patience = fettlelib.Patience(seconds)
    while not is_whole(row := lab.instance(name, 'replica.state', 'task_state', 'status', 'tags', 'disk_template')):
        failed = [tag for tag in row['tags'] or [] if ':result:' in tag and ':failure:' in tag]
        if failed:
            helped += 1
            print(f'#   a person removes {failed} of {name}', flush=True)
            lab.cli('tag', 'remove', 'instance', name, *failed)
        if patience.is_over():
            raise TimeoutError(f'{name} is not whole after {seconds} s: {row}')
        time.sleep(0.1)
    return helped


def wait_counting(lab, name, uuid, node, above=0, timeout=30):
    """Waits until the guest prints a count above `above` on a node; returns it."""
    return wait_until(f'{name} counts beyond {above} on {node}',
                      lambda: (n := lab.printed(name, uuid, node)) > above and n, timeout, step=0.01)


def wait_frozen(lab, name, uuid, node, quiet=2.0, timeout=60):
    """Waits until the guest has printed nothing for `quiet` seconds, and returns what it printed last: before that the
    serial line still has what was written before."""
    last = [None, 0.0]
    def frozen():
        now = lab.printed(name, uuid, node)
        if now != last[0]:
            last[:] = [now, time.monotonic()]
        return time.monotonic() - last[1] >= quiet
    wait_until(f'{name} stands still on {node}', frozen, timeout)
    return last[0]


def verify(lab):
    """`fettle cluster verify` as (exit code, text)."""
    code, out, err = lab.run('cluster', 'verify', check=False)
    return code, out + err


def verify_clean(lab, timeout=30):
    """Waits until cluster verify finds nothing (what a fault left is being mended) and no lock is held."""
    last = []
    def clean():
        last[:] = [verify(lab)]
        return last[0][0] == 0
    try:
        wait_until('cluster verify is clean', clean, timeout, step=0.2)
    except TimeoutError as error:
        raise AssertionError(f'cluster verify: {last[0][1]}') from error


def promtool_takes(text):
    """What a daemon shows at /metrics is good, and named well, as far as promtool is to be had (scripts/promtool)."""
    found = subprocess.run([os.path.join(ROOT, 'scripts/promtool')], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        print('#', found.stderr.strip(), flush=True)
        return
    done = subprocess.run([found.stdout.strip(), 'check', 'metrics'], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, '', ''), done


def expect_cli_error(lab, exit_code, message, *args):
    """The command must fail with this exit code and this exact last line on standard error."""
    code, out, err = lab.run(*args, check=False)
    line = err.strip().splitlines()[-1] if err.strip() else out.strip()
    if code != exit_code or line != message:
        raise AssertionError(f'{" ".join(args)}: expected exit code {exit_code} and\n  {message}\ngot {code} and\n  {line}')


def expect_job_error(lab, message, opcode, timeout=60, **params):
    """The job must end in error with this exact message."""
    job = lab.submit({'OP_ID': opcode, **params})
    status, results = lab.wait_job(job, timeout)
    found = [r for r in results if r is not None]
    text = found[-1] if found and isinstance(found[-1], str) else found[-1][1][0] if found else None
    if status != 'error' or text != message:
        raise AssertionError(f'{opcode}: expected error\n  {message}\ngot {status}\n  {text}')


def expect_refusal(lab, message, opcode):
    """luxid must refuse the submission with this exact message."""
    try:
        job = lab.submit(opcode)
    except fettlelib.LuxiError as error:
        if error.message != message:
            raise AssertionError(f'expected\n  {message}\ngot\n  {error.message}') from error
        return
    raise AssertionError(f'accepted as job {job}, expected the refusal: {message}')
