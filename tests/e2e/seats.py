"""Three master candidates without guests: real fettle-noded and fettle-wconfd processes in one network namespace.

A lab makes the cluster once; its nodes' folders are copied, and their daemons run here with nothing around them, so that
a daemon can be ended at any crash point (io/crash.h) and started again within a fraction of a second. A folder of var/
and run/ stands for what a node has on its disk and what lives until its next boot.
"""
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
import uuid

import e2e
import mounts
from e2e import fettlelib
from mounts import CLONE_NEWNET, call_libc

NAMES = ('node1', 'node2', 'node3')
DAEMONS = ('noded', 'wconfd')
ENGINES = ('sqlite', 'etcd')
PATIENCE_S = 30
# What `cluster verify` says of daemons that do not run in this world.
ABSENT = re.compile(r"node \S+: fettle-(rconfd|volumed|watcher) is down: it has not run since the node's boot$")
PAUSE_S = 0.05  # before a daemon that has ended is started again


def enter_namespaces():
    """This process and its children see mounts and a network of their own from now on."""
    mounts.enter(CLONE_NEWNET)
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    for number, _ in enumerate(NAMES, 1):
        subprocess.run(['ip', 'address', 'add', f'{fettlelib.address(number)}/{fettlelib.HOST}', 'dev', 'lo'], check=True)


