#!/usr/bin/env python3
"""`fettle cluster engine etcd|sqlite` with real members: under changes and jobs, there and back; a candidate that goes and
comes; the loss of the node that makes the change, in the middle; deaths of wconfd, of the master and of a candidate, of which FETTLE_LONG=1 takes
all kinds, at FETTLE_SAMPLE crash points of each. What was answered is never lost."""
import contextlib
import json
import os
import random
import signal
import sqlite3
import tempfile
import threading
import time
import uuid

import e2e
import bench_wconfd
from e2e import fettlelib, title, wait_until

WRONG_INPUT, WRONG_STATE, TEMPORARY = 2, 5, 7
LONG_SAMPLE = int(os.environ.get('FETTLE_SAMPLE', '40'))  # crash points of a process that are taken, evenly spread

lab = None
folder = None
answered = []  # tags whose change was answered


# --- questions ---

def engine():
    """etc/engine.json of the master; empty: there is none, which is SQLite."""
    path = os.path.join(lab.root(lab.master), 'etc', 'engine.json')
    try:
        with open(path, encoding='utf-8') as file:
            return file.read()
    except FileNotFoundError:
        return ''


def in_store():
    """Whether the store of the master says that it is the engine."""
    path = os.path.join(lab.root(lab.master), 'var', 'store.db')
    with contextlib.closing(sqlite3.connect(f'file:{path}?mode=ro', uri=True, timeout=5)) as db:
        return dict(db.execute('SELECT key, value FROM meta'))['role'] == '0'


def status():
    """Exit code 1 is for a member that is on its way, too."""
    try:
        text = lab.exec('node1', lab.fettle, '--root', lab.root('node1'), 'cluster', 'engine', 'status', '--json')
    except fettlelib.CommandFailed as failed:
        text = failed.out
    return json.loads(text)


def members():
    return sorted(member['name'] for member in status()['members'] if member['healthy'] and not member['learner'])


def tags():
    return set(lab.cli('tag', 'list', 'cluster', '--no-headers').split())


def add(tag):
    code, _, _ = lab.run('tag', 'add', 'cluster', tag, check=False)
    if code == 0:
        answered.append(tag)
    return code == 0


def nothing_lost():
    wait_until('somebody serves', lab.find_master, 60)
    wait_until('a change is answered', lambda: add(f'after{len(answered)}'), 60)
    missing = set(answered) - tags()
    assert not missing, f'answered and lost: {sorted(missing)}'


def one_object(kind):
    """Its key, in the master's store."""
    path = os.path.join(lab.root(lab.master), 'var', 'store.db')
    with contextlib.closing(sqlite3.connect(f'file:{path}?mode=ro', uri=True, timeout=5)) as db:
        return db.execute('SELECT key FROM objects WHERE kind=?', (kind,)).fetchone()[0]


class Commit:
    """A tag of the cluster by one commit, which is sent again as by a client that has lost the answer."""

    def __init__(self, tag):
        cluster = one_object('cluster')
        self.tag = tag
        self.args = {'owner': bench_wconfd.OWNER, 'commit_id': str(uuid.uuid4()),
                     'changes': [{'op': 'put', 'kind': 'tag', 'key': f'cluster/{cluster}/{tag}', 'version': 0,
                                  'object': {'kind': 'cluster', 'object': cluster, 'tag': tag}}]}
        self.serial = self.send()
        answered.append(tag)

    def send(self):
        wait_until('somebody serves', lab.find_master, 60)
        bench_wconfd.hold_file(lab.root(lab.master))
        return bench_wconfd.Client(lab.root(lab.master)).call('commit', self.args)['serial']

    def check(self):
        serial = self.send()
        assert serial == self.serial, f'the commit of {self.tag} was answered as {self.serial}, repeated as {serial}'


def change(to, check=True):
    """From the node that is master, in a process of its own beside the load; until it is made, or one try."""
    begun, code = time.monotonic(), 0
    if check:
        e2e.lab_engine(lab, to)
    else:
        code = lab.run('cluster', 'engine', to, '--yes', check=False)[0]
    print(f'# engine {to}: exit code {code} after {time.monotonic() - begun:.1f} s', flush=True)
    return code


