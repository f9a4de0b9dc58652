#!/usr/bin/env python3
"""What a commit and a lock cost with the engine etcd, and the same transaction or read without us; run by bench_mastership.py in the network of
the master's node. Arguments: the root of that node, and how many instances; with 1 only one is made and changed, with 0 none.
Prints one line a figure: name and value.

  floor_etcd_txn_ms           one transaction of the size of a commit, sent to this node's member by hand
  config_commit_etcd_ms       one client: one instance changed and answered, in turn with that
  config_commits_etcd_per_s   16 clients, each with one commit under way; not with 1 instance
  floor_etcd_reads_per_s      one linearizable read after the other, by hand; this and what follows with 0 instances, and only then
  lock_pairs_etcd_per_s       one client, one call after the other: a lock taken and released, each behind a barrier
  lock_pairs_etcd_of_floor    the same as a share of half the reads, round by round
  lock_pairs_pipelined_etcd_per_s  many calls in flight, which share their barriers
"""
import base64
import http.client
import json
import os
import select
import ssl
import statistics
import sys
import time

from bench_wconfd import AS_JOB, OWNER, Client, commit_args, fill, hold_everything, hold_file, pattern, put

COMMITS = 100
CLIENTS = 16
RACE = 600
LOCK_ROUNDS = 5
LOCK_PAIRS = 100  # of one round
LOCK_CALLS = 500  # in flight


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

    def post(self, path, body):
        self.connection.request('POST', path, body, {'Content-Type': 'application/json'})
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text

    def txn(self, body):
        self.post('/v3/kv/txn', body)


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


def pair():
    """The arguments of the two calls."""
    return [{'owner': OWNER, 'locks': [{'name': 'instance/bench-pair', 'mode': mode}]} for mode in ('exclusive', 'release')]


def per_s(count, call):
    begun = time.perf_counter()
    call()
    return count / (time.perf_counter() - begun)


def locks(client, etcd):
    """Reads and pairs in turn; then as many calls at once as fit between the two buffers."""
    read = json.dumps({'key': encoded('/bench/none')})
    calls = pair()
    def reads():
        for _ in range(2 * LOCK_PAIRS):
            etcd.post('/v3/kv/range', read)
    def pairs():
        for n in range(2 * LOCK_PAIRS):
            assert client.call('update_locks', calls[n % 2])['granted']
    def in_flight():
        for n in range(LOCK_CALLS):
            client.ask('update_locks', calls[n % 2])
        for _ in range(LOCK_CALLS):
            assert client.result()['granted']
    floors, ours, piped = [], [], []
    for _ in range(LOCK_ROUNDS):
        floors.append(per_s(2 * LOCK_PAIRS, reads))
        ours.append(per_s(LOCK_PAIRS, pairs))
        piped.append(per_s(LOCK_CALLS // 2, in_flight))
    print(f'floor_etcd_reads_per_s {statistics.median(floors):.0f}')
    print(f'lock_pairs_etcd_per_s {statistics.median(ours):.0f}')
    print(f'lock_pairs_etcd_of_floor {statistics.median(our / (floor / 2) for our, floor in zip(ours, floors)):.2f}')
    print(f'lock_pairs_pipelined_etcd_per_s {statistics.median(piped):.0f}')


def main():
    root, count = sys.argv[1], int(sys.argv[2])
    client = Client(root, AS_JOB)
    if count == 0:
        hold_file(root)
        locks(client, Etcd(root))
        client.call('free_locks', {'owner': OWNER})
        return
    instance, there = pattern(root)
    hold_everything(client, root)
    objects = fill(client, instance, 1 if count == 1 else max(CLIENTS, count - there))
    one_by_one(client, Etcd(root), objects[:CLIENTS])
    if count > 1:
        race([Client(root, AS_JOB) for _ in range(CLIENTS)], fill(client, instance, CLIENTS))
    client.call('free_locks', {'owner': OWNER})


if __name__ == '__main__':
    main()
