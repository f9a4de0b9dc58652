"""What REST costs: one object, lists of 10,000 and 50,000, a job, metrics, each beside what it is made of; and the memory of
fettle-rapid, also while a client reads slowly."""
import base64
import json
import os
import sys
import time

import bench_api
import bench_queue
import fettlelib
from bench_queue import ms, resident_mb, timed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'e2e'))
import rest  # noqa: E402

USER, PASSWORD = 'bench', 'correct horse'
FEW, MANY = bench_queue.INSTANCES, 50000
SERIES = 1500
GETS, JOBS, LISTS = 300, 60, 9
SLOW_BYTES = 64 << 10  # of a client that reads 1 MB a second …
SLOW_S = 12            # … for so long
ONE = '/2/instances/pattern'
BULK = '/2/instances?bulk=1'
INFO = {'OP_ID': 'OP_INSTANCE_QUERY_DATA', 'instances': ['pattern'], 'static': True}


class Client(bench_api.Asking):
    """One that keeps its connection, of a user who may write."""

    def __init__(self, lab):  # pylint: disable=super-init-not-called
        self.connection = rest.Rest(lab).line()
        self.connection.connect()
        self.connection.sock.setsockopt(6, 1, 1)  # TCP_NODELAY
        told = base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()
        self.headers = {'Authorization': f'Basic {told}', 'Content-Type': 'application/json'}


def pid_of(lab):
    return rest.Rest(lab).daemon()['pid']


def luxi_of_ganeti(lab):
    """A connection to the socket that REST asks for what is below /2."""
    return fettlelib.Luxi(os.path.join(lab.root(lab.master), 'run', 'ganeti-query'))


def median(values):
    return sorted(values)[len(values) // 2]


def one_object(build, lab, client, figures):
    """Beside the query that it is, and an answer of libsoup alone that has nothing in it."""
    fields = sorted(json.loads(client.ask('GET', ONE)))
    luxi = luxi_of_ganeti(lab)
    got, queries, empty = [], [], []
    with bench_api.bare(build, b'') as port:
        other = bench_api.Asking(port)
        for _ in range(GETS):
            got.append(1000 * ms(timed(lambda: client.ask('GET', ONE))))
            queries.append(1000 * ms(timed(lambda: luxi.call('QueryInstances', ['pattern'], fields))))
            empty.append(1000 * ms(timed(lambda: other.ask('GET', '/'))))
    luxi.close()
    for name, values in (('floor_rapi_query_us', queries), ('floor_rapi_empty_us', empty)):
        figures.floors[name] = median(values)
        figures.add(name, values, 'us', digits=0)
    figures.add('rapi_get_us', got, 'us', '<= 3 floor_rapi_query_us + 3 floor_rapi_empty_us', 0)


def job_by_rest(client):
    """From the request to the answer that it has succeeded."""
    job = json.loads(client.ask('GET', f'{ONE}/info?static=1'))
    status = None
    while status not in ('success', 'error', 'canceled'):
        wish = json.dumps({'fields': ['status'], 'previous_job_info': status and [status], 'previous_log_serial': None})
        status = json.loads(client.ask('GET', f'/2/jobs/{job}/wait', wish))['job_info'][0]
    assert status == 'success', (job, status)


def job_by_luxi(luxi):
    assert bench_queue.wait_final(luxi, luxi.call('SubmitJob', [INFO])) == 'success'


def jobs(lab, client, figures):
    """A job that only looks at the record, by REST, and by LUXI in turn; of a small cluster, as it reads all of the configuration."""
    luxi = luxi_of_ganeti(lab)
    took, floors = [], []
    for _ in range(JOBS):
        took.append(ms(timed(lambda: job_by_rest(client))))
        floors.append(ms(timed(lambda: job_by_luxi(luxi))))
    luxi.close()
    figures.floors['floor_rapi_job_ms'] = median(floors)
    figures.add('floor_rapi_job_ms', floors, 'ms')
    figures.add('rapi_submit_ms', took, 'ms', '<= 2 + 1 floor_rapi_job_ms')


def read_slowly(lab, client):
    """What the daemon's memory grows by while a list is read at 1 MB a second."""
    before = most = resident_mb(pid_of(lab))
    client.connection.request('GET', BULK, headers=client.headers)
    with client.connection.getresponse() as answer:
        begun, pieces = time.monotonic(), 0
        while pieces * SLOW_BYTES < SLOW_S * 1e6 and answer.read(SLOW_BYTES):
            pieces += 1
            time.sleep(max(0, begun + pieces * SLOW_BYTES / 1e6 - time.monotonic()))
            most = max(most, resident_mb(pid_of(lab)))
    assert pieces > 3, 'there was nothing to be read slowly'
    client.connection.close()
    return most - before


def lists(build, client, figures, count, goal):
    """Beside libsoup alone, which answers with the same bytes."""
    text = client.ask('GET', BULK)
    assert len(json.loads(text)) == count
    values, floors = bench_api.beside_bare(build, client, BULK, LISTS)
    figures.add(f'rapi_bulk_{count}_mb', len(text) / 1e6, 'MB', digits=1)
    figures.add(f'floor_rapi_bulk_{count}_ms', list(map(ms, floors)), 'ms', digits=0)
    figures.add(f'rapi_bulk_{count}_ms', list(map(ms, values)), 'ms', goal, 0)


def metrics(client, figures):
    """The text; the first one waits for nodes."""
    text = client.ask('GET', '/metrics').decode()
    figures.add('rapi_metrics_ms', [ms(timed(lambda: client.ask('GET', '/metrics'))) for _ in range(30)], 'ms', '<= 30')
    figures.add('rapi_metrics_series', sum(1 for line in text.splitlines() if line and line[0] != '#'), '', f'<= {SERIES}', 0)


def with_few(build, lab, figures):
    client = Client(lab)
    client.ask('GET', '/version')
    figures.add('rapid_rss_mb', resident_mb(pid_of(lab)), 'MB', '<= 30', 1)
    bench_queue.fill_up(lab, 1)
    jobs(lab, client, figures)
    bench_queue.fill_up(lab, FEW)
    one_object(build, lab, client, figures)
    metrics(client, figures)
    figures.add('rapid_slow_reader_mb', read_slowly(lab, Client(lab)), 'MB', '<= 4', 1)
    lists(build, client, figures, FEW, '<= 150')
    figures.add('rapid_rss_mb_after_lists', resident_mb(pid_of(lab)), 'MB', '', 1)


def with_many(build, lab, figures):
    bench_queue.fill_up(lab, MANY)
    lists(build, Client(lab), figures, MANY, '')
    figures.add('rapid_rss_mb_50000', resident_mb(pid_of(lab)), 'MB', '', 1)


def in_a_lab(build, figures):
    with fettlelib.Lab(build, nodes=1) as lab:
        lab.cli('rapi', 'user', 'add', USER, '--write', typed=PASSWORD + '\n')
        fettlelib.wait_until('REST is there', lambda: rest.Rest(lab).daemon()['ready'], 60)
        figures.part('rest', 300, with_few, build, lab, figures)
        figures.part('rest_50000', 600, with_many, build, lab, figures)


def measure(build, figures):
    if figures.wants('rest', 'rest_50000'):
        figures.whole('lab of REST', in_a_lab, build, figures)