def change_under_load(to):
    """Changes come until it begins, and again after it; what was answered before has the same answer."""
    before = Commit(f'before-{to}')
    with e2e.Commits(lab, f'beside-{to}-') as commits:
        wait_until('changes come', lambda: len(commits.answered) > 2, 30)
        change(to)
        count = len(commits.answered)
        wait_until('changes come again', lambda: len(commits.answered) > count + 2, 60)
    answered.extend(commits.answered)
    nothing_lost()
    before.check()


# --- tests ---

@title('/engine-change/refused#SAF-07')
def test_refused():
    e2e.expect_cli_error(lab, WRONG_STATE, 'fettle: the engine is sqlite already', 'cluster', 'engine', 'sqlite')
    e2e.expect_cli_error(lab, WRONG_INPUT, 'fettle: usage: fettle cluster engine (status|etcd|sqlite|renew NODE) [--yes]', 'cluster', 'engine', 'paper')
    lab.cli('node', 'modify', 'node3', '--master-candidate', 'no')
    code, _, err = lab.run('cluster', 'engine', 'etcd', '--yes', check=False)
    assert code == WRONG_STATE and 'etcd needs at least 3 master candidates, there are 2' in err, (code, err)
    lab.cli('node', 'modify', 'node3', '--master-candidate', 'yes')


@title('/engine-change/node-away#SAF-07')
def test_away():
    lab.lab('link', 'node3', 'down')
    code, _, err = lab.run('cluster', 'engine', 'etcd', '--yes', check=False)
    assert code != 0 and 'node node3: ' in err, (code, err)
    # That one has ended; it is what node3 has of it that is missing.
    code, _, err = lab.run('cluster', 'engine', 'etcd', '--yes', check=False)
    assert code == TEMPORARY and 'an earlier change of engine is still being taken back: ' in err, (code, err)
    lab.lab('link', 'node3', 'up')
    nothing_lost()
    assert engine() == '', engine()


@title('/engine-change/to-etcd-under-load#SAF-04,SAF-07')
def test_there():
    settle('sqlite')
    change_under_load('etcd')
    assert '"active"' in engine()
    wait_until('three members', lambda: members() == ['node1', 'node2', 'node3'], 30)


@title('/engine-change/candidate-goes-and-comes#SAF-07')
def test_members():
    settle('etcd')
    lab.cli('node', 'modify', 'node3', '--master-candidate', 'no')
    wait_until('its member is gone', lambda: members() == ['node1', 'node2'], 60)
    wait_until('and its file', lambda: not os.path.exists(os.path.join(lab.root('node3'), 'etc', 'engine.json')), 60)
    lab.cli('node', 'modify', 'node3', '--master-candidate', 'yes')
    wait_until('it is a member again', lambda: members() == ['node1', 'node2', 'node3'], 90)
    wait_until('and nothing is to be done', lambda: status()['advice'] == [], 30)
    nothing_lost()


# --- a file that is not what it was ---

def on(node, *words):
    master, lab.master = lab.master, node
    try:
        return lab.run(*words, check=False)
    finally:
        lab.master = master


def replace(path, data):
    with open(path + '.new', 'wb') as file:
        file.write(data)
    os.replace(path + '.new', path)


def damaged(data, chance):
    """Bits flipped at some places, or a cut; the name of the checksum apart, without which a file counts as an older one."""
    begin = data.index(b'"check"')
    if chance.random() < 0.3:
        return data[:chance.randrange(len(data))]
    bad = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.choice([place for place in range(len(data)) if not begin <= place < begin + len('"check"')])
        bad[at] ^= 1 << chance.randrange(8)
    return bytes(bad)


def wconfd_log(node):
    with open(os.path.join(lab.root(node), 'log', 'wconfd.log'), 'rb') as file:
        return file.read()


def cannot_be_master(node, why):
    said = []
    def refused():
        said[:] = lab.run('cluster', 'master-failover', '--to', node, '--yes', check=False)
        return said[0] == WRONG_STATE and why in said[2]
    try:
        wait_until(f'{node} cannot become master', refused, 60, step=0.5)
    except TimeoutError as error:
        raise AssertionError(f'{error}: {said}') from error


