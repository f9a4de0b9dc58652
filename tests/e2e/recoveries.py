"""What the tests of recovery share: jobs that die at a request of theirs, requests that come late, and what is found by one's own eyes.

A test sets `recoveries.lab`.
"""
import collections
import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import threading
import time

import bus
import e2e
import test_crash as crash
from e2e import fettlelib, wait_until

END = b'\x03'
NODES = ('node1', 'node2', 'node3')
ROUND_S = 5  # a node asks the master what is to become of its images (docs/design/procedures.md, "Return")
STILL = {'disk_template': 'mirror', 'disks': [{'size': 4}], 'memory': 8, 'os_type': 'still'}  # its guest writes nothing, and hears no button
lab = None

Request = collections.namedtuple('Request', 'job node method args link data')


def install_still():
    """An image that no firmware boots: what its guest has on its disk stays."""
    for node in NODES:
        with open(os.path.join(lab.root(node), 'var', 'images', 'still.raw'), 'wb') as file:
            file.write(bytes(range(256)) * 4096)


class Relay:
    """Between the jobs of the master and its node daemon, by whose socket they ask all nodes. `on_request` is called with each request of a
    job to a node daemon before it goes on, and says whether it does; who does not let it go on may deliver it later, when its job is long
    dead: it lay in the socket of a daemon that stood still."""

    def __init__(self):
        self.path = os.path.join(lab.root(lab.master), 'run', 'noded.sock')
        self.on_request = None
        self.answers = {}  # of what was delivered late: id of the request -> answer
        self.names = {bus.id_of(lab, node): node for node in NODES}
        os.rename(self.path, self.path + '.own')
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def end(self):
        os.rename(self.path + '.own', self.path)
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.path + '.own')
                for pump in (self.ask, self.answer):
                    threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def request_of(self, data, link):
        document = json.loads(data)
        role, target = str(document.get('from', '')).split('/', 1)[-1], str(document.get('to', ''))
        if 'method' not in document or not role.startswith('job/') or not target.endswith('/noded'):
            return None
        return Request(int(role[4:]), self.names[target.split('/')[0]], document['method'], document['args'], link, data + END)

    def ask(self, client, server):
        data = b''
        with contextlib.suppress(OSError):
            while more := client.recv(1 << 16):
                *whole, data = (data + more).split(END)
                for each in whole:
                    request, hook = self.request_of(each, server), self.on_request
                    if not (request and hook) or hook(request):
                        server.sendall(each + END)

    def answer(self, client, server):
        """What comes back; also what nobody is there to hear any more."""
        data = b''
        with contextlib.suppress(OSError):
            while more := server.recv(1 << 16):
                *whole, data = (data + more).split(END)
                for each in map(json.loads, whole):
                    if 'id' in each and each['id'] in self.answers:
                        self.answers[each['id']] = each
                with contextlib.suppress(OSError):
                    client.sendall(more)

    def send(self, request):
        self.answers = {json.loads(request.data[:-1])['id']: None}
        request.link.sendall(request.data)

    def answer_to(self, request):
        return wait_until(f'{request.node} answers {request.method} of job {request.job}', lambda: next(iter(self.answers.values())), 60)

    def deliver(self, request):
        """A request whose job is dead, at last; what its node answers."""
        self.send(request)
        return self.answer_to(request)


def kill(job):
    os.kill(wait_until(f'job {job} has a process', lambda: e2e.job_pid(lab, job), step=0.01), signal.SIGKILL)


class Death:
    """A hook that ends its job at a request, (node, method, how many of that), which is not sent; or that only notes them."""

    def __init__(self, at=None):
        self.at, self.held, self.seen, self.job = at, None, [], None
        self.known, self.lock = threading.Event(), threading.Lock()

    def submit(self, opcode):
        self.job = lab.submit(opcode)
        self.known.set()
        return self.job

    def __call__(self, request):
        self.known.wait()
        if request.job != self.job:
            return True
        with self.lock:
            self.seen.append((request.node, request.method, sum(one[:2] == (request.node, request.method) for one in self.seen)))
            if self.held or self.seen[-1] != self.at:
                return self.held is None
            self.die(request)
            self.held = request
            return False

    def die(self, request):
        kill(request.job)


# --- what is there ---

