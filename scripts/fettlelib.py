"""A lab and its cluster, for the demo, the benchmarks and the end-to-end tests.

Everything that a user could do goes through the `fettle` command or the LUXI socket; only what a test must see from
outside (consoles, images, processes) is looked at directly.
"""
import contextlib
import glob
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

LAB_FOLDER = '/var/tmp'  # on a disk, which /tmp need not be

# Codes of errors that pass when a daemon has been started again: surely nothing was taken, or nobody knows.
NOT_TAKEN = ('resource_not_available', 'unreachable')
OPEN = ('unknown_result', 'timeout', 'killed')
PASSING = NOT_TAKEN + OPEN
AGAIN = (7, 16, 18, 19, 20, 29)  # exit codes of commands (base/error.def) of which the same is to be expected: it passes
SIX = os.environ.get('FETTLE_LAB_IPV6') == '1'  # labs have IPv6 addresses, and no others
PREFIX, HOST = (64, 128) if SIX else (24, 32)  # the lengths of prefixes: of a lab's network, and of one address
COUNT = re.compile(rb'COUNT (\d+)\r\n')


def has_request_id(args):
    """Whether these are the arguments of a SubmitJob that gives one job however often it is sent."""
    return bool(args) and isinstance(args[0], list) and any(isinstance(one, dict) and one.get('request_id') for one in args[0])


class CommandFailed(Exception):
    """A command that ended with another exit code than 0."""

    def __init__(self, args, code, out, err):
        super().__init__(f'{" ".join(args)}: exit code {code}: {err.strip() or out.strip()}')
        self.code, self.out, self.err = code, out, err


def run_command(words, timeout=120, typed=None, **more):
    """As subprocess.run() does: what it said, as text, and its exit code. `timeout`: seconds, of a machine that has other things to
    do as well (Patience)."""
    given = subprocess.DEVNULL if typed is None else subprocess.PIPE
    patience = Patience(timeout)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **{'stdin': given, 'text': True, **more}) as process:
        while True:
            try:
                out, err = process.communicate(typed, timeout=1)
                return subprocess.CompletedProcess(words, process.returncode, out, err)
            except subprocess.TimeoutExpired as error:
                typed = None  # what was not read of it yet is given on
                if patience.is_over():
                    process.kill()
                    out, err = process.communicate()
                    raise subprocess.TimeoutExpired(words, timeout, out, err) from error


ports = []  # sockets with the names of ports that this process has been told


def free_port():
    """None that the kernel gives to whoever connects; and nobody else is told it as long as this process lives (world_free_port() of
    tests/unit/io/world.c)."""
    while True:
        port, name = random.randrange(10000, 32000), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(('127.0.0.1', port))
            name.bind(f'\0fettle-port-{port}')
            ports.append(name)
            return port
        name.close()


class LuxiError(Exception):
    """A call that luxid refused: (class, [message, code])."""

    def __init__(self, result):
        self.result = result
        message = result if isinstance(result, str) else result[1][0] if result[1] else result[0]
        self.message = message
        self.code = result[1][1] if isinstance(result, list) and len(result[1]) > 1 else None
        super().__init__(str(message))


class Frames:
    """A daemon's socket: JSON documents, each with a byte 3 behind it."""

    def __init__(self, path, timeout=240):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.buffer = b''
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise

    def send_raw(self, data):
        self.socket.sendall(data)

    def send(self, document):
        self.send_raw(json.dumps(document, separators=(',', ':')).encode() + b'\x03')

    def receive(self):
        while b'\x03' not in self.buffer:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError(f'{os.path.basename(self.path)} was closed by its daemon')
            self.buffer += data
        frame, self.buffer = self.buffer.split(b'\x03', 1)
        return json.loads(frame)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Luxi(Frames):
    """One LUXI connection: strictly request and reply."""

    def call(self, method, *args):
        self.send({'method': method, 'args': list(args)})
        reply = self.receive()
        if not reply['success']:
            raise LuxiError(reply['result'])
        return reply['result']


def address(number):
    """Of a node, as the lab gives it (src/lab/layout.c)."""
    return f'fd99::{number:x}' if SIX else f'10.99.0.{number}'


def address_words(own):
    """The same for `ip address add`: with its prefix, and usable at once."""
    return [f'{own}/{PREFIX}', *(['nodad'] if SIX else [])]


