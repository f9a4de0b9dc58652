#!/usr/bin/env python3
"""What a commit costs with the engine etcd, and the same transaction without us; run by bench_mastership.py in the network of
the master's node. Argument: the root of that node. Prints one line a figure: name and value.

  floor_etcd_txn_ms           one transaction of the size of a commit, sent to this node's member by hand
  config_commit_etcd_ms       one client: one instance changed and answered, in turn with that
  config_commits_etcd_per_s   16 clients, each with one commit under way
"""
import base64
import fcntl
import http.client
import json
import os
import select
import socket
import sqlite3
import ssl
import statistics
import struct
import sys
import time
import uuid

COMMITS = 100
CLIENTS = 16
RACE = 600
HOLDER = 'bench'
FILL_AT_ONCE = 200


class Client:
    """A connection to wconfd, as luxid of this node."""

    def __init__(self, root):
        with open(os.path.join(root, 'etc', 'node.json'), encoding='utf-8') as file:
            self.sender = json.load(file)['node_uuid'] + '/luxid'
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(os.path.join(root, 'run', 'wconfd.sock'))
        self.buffer, self.last, self.stamp = b'', 0, {'history': 0, 'epoch': 0}
        self.send({'hello': {'versions': [1, 1], 'from': self.sender}})
        self.receive()
        role = self.call('wait_role', {})
        self.stamp = {'history': role['history'], 'epoch': role['epoch']}

    def send(self, document):
        self.socket.sendall(json.dumps(document, separators=(',', ':')).encode() + b'\x03')

    def receive(self):
        while b'\x03' not in self.buffer:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError('wconfd closed the connection')
            self.buffer += data
        frame, self.buffer = self.buffer.split(b'\x03', 1)
        return json.loads(frame)

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


def hold_everything(client, root):
    """A lock file that this process holds, and the locks under which anything may be changed."""
    file = os.open(os.path.join(root, 'run', 'livelocks', HOLDER), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.fcntl(file, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
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


class Etcd:
    """This node's member, by its JSON gateway, with this node's certificate."""

    def __init__(self, root):
        etc = os.path.join(root, 'etc')
        with open(os.path.join(etc, 'node.json'), encoding='utf-8') as file:
            own = json.load(file)['node_uuid']
        with open(os.path.join(etc, 'engine.json'), encoding='utf-8') as file:
            member, = [m for m in json.load(file)['members'] if m['node'] == own]
        context = ssl.create_default_context(cafile=os.path.join(etc, 'etcd', 'authority.crt'))
        context.check_hostname = False
        context.load_cert_chain(os.path.join(etc, 'etcd', 'client.crt'), os.path.join(etc, 'etcd', 'client.key'))
        self.connection = http.client.HTTPSConnection(member['client_url'].split('://')[1], context=context)

    def txn(self, body):
        self.connection.request('POST', '/v3/kv/txn', body, {'Content-Type': 'application/json'})
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def bare_txn(instance):
    """Three compares that hold, and puts of an object, a head and the ids of one commit: what one commit is."""
    def write(key, value):
        return {'request_put': {'key': encoded(f'/bench/{key}'), 'value': encoded(value)}}
    compares = [{'key': encoded(f'/bench/none{n}'), 'target': 'CREATE', 'result': 'EQUAL', 'create_revision': '0'}
                for n in range(3)]
    puts = [write('object', json.dumps(instance)), write('head', 'h' * 90), write('ids', 'i' * 60)]
    return json.dumps({'compare': compares, 'success': puts})


def one_by_one(client, etcd, objects):
    """Commits and bare transactions in turn."""
    bare, ours = [], []
    for n in range(COMMITS):
        key, version, instance = objects[n % len(objects)]
        instance = {**instance, 'vcpus': instance['vcpus'] % 64 + 1}
        body = bare_txn(instance)
        begun = time.perf_counter()
        etcd.txn(body)
        bare.append((time.perf_counter() - begun) * 1000)
        begun = time.perf_counter()
        serial = client.call('commit', commit_args(put(key, version, instance)))['serial']
        ours.append((time.perf_counter() - begun) * 1000)
        objects[n % len(objects)] = (key, serial, instance)
    print(f'floor_etcd_txn_ms {statistics.median(bare):.3f}')
    print(f'config_commit_etcd_ms {statistics.median(ours):.3f}')


def race(clients, objects):
    """Each client changes an object of its own, again and again."""
    mine = {client.socket.fileno(): [client, *objects[n]] for n, client in enumerate(clients)}
    def go(entry):
        client, key, version, instance = entry
        entry[3] = {**instance, 'vcpus': instance['vcpus'] % 64 + 1}
        client.ask('commit', commit_args(put(key, version, entry[3])))
    begun, started, ended = time.perf_counter(), 0, 0
    for entry in mine.values():
        go(entry)
        started += 1
    while ended < started:
        for fd in select.select(list(mine), [], [], 60)[0]:
            entry = mine[fd]
            entry[2] = entry[0].result()['serial']
            ended += 1
            if started < RACE:
                go(entry)
                started += 1
    print(f'config_commits_etcd_per_s {RACE / (time.perf_counter() - begun):.0f}')


def main():
    root, count = sys.argv[1], int(sys.argv[2])
    client = Client(root)
    instance, there = pattern(root)
    hold_everything(client, root)
    objects = fill(client, instance, max(CLIENTS, count - there))
    one_by_one(client, Etcd(root), objects[:CLIENTS])
    race([Client(root) for _ in range(CLIENTS)], fill(client, instance, CLIENTS))
    client.call('free_locks', {'owner': OWNER})


main()