def make_network(number):
    """A network namespace with the address of one node, on a bridge in this process's: its open file. Members of etcd
    refuse each other when the address that they see is not that of the certificate, so one namespace is not enough."""
    with subprocess.Popen(['unshare', '--net', 'cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdin.write(b'x')
        holder.stdin.flush()
        holder.stdout.read(1)
        inside = ['nsenter', '-t', str(holder.pid), '-n', 'ip']
        for words in (['ip', 'link', 'add', f'v{number}', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', str(holder.pid)],
                      ['ip', 'link', 'set', f'v{number}', 'master', 'br0', 'up'], [*inside, 'link', 'set', 'lo', 'up'],
                      [*inside, 'link', 'set', 'eth0', 'up'],
                      [*inside, 'address', 'add', *fettlelib.address_words(fettlelib.address(number)), 'dev', 'eth0']):
            subprocess.run(words, check=True)
        return open(f'/proc/{holder.pid}/ns/net', 'rb')  # pylint: disable=consider-using-with


def make_networks():
    """One for each node."""
    call_libc('unshare', CLONE_NEWNET)
    for words in (('link', 'add', 'br0', 'type', 'bridge'), ('link', 'set', 'br0', 'up'), ('link', 'set', 'lo', 'up')):
        subprocess.run(['ip', *words], check=True)
    return [make_network(number) for number, _ in enumerate(NAMES, 1)]


class CallFailed(Exception):
    """A call that wconfd has answered with an error."""

    def __init__(self, error):
        super().__init__(f'{error["code"]}: {error["message"]}')
        self.code, self.message = error['code'], error['message']


class Line(fettlelib.Frames):
    """A connection to a node's wconfd, as one of its local daemons has it."""

    def __init__(self, node, role='luxid', timeout=60):
        self.me = f'{node.uuid}/{role}'
        self.last = 0
        try:
            super().__init__(node.path('run/wconfd.sock'), timeout)
            self.send({'hello': {'versions': [1, 1], 'from': self.me}})
            self.receive()
        except OSError as error:
            self.close()
            raise ConnectionError(str(error)) from error

    def call(self, method, **args):
        self.last += 1
        self.send({'v': 1, 'history': 0, 'epoch': 0, 'id': self.last, 'from': self.me, 'method': method, 'args': args})
        while True:
            answer = self.receive()
            if answer.get('id') != self.last:
                continue
            if 'error' in answer:
                raise CallFailed(answer['error'])
            return answer['result']


class Node:
    """One candidate: its folder and its two daemons, each started again when it ends unless it is to be down."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.root = os.path.join(world.directory, name)
        with open(self.path('etc/node.json'), encoding='utf-8') as file:
            self.uuid = json.load(file)['node_uuid']
        self.boot_id = str(uuid.uuid4())
        self.processes = {}
        self.wanted = set()
        self.ended = {}  # daemon: (exit code, when)
        self.coming = {}  # daemon: variables of its next start
        self.network = None  # a namespace of its own

    def path(self, name):
        return os.path.join(self.root, name)

    def log(self, daemon):
        return os.path.join(self.world.directory, f'{self.name}-{daemon}.log')

    def said(self, daemon):
        with open(self.log(daemon), encoding='utf-8', errors='replace') as file:
            return file.read()

    def start(self, daemon, variables=None):
        environment = {key: value for key, value in os.environ.items() if not key.startswith('FETTLE_CRASH')}
        variables = variables or self.coming.pop(daemon, {})
        environment.update(FETTLE_ROOT=self.root, FETTLE_NODE=self.name, FETTLE_BOOT_ID=self.boot_id, **variables)
        program = os.path.join(e2e.build(), 'src', 'daemons', daemon, f'fettle-{daemon}')
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(f'run/{daemon}.ready'))
        with open(self.log(daemon), 'ab') as log:
            self.processes[daemon] = subprocess.Popen([program], env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                                      stderr=log, cwd='/', preexec_fn=self.enter_network)
        self.wanted.add(daemon)

    def enter_network(self):
        if self.network:
            call_libc('setns', self.network.fileno(), CLONE_NEWNET)

    def end(self, daemon, number=signal.SIGKILL):
        """Ends it; it stays down."""
        self.wanted.discard(daemon)
        process = self.processes.pop(daemon, None)
        if process:
            process.send_signal(number)
            process.wait(PATIENCE_S)
            return process.returncode
        return None

    def restart(self, daemon, variables=None):
        self.end(daemon)
        self.start(daemon, variables)

    def tend(self):
        """What a supervisor does: a daemon that has ended is started again, without its variables."""
        for daemon in self.world.daemons:
            process = self.processes.get(daemon)
            if process and process.poll() is not None:
                self.ended[daemon] = (process.returncode, time.monotonic())
                del self.processes[daemon]
            elif not process and daemon in self.wanted and time.monotonic() - self.ended[daemon][1] > PAUSE_S:
                self.start(daemon)

    def ready(self, daemon):
        return daemon in self.processes and os.path.exists(self.path(f'run/{daemon}.ready'))

    def up(self):
        for daemon in self.world.daemons:
            if daemon not in self.wanted:
                self.start(daemon)

    def down(self):
        for daemon in reversed(self.world.daemons):
            self.end(daemon)

    def reboot(self):
        """The daemons are gone, and what a boot leaves behind; they are started by up()."""
        self.down()
        shutil.rmtree(self.path('run'))
        os.mkdir(self.path('run'))
        self.boot_id = str(uuid.uuid4())

    def role(self):
        """What its wconfd says that it is; None: it says nothing."""
        try:
            with Line(self, timeout=5) as line:
                return line.call('wait_role')
        except (OSError, CallFailed):
            return None

    def meta(self):
        return self.read('SELECT key, value FROM meta')

    def objects(self):
        """{(kind, key): (version, object)} of its store."""
        return self.read("SELECT kind || '/' || key, version || ' ' || json FROM objects")

    def read(self, question):
        try:
            with contextlib.closing(sqlite3.connect(f'file:{self.path("var/store.db")}?mode=ro', uri=True, timeout=5)) as db:
                return dict(db.execute(question))
        except sqlite3.OperationalError:
            return {}


class World:
    """All candidates, and what has been promised to those who asked."""

    def __init__(self, engine='sqlite', daemons=DAEMONS):
        self.engine, self.daemons = engine, daemons
        self.copies_lag = engine == 'etcd'  # what was answered is not on them yet
        self.directory = tempfile.mkdtemp(prefix='fettle-seats-', dir='/var/tmp')
        os.chmod(self.directory, 0o711)  # members of etcd are no root
        self.nodes = []
        self.highest = (0, 0, 0)
        self.livelocks = {}

    def __enter__(self):
        try:
            return self.begin()
        except BaseException:
            self.__exit__()
            raise

    def begin(self):
        self.copy_lab()
        enter_namespaces()
        self.nodes = [Node(self, name) for name in NAMES]
        with open(self.nodes[0].path('etc/node.json'), encoding='utf-8') as file:
            self.cluster = json.load(file)['cluster_uuid']
        if self.engine == 'etcd':
            for node, network in zip(self.nodes, make_networks()):
                node.network = network
        for node in self.nodes:
            node.up()
        if self.engine == 'etcd':
            self.move_to_etcd()
        return self

    def move_to_etcd(self):
        self.wait_equal()
        e2e.change_engine('etcd', lambda: self.command(self.wait_master(), 'cluster', 'engine', 'etcd', '--yes'), PATIENCE_S)

    def end_members(self):
        """Members of etcd outlive the node daemons that started them."""
        for entry in filter(str.isdigit, os.listdir('/proc')):
            with contextlib.suppress(OSError), open(f'/proc/{entry}/cmdline', encoding='utf-8', errors='replace') as file:
                if f'--data-dir={self.directory}/' in file.read():
                    os.kill(int(entry), signal.SIGKILL)

    def __exit__(self, *_):
        for node in self.nodes:
            node.down()
            if node.network:
                node.network.close()
        self.end_members()
        for file in self.livelocks.values():
            file.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def assert_no_reports(self):
        for node in self.nodes:
            for daemon in self.daemons:
                for line in node.said(daemon).splitlines():
                    assert not e2e.REPORT.search(line), f'{node.name} {daemon}: {line}'

    def copy_lab(self):
        with fettlelib.Lab(e2e.build(), options=('--candidates', '3')) as lab:
            def equal():
                seen = set()
                for name in NAMES:
                    with contextlib.closing(sqlite3.connect(f'file:{lab.root(name)}/var/store.db?mode=ro', uri=True)) as db:
                        seen.add(db.execute("SELECT group_concat(value) FROM meta WHERE key IN ('serial', 'versions')")
                                 .fetchone())
                return len(seen) == 1
            e2e.wait_until('the copies are whole', equal)
            for name in NAMES:
                for daemon in ('wconfd', 'noded'):
                    lab.lab('pause', f'{daemon}@{name}')
                for folder in ('etc', 'var'):
                    shutil.copytree(f'{lab.root(name)}/{folder}', os.path.join(self.directory, name, folder),
                                    ignore=shutil.ignore_patterns('images', 'disks', 'shared', '.confd.key.*'))
                for folder in ('run', 'log', 'var/disks', 'var/images'):
                    os.makedirs(os.path.join(self.directory, name, folder))

    def node(self, name):
        return next(node for node in self.nodes if node.name == name)

    def wait(self, what, condition, timeout=PATIENCE_S, step=0.01):
        """Until it is true; ended daemons are started again meanwhile."""
        def tended():
            for node in self.nodes:
                node.tend()
            return condition()
        try:
            return e2e.wait_until(what, tended, timeout, step=step)
        except TimeoutError as error:
            said = '\n'.join(f'--- {node.name} {node.role()}\n' + '\n'.join(
                [*node.said('noded').splitlines()[-2:], *node.said('wconfd').splitlines()[-4:]]) for node in self.nodes)
            raise AssertionError(f'{error}\n{said}') from error

    def master(self):
        """The one master; None: nobody is. Two of them would be the end of it all."""
        roles = [(node, node.role()) for node in self.nodes if 'wconfd' in node.processes]
        masters = [(node, role['epoch']) for node, role in roles if role and role['seat'] == 'master']
        assert len({epoch for _, epoch in masters}) == len(masters), f'two masters of one epoch: {masters}'
        assert len(masters) <= 1, f'two masters: {masters}'
        return masters[0][0] if masters else None

    def wait_master(self):
        return self.wait('somebody is master', self.master)

    def role_of(self, node):
        return self.wait(f'wconfd of {node.name} answers', node.role)

    def check_positions(self):
        """(history, epoch, serial) never goes back."""
        for node in self.nodes:
            role = self.role_of(node)
            if role['seat'] == 'master':
                now = (role['history'], role['epoch'], role['serial'])
                assert now >= self.highest and now[2] >= self.highest[2], f'{node.name} is at {now}, {self.highest} was seen'
                self.highest = now

    def equal(self):
        """Whether all stores have the same objects, at one position."""
        metas = [{key: node.meta().get(key) for key in ('history', 'serial', 'versions')} for node in self.nodes]
        return metas[0]['serial'] is not None and all(meta == metas[0] for meta in metas)

    def wait_equal(self):
        self.wait('all copies are equal', self.equal)
        first, *others = [node.objects() for node in self.nodes]
        for other in others:
            assert other == first, 'two copies at one position differ: ' + str(set(other.items()) ^ set(first.items()))

    def person(self, node, *flags):
        """`fettle cluster master-failover` on a node: (exit code, what it said)."""
        return self.command(node, 'cluster', 'master-failover', '--yes', *flags)

    def command(self, node, *words):
        """`fettle WORDS` on a node, while ended daemons are started again: (exit code, what it said)."""
        with tempfile.TemporaryFile('w+') as said:
            with subprocess.Popen([os.path.join(e2e.build(), 'src/cli/fettle'), '--root', node.root, *words], stdout=said, stderr=said,
                                  stdin=subprocess.DEVNULL) as process:
                try:
                    self.wait(f'{words} ends', lambda: process.poll() is not None, 90)
                finally:
                    process.kill()
            said.seek(0)
            return process.returncode, said.read()

    def verify_clean(self):
        """Until `cluster verify` has nothing to say, but of the daemons that do not belong to this world; needs luxid."""
        last = []
        def clean():
            last[:] = self.command(self.wait_master(), 'cluster', 'verify')
            problems = [line for line in last[1].splitlines()[:-1] if not line.startswith('note: ')]
            return last[0] == 0 or problems and all(ABSENT.match(line) for line in problems)
        try:
            self.wait('cluster verify is clean', clean, 60, step=0.1)
        except AssertionError as error:
            raise AssertionError(f'cluster verify: {last}') from error

    # --- what is asked of the master ---

    def tags(self, *names):
        """Changes that make these tags."""
        return [{'op': 'put', 'kind': 'tag', 'key': f'cluster/{self.cluster}/{name}', 'version': 0,
                 'object': {'kind': 'cluster', 'object': self.cluster, 'tag': name}} for name in names]

    def livelock(self, node, name):
        """A held lock file, as owners have it; it stays until let_go()."""
        path = node.path(f'run/livelocks/{name}')
        os.makedirs(os.path.dirname(path), exist_ok=True)
        file = open(path + '.new', 'wb')  # pylint: disable=consider-using-with
        fcntl.fcntl(file, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))  # F_OFD_SETLK
        os.rename(path + '.new', path)
        self.livelocks[name] = file
        return name

    @contextlib.contextmanager
    def owner(self, node):
        """Whoever changes something by way of this node; it lives until then."""
        name = f'luxid-1-{uuid.uuid4()}'
        try:
            yield {'job': 'luxid', 'livelock': self.livelock(node, name)}
        finally:
            self.let_go(name)

    def let_go(self, name):
        self.livelocks.pop(name).close()

    def versions(self, node, *names):
        """Versions of tags in a node's store; 0: it does not have it."""
        objects = node.objects()
        return [int(objects.get(f'tag/cluster/{self.cluster}/{name}', '0 ').split()[0]) for name in names]
