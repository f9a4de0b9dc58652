"""Random known moves of who is hostile: of an ordinary node, with its certificate on the bus of others, and of a guest's user on its
node. Used by test_hostile_round.py. All chance comes from a seed, so a round can be had again."""
import contextlib
import json
import os
import random
import re
import socket
import ssl
import subprocess
import sys
import threading
import uuid

import bus
import test_confd as confd
from e2e import ROOT, fettlelib

FAR = 9007199254740000
SILENT = 8  # connections of a stranger's that say nothing, at a time
RELAY = 1 / 300  # how often a guest's user ends its own relay
ROLES = ('luxid', 'job/5', 'watcher', 'scheduler', 'wconfd', 'noded', 'apid', 'cli', 'joining', 'nosuch')


# --- what a peer can say, by the tables ---

class Tables:
    """Methods, records and closed sets of words, so that a new row is in the round by itself."""

    def __init__(self):
        self.records, self.words, self.methods = {'nothing': []}, {}, []
        self.fields, self.set = [], []  # of the record and of the set that is being read
        for name in ('enums.def', 'tasks.def', 'storage/resources.def', 'records.def', 'storage/records.def', 'methods.def', 'storage/methods.def', 'changes.def'):
            with open(os.path.join(ROOT, 'src', 'proto', name), encoding='utf-8') as file:
                for line in file:
                    self.take(line)

    def take(self, line):
        found = re.match(r'(\w+)\((.*)', line)
        if not found:
            return
        kind, words = found.group(1), [word.strip() for word in found.group(2).split(',')]
        if kind in ('RECORD_BEGIN', 'ARGS_BEGIN'):
            self.fields = self.records.setdefault(words[0], [])
        elif kind == 'ENUM_BEGIN':
            self.set = self.words.setdefault(words[0].rstrip(')'), [])
        elif kind == 'ENUM_WORD':
            self.set.append(words[1].rstrip(')').strip('"'))
        elif kind == 'TASK' and words[0] == 'instance':
            self.words['task_state'].append(words[2].strip('"'))
        elif kind in ('TASK', 'SETTLED') and words[0] + '_status' in self.words:
            self.words[words[0] + '_status'].append(words[2].rstrip(')').strip('"'))
        elif kind == 'RESOURCE':
            self.words['resource_type'].append(words[2].rstrip(')').strip('"'))
        elif kind == 'FIELD':
            self.fields.append((words[1], words[0], None, 'REQUIRED' in words[2]))
        elif kind in ('FIELD_ENUM', 'FIELD_OBJECT', 'FIELD_OBJECTS'):
            self.fields.append((words[1], kind, words[0], 'REQUIRED' in words[2]))
        elif kind == 'METHOD':
            self.methods.append((words[0], words[1], words[2], words[4].strip('"').split('|')))
        elif kind == 'CHANGE':
            self.methods.append(('wconfd', words[0], 'commit_args', words[1].strip('"').split('|')))