@title('/engine-change/file-damaged#SAF-01,SAF-07')
def test_file():
    """It is never taken for another engine; the node says what is wrong, and goes on when the file is back."""
    settle('etcd')
    node = next(node for node in ('node3', 'node2') if node != lab.master)
    path, chance = os.path.join(lab.root(node), 'etc', 'engine.json'), random.Random(20)
    with open(path, 'rb') as file:
        good = file.read()
    before = len(wconfd_log(node))
    try:
        for _ in range(20):
            bad = damaged(good, chance)
            if bad == good:
                continue
            replace(path, bad)
            code, _, err = on(node, 'cluster', 'engine', 'status')
            assert code != 0 and f'{path}: ' in err and err.endswith('; put back the file as it was\n'), (bad, code, err)
        # It looks at the file each second, and starts anew: until then it is as ready as it was.
        wait_until('wconfd has seen it', lambda: b'cannot become master: ' + path.encode() in wconfd_log(node)[before:], 60)
        cannot_be_master(node, 'put back the file as it was')
    finally:
        replace(path, good)
    hand_over(node)
    nothing_lost()


@title('/engine-change/file-of-another-cluster#SAF-01,SAF-07')
def test_foreign_file():
    """The master of etcd puts it right; nobody is asked who is no member here."""
    settle('etcd')
    node = next(node for node in ('node3', 'node2') if node != lab.master)
    path = os.path.join(lab.root(node), 'etc', 'engine.json')
    with open(path, 'rb') as file:
        good = json.load(file)
    foreign = dict(good, token='77777777-0000-4000-8000-000000000077')
    foreign.pop('check')
    foreign['members'] = [{'node': f'88888888-0000-4000-8000-00000000000{i}', 'name': f'other{i}', 'peer_url': f'https://127.9.9.{i}:2380',
                           'client_url': f'https://127.9.9.{i}:2379'} for i in range(1, 4)]
    replace(path, json.dumps(foreign).encode())
    def mended():
        with open(path, 'rb') as file:
            return json.load(file)['token'] == good['token']
    wait_until('the master has put it right', mended, 60)
    wait_until('three members', lambda: members() == ['node1', 'node2', 'node3'], 60)
    nothing_lost()


@title('/engine-change/what-is-said-right-after-it#SAF-07')
def test_said_at_once():
    """That etcd is not the engine any more is what every command says from then on, also while its members are put away."""
    settle('etcd')
    wait_until('three members', lambda: members() == ['node1', 'node2', 'node3'], 60)
    change('sqlite')
    code, out, err = lab.run('cluster', 'engine', 'status', check=False)
    assert (code, err) == (0, '') and 'sqlite' in out.splitlines()[0] and 'etcd, active' not in out, (code, out, err)
    raw = []

    def clean():
        code, out, err = lab.run('cluster', 'verify', check=False)
        raw.extend(line for line in (out + err).splitlines() if '{' in line or '}' in line)
        return code == 0
    wait_until('all is well', clean, 60, step=0.1)
    assert not raw, raw
    wait_until('nothing of etcd is left', lambda: engine() == '', 60)


@title('/engine-change/back-under-load#SAF-04,SAF-07')
def test_back():
    settle('etcd')
    change_under_load('sqlite')
    wait_until('nothing of etcd is left', lambda: engine() == '', 60)
    # What the members trusted each other by is gone, and no new connection asks for it.
    wait_until('somebody serves', lab.find_master, 60)
    other = next(node for node in ('node2', 'node3') if node != lab.master)
    lab.lab('power', other, 'off')
    lab.lab('power', other, 'on')
    wait_until(f'{other} answers', lambda: lab.find_master() and lab.query('node', ['mfree'], ['=', 'name', other])[0]['mfree'] is not None, 60)


# --- deaths ---

def once_file(name):
    """It is made by the process that dies there: no two deaths may share it."""
    return os.path.join(folder, f'once-{name}')


def variables(name, at=None, log=None):
    """`name` is that of this one death, or of this count of crash points."""
    since, once = os.path.join(folder, 'since'), once_file(name)
    assert not os.path.exists(once), f'nobody could die as {name}: somebody did before'
    if os.path.exists(since):
        os.remove(since)
    words = [f'FETTLE_CRASH_SINCE={since}', f'FETTLE_CRASH_ONCE={once}']
    return words + ([f'FETTLE_CRASH_AT={at}'] if at else []) + ([f'FETTLE_CRASH_LOG={log}'] if log else [])


def armed(to, words):
    lab.lab('restart', f'wconfd@{lab.master}', *words)
    nothing_lost()
    with open(os.path.join(folder, 'since'), 'w', encoding='utf-8'):
        pass
    return change(to, check=False)