def processes():
    """{pid: (node, words)} of all QEMUs of the lab."""
    found = {}
    for entry in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError), open(f'/proc/{entry}/cmdline', 'rb') as file:
            words = file.read()
            node = re.search(lab.directory.encode() + rb'/(node\d)/', words)
            if node and b'qemu-system' in words.split(b'\0')[0] and e2e.lives(entry):
                found[int(entry)] = (node.group(1).decode(), words)
    return found


def everything():
    """Hashes of all images on all nodes, and which QEMUs there are."""
    files = {}
    for node in NODES:
        for below in ('disks', 'shared'):
            for folder, _, names in os.walk(os.path.join(lab.root(node), 'var', below)):
                for path in (os.path.join(folder, name) for name in names):
                    with contextlib.suppress(FileNotFoundError), open(path, 'rb') as file:
                        files[os.path.relpath(path, lab.directory)] = hashlib.sha256(file.read()).hexdigest()
    return files, sorted(processes())


def unlike_record(files):
    """Whether a node has images that the record does not give it, or still keeps some aside of a replica that may be in sync."""
    rows = lab.query('instance', ['uuid', 'pnode', 'snodes', 'replica', 'replica.state'])
    own = {f'{row["pnode"]}/var/disks/{row["uuid"]}' for row in rows}
    copies = {f'{row["snodes"][0]}/var/disks/{row["uuid"]}.{row["replica"]}' for row in rows if row['replica']}
    stale = {row['uuid'] for row in rows if row['replica.state'] in ('stale', None)}
    local = {name for name in files if '/var/disks/' in name}
    aside = {name for name in local if '/disks/aside/' in name}
    strange = {name for name in local - aside if name.rsplit('.', 2)[0] not in own | copies}
    return strange or [name for name in aside if os.path.basename(name).split('.')[0] not in stale]


def at_rest():
    """The same, once nothing of it changes any more. Of itself a node names its images as the record says, or puts them aside (SAF-19): what
    is unlike the record is at rest only if it has stayed so for longer than ROUND_S."""
    last, since = None, 0
    def same():
        nonlocal last, since
        now = everything()
        if now != last:
            last, since = now, time.monotonic()
            return None
        return now if time.monotonic() - since > 2 * ROUND_S or not unlike_record(now[0]) else None
    return wait_until('everything rests', same, 120, step=0.4)


def monitor(node, uuid):
    return fettlelib.QmpListener(os.path.join(lab.root(node), 'run', 'guests', uuid, 'rescue.sock'))


def guest_on(node, uuid):
    """What its process there says of itself: "running", another word of QEMU, or None: there is none."""
    if not any(at == node and uuid.encode() in words for at, words in processes().values()):
        return None
    with contextlib.suppress(OSError, ValueError), monitor(node, uuid) as qmp:
        return qmp.execute('query-status')['status']
    return None


def images(node, uuid):
    folder = os.path.join(lab.root(node), 'var', 'disks')
    return sorted(name for name in os.listdir(folder) if name.startswith(uuid))


def whole(node, uuid, disks):
    return all(f'{uuid}.disk{disk}.raw' in images(node, uuid) for disk in range(disks))


# --- what is on record ---

def record(name):
    """The record itself, as the master's store has it."""
    uuid = e2e.uuid_of(lab, name)
    text = e2e.content_of(lab, lab.master)[1][f'instance/{uuid}']
    return json.loads(text.split(' ', 1)[1])

def task(name):
    return (lab.instance(name, 'task_state') or {'task_state': ''})['task_state']


def stuck(name):
    rows = lab.query('task', ['subject_name', 'task', 'owner_state', 'looks', 'error_since', 'next', 'why'])
    return [row for row in rows if row['subject_name'] == name]


def events(name, event='recovered'):
    rows = lab.query('event', ['subject_name', 'event', 'rule', 'new', 'level', 'task', 'summary'])
    return [row for row in rows if row['subject_name'] == name and row['event'] == event]


def wait_settled(name, timeout=60):
    wait_until(f'nothing of {name} is stuck', lambda: not task(name) and not stuck(name), timeout)


def jobs_of(summary):
    return [row for row in lab.query('job', ['id', 'summary', 'status', 'opresult']) if row['summary'] == [summary]]