class Speaker:
    """The ordinary node. `known`: values by the names of fields, which it has heard or guessed."""

    def __init__(self, lab, node, seed, known):
        self.lab, self.node, self.known = lab, node, known
        self.random = random.Random(f'{seed}/node')
        self.tables = Tables()
        self.answers, self.asked = {}, 0
        self.moves = (*[self.ask] * 10, self.announce, self.announce, self.promise, self.promise, self.stranger, self.datagrams)

    def move(self):
        """Who closes, or says nothing, has not done it."""
        self.asked += 1
        move = self.random.choice(self.moves)
        try:
            move()
        except (TimeoutError, ConnectionError, ssl.SSLError, AssertionError) as error:
            self.keep(move.__name__, 'silence', str(error))

    # --- values ---

    def value(self, name, kind, of, depth):
        if kind == 'FIELD_ENUM':
            return self.random.choice(self.tables.words[of])
        if kind == 'FIELD_OBJECT':
            return self.record(of, depth + 1)
        if kind == 'FIELD_OBJECTS':
            return [self.record(of, depth + 1) for _ in range(self.random.randint(1, 2))] if depth < 3 else []
        if name in self.known and self.random.random() < 0.9:
            return self.random.choice(self.known[name])
        return {'UUID': lambda: self.random.choice([*self.known['instance'], str(uuid.UUID(int=self.random.getrandbits(128)))]),
                'NAME': lambda: self.random.choice(['web1', 'node2', 'node4']), 'BOOL': lambda: self.random.random() < 0.5,
                'UINT': lambda: self.random.choice([0, 1, 2, 5, 1000, FAR]), 'INT': lambda: self.random.choice([-1, 0, FAR]),
                'STRINGS': lambda: ['web1'], 'JSON': lambda: {'value': '00' * 32}}.get(kind, lambda: self.random.choice(['x', 'web1', '../x']))()

    def record(self, name, depth=0):
        return {field: self.value(field, kind, of, depth) for field, kind, of, required in self.tables.records.get(name, [])
                if required or self.random.random() < 0.5}

    # --- moves ---

    def ask(self):
        daemon, method, args, callers = self.random.choice(self.tables.methods)
        role = self.random.choice([*callers, *callers, *callers, self.random.choice(ROLES)])
        self.told(daemon, method, 'job/5' if role == 'job' else role, self.record(args))

    def told(self, daemon, method, role, args):
        target = self.random.choice(['node1', 'node2', 'node3'])
        stamp = {**bus.announced(self.lab, 'node1'), **({'epoch': FAR} if self.random.random() < 0.1 else {})}
        answer = bus.ask(self.lab, self.node, target, role, method, args, daemon, stamp=stamp, patience=1)
        self.keep(f'{daemon}/{method}', answer['error']['code'] if 'error' in answer else 'result', answer.get('result'))

    def keep(self, what, code, answer):
        self.answers.setdefault(what, {}).setdefault(code, []).append(answer)

    def numbers(self):
        told = bus.announced(self.lab, 'node1')
        return {name: self.random.choice([told[name], told[name] + 1, told[name] + 10 ** self.random.randint(1, 12), FAR, 0])
                for name in ('history', 'epoch', 'serial')}

    def announce(self):
        lie = {**bus.announced(self.lab, 'node1'), 'master_node': bus.id_of(self.lab, self.node), **self.numbers()}
        if self.random.random() < 0.3:
            lie['signature'] = 'bm90IGEgc2lnbmF0dXJl'
        self.told('noded', 'announce', 'wconfd', lie)

    def promise(self):
        wish = {**self.numbers(), 'since': self.random.choice([0, 1, FAR]), 'node': self.random.choice(self.known['node'])}
        self.told('noded', 'promise_epoch', self.random.choice(['wconfd', 'noded']), wish)

    def stranger(self):
        """Who has no certificate: silence, garbage, a handshake cut off, a hello."""
        target = bus.config_of(self.lab, self.random.choice(['node1', 'node2', 'node3']))
        open_ones = []
        for _ in range(self.random.randint(1, SILENT)):
            plain = bus.network_socket(self.lab, self.node)
            plain.settimeout(1)
            open_ones.append(plain)
            plain.connect((target['address'], target['port']))
            plain.sendall(self.random.choice([b'', b'\x16\x03\x01\x40\x00\x01', bytes(self.random.getrandbits(8) for _ in range(200)), b'GET / HTTP/1.1\r\n\r\n']))
        with bus.tls().wrap_socket(open_ones.pop()) as link:
            link.sendall(bus.hello(target['node_uuid'], 'joining') + b'{' * 3000)
            link.recv(1000)
        for plain in open_ones:
            plain.close()

    def datagrams(self):
        """To ConfD: what is not signed, and what was captured."""
        with bus.network_socket(self.lab, self.node, socket.SOCK_DGRAM) as plain:
            for _ in range(50):
                junk = self.random.choice([confd.seal(b'wrong', confd.message(0, None)), b'plj0' + b'[' * 9000, b'\0' * 60000])
                plain.sendto(junk, (fettlelib.address(self.random.randint(1, 3)), 1814))


# --- what a guest's user can do on its node ---