def namespace_prefix(directory):
    """What the names of the network namespaces of the lab in this folder begin with (src/lab/layout.c)."""
    return 'ft' + hashlib.sha256(os.path.realpath(directory).encode()).hexdigest()[:6] + '-'


class Lab:
    """A lab in a folder of its own; use it in a `with` so that nothing is left behind."""

    living = []  # those of this program that are up

    def __init__(self, build, nodes=3, directory=None, options=()):
        self.build = os.path.abspath(build)
        self.fettle = os.path.join(self.build, 'src', 'cli', 'fettle')
        self.directory = directory or tempfile.mkdtemp(prefix='fettle-lab-', dir=LAB_FOLDER)
        self.nodes = nodes
        self.options = [*options, *(['--ipv6'] if SIX else [])]
        self.master = 'node1'
        self.luxi_connection = None
        self.leaks = False

    def __enter__(self):
        try:
            self.lab('up', '--nodes', str(self.nodes), *self.options)
        except BaseException:
            self.down()
            raise
        Lab.living.append(self)
        return self

    def __exit__(self, *_):
        self.down()

    def down(self):
        if self in Lab.living:
            Lab.living.remove(self)
        if self.luxi_connection:
            self.luxi_connection.close()
        subprocess.run([self.fettle, 'lab', 'down', '--dir', self.directory], check=False, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL)
        shutil.rmtree(self.directory, ignore_errors=True)

    # --- commands ---

    def run(self, *args, check=True, timeout=120, env=None, typed=''):
        """`fettle ARGS` as root of the master's node, which reads `typed`; returns (code, stdout, stderr). Under the address
        sanitizer each leak is looked for only with `self.leaks`: that costs as much as the command."""
        done = run_command([self.fettle, '--root', self.root(self.master), *args], timeout, typed,
                           env=self.environment(env))
        if check and done.returncode != 0:
            raise CommandFailed(args, done.returncode, done.stdout, done.stderr)
        return done.returncode, done.stdout, done.stderr

    def environment(self, more=None):
        """Of a command. The leak checker can also crash where threads end with the process, which is no failure of the command."""
        return {**os.environ, **({} if self.leaks else {'ASAN_OPTIONS': 'detect_leaks=0'}), **(more or {})}

    def cli(self, *args, **more):
        return self.run(*args, **more)[1]

    def cli_again(self, *args, seconds=60):
        """A command that may be given again: it is, as long as what it fails for passes."""
        patience = Patience(PATIENCE * seconds)
        while True:
            code, out, err = self.run(*args, check=False)
            if code == 0:
                return out
            if code not in AGAIN or patience.is_over():
                raise CommandFailed(args, code, out, err)
            time.sleep(0.5)

    def json(self, *args):
        return json.loads(self.cli(*args, '--json'))

    def lab(self, verb, *args, timeout=120):
        done = run_command([self.fettle, 'lab', verb, *args, '--dir', self.directory], timeout)
        if done.returncode != 0:
            raise CommandFailed(('lab', verb, *args), done.returncode, done.stdout, done.stderr)
        if verb == 'power' and args[0] != 'ceph' and args[1] == 'on':
            self.wait_answering(args[0])
        return done.stdout

    def wait_answering(self, node):
        """Until its node daemon takes calls, which is what whoever switches a node on goes on with. If it does not, what needs it
        will tell."""
        patience = Patience(30)
        while not os.path.exists(os.path.join(self.root(node), 'run', 'noded.ready')) and not patience.is_over():
            time.sleep(0.02)

    def exec(self, where, *command, timeout=120):
        """A command in the network of a node, or of the `switch` between them."""
        done = run_command(self.exec_words(where, *command), timeout, env=self.environment())
        if done.returncode != 0:
            raise CommandFailed(('lab', 'exec', where, *command), done.returncode, done.stdout, done.stderr)
        return done.stdout

    def exec_words(self, where, *command):
        return [self.fettle, 'lab', 'exec', '--dir', self.directory, where, '--', *command]

    # --- LUXI ---

    @property
    def luxi(self):
        if self.luxi_connection is None:
            self.luxi_connection = Luxi(os.path.join(self.root(self.master), 'run', 'luxid.sock'))
        return self.luxi_connection

    def luxi_new(self):
        return Luxi(os.path.join(self.root(self.master), 'run', 'luxid.sock'))

    def call(self, method, *args):
        """A LUXI call that survives a restart of luxid, and the loss of a master that did not keep its lease."""
        patience = Patience(20)
        while True:
            try:
                return self.luxi.call(method, *args)
            except (ConnectionError, FileNotFoundError, BrokenPipeError):
                self.luxi_connection = None
                if patience.is_over():
                    raise
            except LuxiError as error:
                if error.code == 'not_master' and not patience.is_over():
                    self.find_master()
                    continue
                # Asking twice does no harm; submitting does without a request id, unless surely nothing was taken.
                passing = PASSING if method.startswith('Query') or has_request_id(args) else NOT_TAKEN
                if error.code not in passing or patience.is_over():
                    raise
            time.sleep(0.05)

    def find_master(self):
        """Whoever serves is asked from now on; if nobody does, who was asked until now. Whether somebody does."""
        before, self.luxi_connection = self.master, None
        for number in range(1, self.nodes + 1):
            self.master = f'node{number}'
            if os.path.exists(os.path.join(self.root(self.master), 'run', 'luxid.sock')) and self.run('node', 'list', '-o', 'name', check=False)[0] == 0:
                return True
        self.master = before
        time.sleep(0.2)
        return False

    def query(self, what, fields, condition=None):
        """Rows as dictionaries; a field without a normal value is None."""
        rows = self.call('Query', what, fields, condition)['data']
        return [{name: value for name, (_, value) in zip(fields, row)} for row in rows]

    def instance(self, name, *fields):
        rows = self.query('instance', list(fields), ['=', 'name', name])
        return rows[0] if rows else None

    def submit(self, *opcodes):
        return self.call('SubmitJob', [dict(opcode) for opcode in opcodes])

    def job_status(self, job):
        rows = self.call('QueryJobs', [job], ['status', 'opresult'])
        return rows[0] if rows[0] else (None, None)

    def wait_job(self, job, timeout=60):
        status, result = None, None
        patience = Patience(timeout)
        while not patience.is_over():
            status, result = self.job_status(job)
            if status in ('success', 'error', 'canceled'):
                return status, result
            time.sleep(0.02)
        raise TimeoutError(f'job {job} is {status} after {timeout} s: {result}')

    def do(self, opcode, wait=60, **params):
        """Runs one opcode to its end; raises if it fails."""
        job = self.submit({'OP_ID': opcode, **params})
        status, result = self.wait_job(job, wait)
        if status != 'success':
            raise AssertionError(f'{opcode} (job {job}) ended in {status}: {result}')
        return job

    # --- what is seen from outside ---

    def namespace(self, node):
        return f'{namespace_prefix(self.directory)}n{node[4:]}'

    def root(self, node):
        return os.path.join(self.directory, node)

    def status(self):
        return json.loads(self.lab('status', '--json'))

    def logs(self):
        """Of daemons; not the consoles of guests, some of which count for ever."""
        return glob.glob(os.path.join(self.directory, 'log', 'node*', '*.log'))

    def mend(self):
        """Takes back what a test that has failed may have left: power, cables, full disks, stopped daemons, nodes that were said to
        be dead. What cannot be done is passed over; tells what was done, in words."""
        done = []

        def try_to(what, *words, by=None):
            try:
                (by or self.lab)(*words)
                done.append(what)
            except (CommandFailed, subprocess.TimeoutExpired):
                pass
        for node in self.status()['nodes']:
            name = node['name']
            if node['power']:
                for daemon in node['daemons']:
                    if daemon['state'] == 'paused':
                        try_to(f'{daemon["name"]} of {name} goes on', 'resume', f'{daemon["name"]}@{name}')
                if os.path.exists(os.path.join(self.root(name), 'var', 'disks', '.lab-fill')):
                    try_to(f'{name} has room again', 'disk-unfill', name)
            else:
                try_to(f'{name} has power again', 'power', name, 'on')
            if not node['link']:
                try_to(f'{name} is plugged in again', 'link', name, 'up')
        self.luxi_connection = None
        for node in self.query('node', ['name', 'offline']):
            if node['offline']:
                try_to(f'{node["name"]} is not offline any more', 'node', 'modify', node['name'], '--offline', 'no', by=self.cli)
        return done

    def console_path(self, instance, uuid, node):
        """Outside of the node's own disks, so that what was printed stays known after a power cut."""
        return os.path.join(self.directory, 'log', node, 'guests', f'{instance}-{uuid}.console')

    def printed(self, instance, uuid, node):
        """The highest count that the guest has printed on this node."""
        try:
            with open(self.console_path(instance, uuid, node), 'rb') as file:
                numbers = COUNT.findall(file.read())
        except FileNotFoundError:
            return 0
        return max(map(int, numbers), default=0)

    def remembers(self, uuid, node):
        """Whether it is known there what the guest writes since its replica has everything (incremental resync)."""
        path = os.path.join(self.root(node), 'run', 'guests', uuid, 'state.json')
        with open(path, encoding='utf-8') as file:
            return json.load(file)['incremental']['written'] != 0

    def printed_anywhere(self, instance, uuid):
        return max(self.printed(instance, uuid, f'node{n}') for n in range(1, self.nodes + 1))

    def qemu_processes(self, uuid):
        """Pids of QEMU processes of an instance, on all nodes, not zombies."""
        pids = []
        for entry in os.listdir('/proc'):
            if not entry.isdigit():
                continue
            try:
                with open(f'/proc/{entry}/cmdline', 'rb') as file:
                    line = file.read()
                with open(f'/proc/{entry}/stat', encoding='utf-8', errors='replace') as file:
                    state = file.read().rsplit(')', 1)[1].split()[0]
            except (FileNotFoundError, ProcessLookupError, IndexError):
                continue
            if b'qemu-system' in line and uuid.encode() in line and self.directory.encode() in line and state != 'Z':
                pids.append(int(entry))
        return pids