def settle(wanted):
    """Whatever a point or a death has left: the cluster serves, all are candidates, and the change can be made."""
    nothing_lost()
    for node in lab.query('node', ['name', 'master_candidate']):
        if not node['master_candidate']:
            lab.cli_again('node', 'modify', node['name'], '--master-candidate', 'yes')
    def done():
        return lab.find_master() and (in_store() == (wanted == 'sqlite') or change(wanted, check=False) == 0)
    wait_until(f'the engine is {wanted}', done, 120, step=1)
    nothing_lost()
    if wanted == 'sqlite':
        wait_until('nothing of etcd is left', lambda: engine() == '', 60)


def spread(count):
    """Of so many crash points."""
    step = max(1, count / LONG_SAMPLE)
    return sorted({1 + int(i * step) for i in range(int(count / step))})


def lines_of(path):
    with open(path, encoding='utf-8', errors='replace') as file:
        return file.read().splitlines()


def kill_at(to, other, at, name):
    """One death on the way; whether it came to that. If not, the process has passed fewer points this time."""
    log = os.path.join(folder, f'log-{name}')
    settle(other)
    armed(to, variables(name, at=at, log=log))
    died = os.path.exists(once_file(name))
    passed = len(lines_of(log))
    assert died or not isinstance(at, int) or passed < at, f'nothing died at {at} of the way to {to}, which has {passed} points'
    settle(to)
    return died


def walk(to, other):
    log = os.path.join(folder, f'log-{to}')
    settle(other)
    armed(to, variables(f'count-{to}', log=log))
    count = len(lines_of(log))
    print(f'# crash points of wconfd, engine {to}: {count}', flush=True)
    assert count > 1, 'it has passed none'
    places = spread(count)
    deaths = sum(kill_at(to, other, at, f'{to}-{at}') for at in places)
    print(f'# {deaths} deaths at {len(places)} points, engine {to}', flush=True)
    # How often it asks and waits differs from one change to the next, so the last few may not be reached.
    assert deaths >= len(places) * 9 // 10, f'only {deaths} of {len(places)} armed points were reached'


@title('/engine-change/deaths-on-the-way-there#SAF-07')
def test_deaths_there():
    walk('etcd', 'sqlite')


@title('/engine-change/deaths-on-the-way-back#SAF-07')
def test_deaths_back():
    walk('sqlite', 'etcd')


@title('/engine-change/death-behind-the-step#SAF-07')
def test_death_behind():
    """Of the walk there this one is in the short form too: its store is a copy already, and nobody has been told."""
    assert kill_at('etcd', 'sqlite', 'engine: left', 'behind-the-step'), 'nothing died behind the step'


# --- deaths of a candidate ---

class Killer(e2e.Beside):
    """Ends wconfd of a candidate as soon as its engine.json says this (empty: it is gone). `killed` is what the file said
    right after that; None: it never did."""

    def __init__(self, node, when):
        super().__init__()
        self.node, self.when, self.killed = node, when, None

    def run(self):
        pid = process_of(self.node, 'wconfd')
        while not self.over and state(self.node) != self.when:
            time.sleep(0.001)
        # It may have started anew meanwhile, for another engine.
        while not self.over and self.killed is None:
            with contextlib.suppress(ProcessLookupError, TypeError):
                os.kill(pid, signal.SIGKILL)
                self.killed = state(self.node)
                return
            pid = process_of(self.node, 'wconfd')


# (engine, what engine.json of the candidate says when it dies)
PHASES = (('etcd', 'preparing'), ('etcd', 'deciding'), ('etcd', 'active'), ('sqlite', ''))


def kill_candidate(to, when):
    """It comes back as a candidate of the engine that there is then."""
    settle('etcd' if to == 'sqlite' else 'sqlite')
    node = next(node for node in ('node3', 'node2') if node != lab.master)
    with Killer(node, when) as killer:
        change(to, check=False)
        settle(to)
        wait_until(f'{node} has come to that', lambda: not killer.is_alive(), 60)
    assert killer.killed is not None, f'wconfd of {node} did not die while its engine.json said "{when}"'
    print(f'# wconfd of {node} was killed when its engine.json said "{when}"; a moment later "{killer.killed}"', flush=True)
    wanted = 'active' if to == 'etcd' else ''
    wait_until(f'{node} knows the engine', lambda: state(node) == wanted, 60)
    wait_until('all copies are equal', lambda: e2e.equal_copies(lab, 'node1', 'node2', 'node3'), 60)
    if to == 'etcd':
        wait_until('three members', lambda: members() == ['node1', 'node2', 'node3'], 60)