# Reads moves, one a line: the name of a function here and its arguments; says how each went.
USER = '''
import ctypes, json, os, socket, sys
FOLDER = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
def path(name):
    return os.path.join(FOLDER, name)
def write(at, text):
    with open(at, "w") as file:
        file.write(text)
def append(at):
    with open(at, "ab") as file:
        file.write(b"x")
def read(at):
    with open(at, "rb") as file:
        file.read(64)
def put(name, text):
    write(path("new"), text)
    os.rename(path("new"), path(name))
def link(name, target):
    os.symlink(target, path("link"))
    os.rename(path("link"), path(name))
def hard(target, name):
    os.link(target, path(name))
def fifo(name):
    os.mkfifo(path(name))
def swap(link, trap, other):
    os.symlink(other, path(link))
    os.mkdir(path(trap))
    libc.renameat2(-100, path(link).encode(), -100, path(trap).encode(), 2)
def remove(at):
    os.rmdir(at) if os.path.isdir(at) else os.unlink(at)
def move(at):
    os.rename(at, at + ".x")
def own(at):
    os.chown(at, os.getuid(), -1)
def mode(at):
    os.chmod(at, 0o777)
def end(pid, signal):
    os.kill(pid, signal)
def trace(pid):
    if libc.ptrace(16, pid, None, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    libc.ptrace(17, pid, None, None)
def memory(pid):
    os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
def enter(pid):
    space = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if libc.setns(space, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def speak(at, text):
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(2)
        folder = os.open(os.path.dirname(at), os.O_PATH)
        try:
            one.connect(f"/proc/self/fd/{folder}/{os.path.basename(at)}")
            one.sendall(text.encode())
        finally:
            os.close(folder)
for line in sys.stdin:
    name, *arguments = json.loads(line)
    try:
        globals()[name](*arguments)
        print(json.dumps("done"), flush=True)
    except OSError as error:
        print(json.dumps(str(error)), flush=True)
'''


class User:
    """A process of the guest's user without a capability. `aims`: files, folders and sockets of root's; `pids`: of daemons and of others.
    What it could do is kept in `done`."""

    def __init__(self, seed, uid, relay, aims, pids):
        self.random = random.Random(f'{seed}/user')
        self.relay, self.aims, self.pids = relay, aims, pids
        self.done, self.relays, self.asked = [], set(), 0
        words = ['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups', '--no-new-privs', '--bounding-set=-all']
        self.process = subprocess.Popen([*words, sys.executable, '-c', USER, relay], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self):
        self.process.stdin.close()
        self.process.wait()

    def move(self):
        self.asked += 1
        words = self.one()
        self.process.stdin.write(json.dumps(words) + '\n')
        self.process.stdin.flush()
        if json.loads(self.process.stdout.readline()) == 'done':
            self.done.append(words)

    def end_relay(self):
        """The process by which its guest reaches its replica is of its user; there is another one soon."""
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.relay, 'state.json'), encoding='utf-8') as file:
            self.relays.add(json.load(file)['pid'])
        return ['end', max(self.relays, default=os.getpid()), 9]

    def one(self):
        if self.random.random() < RELAY:
            return self.end_relay()
        aim, pid = self.random.choice(self.aims), self.random.choice(self.pids)
        name = self.random.choice(['state.json', 'log', 'keys.psk', 'sock', '1', '.state.json.1-1', f'link{self.random.randint(0, 9)}'])
        forged = json.dumps({'pid': pid, 'start': 1, 'placed': True})
        return self.random.choice([
            ['put', name, forged], ['link', name, aim], ['hard', aim, name], ['fifo', name], ['swap', name, name + '.trap', aim],
            ['remove', os.path.join(self.relay, name)], ['write', aim, 'x'], ['append', aim], ['read', aim], ['remove', aim], ['move', aim],
            ['own', aim], ['mode', aim], ['own', self.relay], ['end', pid, self.random.choice([0, 9, 19])], ['trace', pid], ['memory', pid],
            ['enter', pid], ['speak', aim, '{"execute": "quit"}']])


class Attack(threading.Thread):
    """Moves of one, `count` of them, beside the others."""

    def __init__(self, who, count):
        super().__init__(daemon=True)
        self.who, self.count, self.ending, self.failure = who, count, False, None
        self.start()

    def run(self):
        try:
            while self.count > 0 and not self.ending:
                self.who.move()
                self.count -= 1
        except BaseException as error:  # pylint: disable=broad-except
            self.failure = error
