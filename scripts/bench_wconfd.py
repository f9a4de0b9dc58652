"""What benchmarks do over wconfd's own socket: fill a cluster, hold its locks."""
import fcntl
import json
import os
import sqlite3
import struct
import uuid

from fettlelib import Frames

HOLDER = 'bench'
AS_JOB = 'job/999999'  # tests that look for jobs with commits that name no change pass it over
FILL_AT_ONCE = 200
held = {}  # path of a lock file: descriptor


class Client(Frames):
    """A connection to wconfd, as luxid of this node, or as a job, which may change what luxid may not."""

    def __init__(self, root, role='luxid'):
        super().__init__(os.path.join(root, 'run', 'wconfd.sock'))
        with open(os.path.join(root, 'etc', 'node.json'), encoding='utf-8') as file:
            self.sender = f"{json.load(file)['node_uuid']}/{role}"
        self.last, self.stamp = 0, {'history': 0, 'epoch': 0}
        self.send({'hello': {'versions': [1, 1], 'from': self.sender}})
        self.receive()
        if role == 'luxid':
            known = self.call('wait_role', {})
            self.stamp = {'history': known['history'], 'epoch': known['epoch']}
        else:
            luxid = Client(root)
            self.stamp = luxid.stamp
            luxid.close()

    def ask(self, method, args):
        self.last += 1
        self.send({'v': 1, **self.stamp, 'id': self.last, 'from': self.sender, 'method': method, 'args': args})

    def result(self):
        answer = self.receive()
        if 'error' in answer:
            raise RuntimeError(str(answer['error']))
        return answer['result']

    def call(self, method, args):
        self.ask(method, args)
        return self.result()


OWNER = {'job': 'luxid', 'livelock': HOLDER, 'pid': 1}


def put(uid, version, instance):
    return {'op': 'put', 'kind': 'instance', 'key': uid, 'version': version, 'object': instance}


def commit_args(*changes):
    return {'owner': OWNER, 'commit_id': str(uuid.uuid4()), 'changes': list(changes)}


def hold_file(root):
    """The owner's lock file, held by this process until it ends; without it nothing is done for the owner. Again if it is another
    one by now, since that host has lost its power."""
    path = os.path.join(root, 'run', 'livelocks', HOLDER)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path) and path in held and os.path.samestat(os.stat(path), os.fstat(held[path])):
        return
    held[path] = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.fcntl(held[path], 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK


def hold_everything(client, root):
    """A lock file that this process holds, and the locks under which anything may be changed."""
    hold_file(root)
    locks = [{'name': f'{level}/[lockset]', 'mode': 'exclusive'} for level in ('instance', 'node')]
    answer = client.call('update_locks', {'owner': OWNER, 'locks': locks, 'wait': True, 'wait_ms': 20000})
    assert answer['granted'], answer


def pattern(root):
    """The instance that was made by a job: what all others are like."""
    store = sqlite3.connect(f'file:{os.path.join(root, "var", "store.db")}?mode=ro', uri=True)
    rows = store.execute("SELECT json FROM objects WHERE kind='instance'").fetchall()
    store.close()
    return json.loads(rows[0][0]), len(rows)


def fill(client, instance, count):
    """More of the same; what the last commit has made, as (key, version, object)."""
    left, made = count, []
    while left > 0:
        batch = []
        for _ in range(min(left, FILL_AT_ONCE)):
            uid = str(uuid.uuid4())
            batch.append(put(uid, 0, {**instance, 'uuid': uid, 'name': f'filled-{uid}'}))
        serial = client.call('commit', commit_args(*batch))['serial']
        made = [(change['key'], serial, change['object']) for change in batch]
        left -= len(batch)
    return made