@title('/engine-change/deaths-of-a-candidate#SAF-07')
def test_candidate():
    for to, when in PHASES if e2e.LONG else PHASES[1:2] + PHASES[3:]:
        kill_candidate(to, when)


# --- the node that makes the change is lost for good ---

def process_of(node, name, among=None):
    """The process id of a daemon of a node; None: none runs. Of all processes, or `among` these."""
    wanted = f'FETTLE_ROOT={lab.root(node)}'.encode()
    for entry in filter(str.isdigit, os.listdir('/proc')) if among is None else among:
        with contextlib.suppress(OSError):
            with open(f'/proc/{entry}/cmdline', 'rb') as file:
                if not file.read().split(b'\0')[0].endswith(f'/fettle-{name}'.encode()):
                    continue
            with open(f'/proc/{entry}/environ', 'rb') as file:
                if wanted in file.read().split(b'\0'):
                    return int(entry)
    return None


def state(node):
    """What etc/engine.json of a node says; empty: there is none."""
    try:
        with open(os.path.join(lab.root(node), 'etc', 'engine.json'), encoding='utf-8') as file:
            return json.load(file)['state']
    except FileNotFoundError:
        return ''


def die(at, name):
    """The master's wconfd dies at this point of the step; its host does nothing from then on. Whether others had been told."""
    once = once_file(name)
    noded = process_of(lab.master, 'noded')
    ended = threading.Event()
    def stop():
        while not os.path.exists(once) and not ended.is_set():
            time.sleep(0.001)
        os.kill(noded, signal.SIGSTOP)
    watcher = threading.Thread(target=stop)
    lab.lab('restart', f'wconfd@{lab.master}', *('+' + word for word in variables(name, at=at)))
    nothing_lost()
    with open(os.path.join(folder, 'since'), 'w', encoding='utf-8'):
        pass
    watcher.start()
    try:
        change('etcd', check=False)
    finally:
        ended.set()
        watcher.join()
    return os.path.exists(once) and state('node2') == 'deciding'


def is_copy(node):
    """Its store; it is away for a moment when it was the engine, and is put away."""
    master, lab.master = lab.master, node
    try:
        return not in_store()
    except sqlite3.OperationalError:
        return False
    finally:
        lab.master = master


def until_done(what, step, *words, already=None):
    """A command, as often as it is refused for the moment; what it said in the end. `already`: what it says if a try before has
    done it, of which nobody could say so."""
    said = []
    def done():
        said[:] = lab.run(*words, check=False)
        return said[0] == 0 or already is not None and already in said[2]
    try:
        wait_until(what, done, 60, step=step)
    except TimeoutError as error:
        raise AssertionError(f'{error}: {said}') from error
    return said[1]


def hand_over(node):
    until_done(f'{node} is the master', 1, 'cluster', 'master-failover', '--to', node, '--yes', already=f'node "{node}" is the master already')


def lose(at, name):
    """The master dies at this point, and is gone."""
    lab.find_master()
    if lab.master != 'node1':  # only etcd hands over at will
        settle('etcd')
        hand_over('node1')
        nothing_lost()
    settle('sqlite')
    assert lab.master == 'node1', lab.master
    assert die(at, name), 'the others were not told that it is being decided'
    lab.lab('power', 'node1', 'off')


def succeed():
    """A person on node2, as often as it is refused for the moment."""
    lab.master, lab.luxi_connection = 'node2', None
    said = until_done('the person decides', 0.5, 'cluster', 'master-failover', '--yes')
    lab.master = said.split(' becomes the master')[0].split()[-1]
    wait_until('it serves', lambda: lab.run('node', 'list', check=False)[0] == 0, 60)


