"""What luxid needs for many clients: such as are silent, and such as wait for changes."""
import resource
import time

import fettlelib
from bench_queue import luxid_pid, resident_mb

IDLE = 2000
WATCHERS = 1000
KINDS = {'job': ['id', 'status']}


def raise_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * IDLE)), hard))


def idle(lab, figures, clients):
    """Each has asked once, so it has the buffers that a connection keeps."""
    luxid = luxid_pid(lab)
    before = resident_mb(luxid)
    for _ in range(IDLE):
        clients.append(lab.luxi_new())
        clients[-1].call('Query', 'node', ['name', 'role'], None)
    figures.add(f'idle_connections_{IDLE}_mb', resident_mb(luxid) - before, 'MB', '<= 20', 1)


def watchers(lab, figures, clients):
    """Half of them wait; then a job is submitted, and all are told."""
    luxid, last = luxid_pid(lab), clients[-1]
    before = resident_mb(luxid)
    begun = last.call('WatchChanges', KINDS)
    asked = {'method': 'WatchChanges', 'args': [KINDS, begun['stream'], begun['serial'], 60]}
    for client in clients[:WATCHERS]:
        client.send(asked)
    last.call('QueryTags', 'cluster', '')
    figures.add(f'watchers_{WATCHERS}_mb', resident_mb(luxid) - before, 'MB', '', 1)
    start = time.perf_counter()
    last.call('SubmitJob', [{'OP_ID': 'OP_TEST_DELAY', 'duration': 0}])
    told = [client.receive()['result']['changes'] for client in clients[:WATCHERS]]
    figures.add(f'watchers_{WATCHERS}_told_ms', 1000 * (time.perf_counter() - start), 'ms', '', 0)
    assert all(told)


def measure(build, figures):
    raise_limit()
    clients = []
    with fettlelib.Lab(build, nodes=1) as lab:
        try:
            idle(lab, figures, clients)
            watchers(lab, figures, clients)
        finally:
            for client in clients:
                client.close()
