#!/usr/bin/env python3
"""What a commit costs with the engine etcd, and the same transaction without us; run by bench_mastership.py in the network of
the master's node. Arguments: the root of that node, and how many instances; with 1 only one is made and changed.
Prints one line a figure: name and value.

  floor_etcd_txn_ms           one transaction of the size of a commit, sent to this node's member by hand
  config_commit_etcd_ms       one client: one instance changed and answered, in turn with that
  config_commits_etcd_per_s   16 clients, each with one commit under way; not with 1 instance
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

from bench_wconfd import OWNER, Client, commit_args, fill, hold_everything, pattern, put

COMMITS = 100
CLIENTS = 16
RACE = 600


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


def main():
    root, count = sys.argv[1], int(sys.argv[2])
    client = Client(root)
    instance, there = pattern(root)
    hold_everything(client, root)
    objects = fill(client, instance, 1 if count == 1 else max(CLIENTS, count - there))
    one_by_one(client, Etcd(root), objects[:CLIENTS])
    if count > 1:
        race([Client(root) for _ in range(CLIENTS)], fill(client, instance, CLIENTS))
    client.call('free_locks', {'owner': OWNER})


if __name__ == '__main__':
    main()