@title('/engine-change/decider-lost#SAF-01,SAF-07')
def test_lost():
    for name, at in [('before', 'engine: leave')] + ([('behind', 'engine: left')] if e2e.LONG else []):
        lose(at, name)
        succeed()
        wait_until('a change is answered', lambda: add(f'lost-{name}'), 60)
        missing = set(answered) - tags()
        assert not missing, f'answered and lost: {sorted(missing)}'
        wait_until('all know the engine', lambda: state('node2') == state('node3') == 'active', 60)
        # What it has in its store does not count any more, whatever it had come to.
        lab.lab('power', 'node1', 'on')
        wait_until('three members', lambda: members() == ['node1', 'node2', 'node3'], 120)
        wait_until('node1 knows the engine', lambda: state('node1') == 'active', 60)
        wait_until('its store is a copy', lambda: is_copy('node1'), 60)
        hand_over('node1')
        settle('sqlite')


# --- deaths of the processes that come after the step back ---

class After(e2e.Beside):
    """Crash points count from the moment on at which wconfd of a node has ended so often: the process that made the step
    ends, the one after it makes its store the engine and ends, the third one becomes master with it. On a loaded machine one
    may come and go unseen: then nothing has counted."""

    def __init__(self, node, ends):
        super().__init__()
        self.node, self.ends, self.counted = node, ends, False
        self.first = process_of(node, 'wconfd')
        with open(f'/proc/{self.first}/stat', encoding='utf-8') as file:
            lab_pid = file.read().rsplit(')', 1)[1].split()[1]
        self.brothers = f'/proc/{lab_pid}/task/{lab_pid}/children'

    def next(self):
        """A look at all processes of the machine takes longer than some live."""
        while not self.over:
            with open(self.brothers, encoding='ascii') as file:
                if pid := process_of(self.node, 'wconfd', file.read().split()):
                    return pid
        return None

    def run(self):
        pid = self.first
        for left in range(self.ends, 0, -1):
            while os.path.exists(f'/proc/{pid}') and not self.over:
                time.sleep(0.001)
            pid = self.next() if left > 1 else None
        if not self.over:
            with open(os.path.join(folder, 'since'), 'w', encoding='utf-8'):
                self.counted = True


def go_back(ends, words):
    """Back to sqlite, with these variables for the process that comes after so many ends, until that one was seen to come."""
    for _ in range(5):
        settle('etcd')
        lab.lab('restart', f'wconfd@{lab.master}', *('+' + word for word in words))
        nothing_lost()
        with After(lab.master, ends) as after:
            change('sqlite', check=False)
            settle('sqlite')
        if after.counted:
            return
        print('# a process has come and gone unseen: once more', flush=True)
    raise AssertionError(f'process {ends} after the step back was never seen to come')


def points(ends):
    """How many crash points that process passes until it ends, or, if it stays, surely until nothing of etcd is left."""
    log = os.path.join(folder, f'log-after-{ends}')
    go_back(ends, variables(f'count-after-{ends}', log=log))
    with open(log, encoding='utf-8', errors='replace') as file:
        numbers = [int(line.split()[0]) for line in file]
    starts = [place for place, number in enumerate(numbers) if number == 1]
    return starts[1] if len(starts) > 1 else len(numbers) * 3 // 4


def walk_after(ends):
    count = points(ends)
    print(f'# crash points of wconfd, {ends} ends after the step back: {count}', flush=True)
    assert count > 1, 'it has passed none'
    for at in spread(count):
        kill_after(ends, at)


def kill_after(ends, at):
    name = f'after-{ends}-{at}'
    go_back(ends, variables(name, at=at))
    assert os.path.exists(once_file(name)), f'nothing died at point {at}'


@title('/engine-change/death-of-who-takes-the-engine#SAF-07')
def test_death_take():
    """Of that walk, in the short form too: right before the one transaction that makes its store the engine."""
    kill_after(1, 'sqlite: commit')


@title('/engine-change/deaths-of-who-takes-the-engine#SAF-07')
def test_deaths_take():
    walk_after(1)


@title('/engine-change/deaths-of-the-next-master#SAF-07')
def test_deaths_next():
    walk_after(2)


def main():
    global lab, folder  # pylint: disable=global-statement
    options = ('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '3', '--root-mib', '2048')
    with tempfile.TemporaryDirectory(prefix='fettle-change-') as folder, e2e.new_lab(options=options) as lab:
        e2e.run(test_refused, test_away, test_there, test_members, test_file, test_foreign_file, test_back, test_said_at_once, test_lost,
                test_death_behind, test_death_take, test_candidate,
                *([test_deaths_there, test_deaths_back, test_deaths_take, test_deaths_next] if e2e.LONG else []))


if __name__ == '__main__':
    main()