class Ping:
    """Pings an address from the switch of a lab, twenty times a second, until stop(); times are seconds since 1970."""

    INTERVAL_S = 0.05
    ANSWER = re.compile(r'^\[(\d+\.\d+)\] \d+ bytes from ', re.MULTILINE)

    def __init__(self, lab, address):
        self.path = os.path.join(lab.directory, f'ping-{address}')
        with open(self.path, 'wb') as file:
            words = lab.exec_words('switch', 'ping', '-D', '-n', '-i', str(self.INTERVAL_S), address)
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                            start_new_session=True)

    def now(self):
        return time.time()

    def answers(self):
        with open(self.path, encoding='utf-8') as file:
            return [float(stamp) for stamp in self.ANSWER.findall(file.read())]

    def answered_since(self, when):
        return any(stamp >= when for stamp in self.answers()[-200:])

    def longest_gap(self, since, until=None):
        """The longest time between two answers, the one before `since` and `until` (default: now) included."""
        stamps, until = self.answers(), until or time.time()
        before = [stamp for stamp in stamps if stamp < since][-1:] or [since]
        points = before + [stamp for stamp in stamps if since <= stamp <= until] + [until]
        return max(b - a for a, b in zip(points, points[1:]))

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()


class QmpListener:
    """Keeps the events of one guest, by its second socket, which the node daemon leaves free."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.lines = self.socket.makefile('rb')
        self.seen = []
        self.command('qmp_capabilities')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lines.close()
        self.socket.close()

    def command(self, name):
        """Its answer; what comes before it are events."""
        while True:
            line = json.loads(self.lines.readline())
            if 'QMP' in line:
                self.socket.sendall(json.dumps({'execute': name}).encode())
            elif 'event' in line:
                self.seen.append(line)
            else:
                return line

    def execute(self, name, arguments=None):
        """The answer to one command of QMP."""
        self.socket.sendall(json.dumps({'execute': name, 'arguments': arguments or {}}).encode())
        answer = self.command(None)
        if 'return' not in answer:
            raise AssertionError(f'{name}: {answer}')
        return answer['return']

    def events(self):
        """All that came until now."""
        self.socket.sendall(b'{"execute": "query-name"}')
        self.command(None)
        return self.seen


def install_linux(lab, folder):
    """Builds the Linux guest into a folder unless it is there, and gives it to every node."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'guest')
    done = subprocess.run([script, folder], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise CommandFailed((script,), done.returncode, done.stdout, done.stderr)
    for number in range(1, lab.nodes + 1):
        for name in ('linux.vmlinuz', 'linux.initrd'):
            shutil.copy(os.path.join(folder, name), os.path.join(lab.root(f'node{number}'), 'var', 'images', name))


def linux_arguments(address):
    return f'console=ttyS0 quiet panic=-1 tsc=reliable random.trust_cpu=on vmip={address}/{PREFIX}'


def linux_flags(address):
    """What `fettle instance create` needs to boot the Linux guest with this address."""
    return ('--kernel-path', 'linux.vmlinuz', '--initrd-path', 'linux.initrd', '--kernel-args', linux_arguments(address))


def image_count(path):
    """The count on an image: sector 1 is "TICK", count, its complement."""
    with open(path, 'rb') as file:
        file.seek(512)
        magic, count, check = struct.unpack('<4sII', file.read(12))
    if magic != b'TICK':
        return 0
    if check != count ^ 0xffffffff:
        raise AssertionError(f'{path}: the count is torn')
    return count


# How much longer a machine may take that has other things to do as well; and how often as long it may take all in all, while
# it has so much to do that what is waited for gets little of it, but goes on.
PATIENCE = 4
PATIENCE_BUSY = 4
PATIENCE_STEP = 5  # seconds in which something has to move then, at least


class Patience:
    """How long to wait for something that happens in labs: `seconds` of a machine that has other things to do as well. When they
    are over, and the machine has more to do than it can, the wait goes on as long as the labs' daemons do anything at all."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.step = max(PATIENCE_STEP, seconds / 8)
        self.end = time.monotonic() + seconds
        self.last = self.end + seconds * (PATIENCE_BUSY - 1)
        self.seen = None

    def is_over(self):
        now = time.monotonic()
        if self.seen is None and now > self.end - self.step:
            self.seen = moved()
        if now <= self.end:
            return False
        seen, self.seen = self.seen, moved()
        if now > self.last or self.seen == seen or not machine_is_busy():
            return True
        self.end = now + self.step
        return False


def moved():
    """Changes whenever a daemon of a lab of this program does something that it tells: what the logs have, but consoles of guests.
    Without a lab nothing tells it, and it is taken for granted."""
    if not Lab.living:
        return object()
    return {path: os.path.getsize(path) for lab in Lab.living for path in lab.logs() if os.path.exists(path)}


def machine_is_busy(percent=50):
    """Whether some process had to wait for a processor most of the last ten seconds."""
    try:
        with open('/proc/pressure/cpu', encoding='utf-8') as file:
            return float(re.search(r'some avg10=(\S+)', file.read()).group(1)) > percent
    except OSError:
        return os.getloadavg()[0] > 2 * (os.cpu_count() or 1)


@contextlib.contextmanager
def disk_of_its_own(place, mib, *options):
    """A folder on a disk of its own, which can be made to stand still, to be full, to be read only."""
    image = place + '.img'
    with open(image, 'wb') as file:
        file.truncate(mib << 20)
    os.mkdir(place, 0o755)
    subprocess.run(['mkfs.ext4', '-q', *options, image], check=True)
    subprocess.run(['mount', '-o', 'loop', image, place], check=True)
    try:
        yield place
    finally:
        wait_until(f'{place} can be taken away',
                   lambda: subprocess.run(['umount', place], stderr=subprocess.DEVNULL, check=False).returncode == 0, 60)
        os.rmdir(place)
        os.unlink(image)


@contextlib.contextmanager
def standing_still(place):
    """The file system of a disk of its own: whoever writes to it waits."""
    subprocess.run(['fsfreeze', '-f', place], check=True)
    try:
        yield
    finally:
        subprocess.run(['fsfreeze', '-u', place], check=True)


def wait_until(what, condition, timeout=30, step=None):
    """Waits until condition() is true and returns its value. `timeout`: in s, of a machine that has nothing else to do. Without
    a `step` it looks ever more seldom, as each look may be a process.
    """
    timeout *= PATIENCE
    patience = Patience(timeout)
    pause = step or 0.05
    while True:
        over = patience.is_over()  # looked at once more after that
        value = condition()
        if value:
            return value
        if over:
            raise TimeoutError(f'{what}: not within {timeout} s')
        time.sleep(pause)
        pause = pause if step else min(0.5, pause * 1.3)
