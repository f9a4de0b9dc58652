"""What monitoring costs a node that has fifty guests: answers of fettle-mond, its memory, and the time of it and of what leaves figures for it."""
import contextlib
import json
import os
import time

import bench_api
import fettlelib
from bench_queue import ms, resident_mb, timed

GUESTS = 50
ROUNDS = 8
PERIOD_S = 5.2  # after which all collectors run anew
TICKS = os.sysconf('SC_CLK_TCK')
LOOK_S = 0.002
STATS_PERIOD_S = 5


def daemons_of(lab, node):
    return {d['name']: d for n in lab.status()['nodes'] if n['name'] == node for d in n['daemons']}


def cpu_s(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def run_s(pid):
    """The same of all its threads, by the nanosecond."""
    spent = 0
    for thread in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(OSError), open(f'/proc/{pid}/task/{thread}/schedstat', encoding='utf-8') as file:
            spent += int(file.read().split()[0])
    return spent / 1e9


class Figures:
    """Files of figures, which the node daemon writes anew each STATS_PERIOD_S: that of the node first, then those of guests."""

    def __init__(self, root):
        self.folder = os.path.join(root, 'run', 'stats')

    def stamp(self, name):
        with contextlib.suppress(OSError):
            return os.stat(os.path.join(self.folder, name)).st_mtime_ns
        return 0

    def are_written(self, since):
        return sum(self.stamp(name) >= since for name in os.listdir(self.folder)) > GUESTS


def stats_percent(root, pid):
    """What the node daemon spends while it writes figures, less what it spends in as much time besides."""
    files, writing, spent, begun = Figures(root), [], run_s(pid), time.monotonic()
    for _ in range(ROUNDS):
        seen = files.stamp('node.stats')
        while files.stamp('node.stats') == seen:
            before = run_s(pid), time.monotonic()
            time.sleep(LOOK_S)
        now = files.stamp('node.stats')
        fettlelib.wait_until('those of all guests are there', lambda: files.are_written(now), 30, step=LOOK_S)  # pylint: disable=cell-var-from-loop
        writing.append((run_s(pid) - before[0], time.monotonic() - before[1]))
    spent, took = run_s(pid) - spent, time.monotonic() - begun
    busy, windows = sum(one for one, _ in writing), sum(length for _, length in writing)
    besides = max(0, spent - busy) / max(took - windows, 1)
    return 100 * max(0, busy - besides * windows) / (ROUNDS * STATS_PERIOD_S)


def make_guests(lab):
    jobs = [lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': f'guest{number}', 'disk_template': 'file', 'disks': [{'size': 8}],
                        'memory': 8, 'os_type': 'tick', 'pnode': 'node2'}) for number in range(GUESTS)]
    for job in jobs:
        status, result = lab.wait_job(job, 600)
        assert status == 'success', result


def told(client):
    """How many guests there are figures of."""
    data = json.loads(client.ask('GET', '/1/report/instance/guests'))['data']
    return sum(1 for one in data['guests'] if one['drives'])


def ask_around(build, client, path, rounds):
    """Times of an answer for which all is collected anew, of one right after it, and of bare libsoup with the same bytes."""
    new, again, floors = [], [], []
    with bench_api.bare(build, client.ask('GET', path)) as port:
        bare = bench_api.Asking(port)
        for _ in range(rounds):
            time.sleep(PERIOD_S)
            new.append(ms(timed(lambda: client.ask('GET', path))))
            again.append(ms(timed(lambda: client.ask('GET', path))))
            floors.append(ms(timed(lambda: bare.ask('GET', path))))
    return new, again, floors


def guests(build, lab, figures):
    here, empty = daemons_of(lab, 'node2'), daemons_of(lab, 'node3')
    figures.add('mond_rss_mb_no_guests', resident_mb(here['mond']['pid']), 'MB', '<= 12', 1)
    make_guests(lab)
    client = bench_api.Asking(here['mond']['port'])
    fettlelib.wait_until('all are told', lambda: told(client) == GUESTS, 120)
    pids = here['mond']['pid'], here['noded']['pid'], empty['noded']['pid']
    before, begun = [cpu_s(pid) for pid in pids], time.monotonic()
    for path, name in (('/1/report/all', 'mond_report_all'), ('/metrics', 'mond_metrics')):
        new, again, floors = ask_around(build, client, path, ROUNDS)
        figures.add(f'floor_{name}_ms', floors, 'ms')
        figures.add(f'{name}_ms', new, 'ms', '<= 20')
        figures.add(f'{name}_again_ms', again, 'ms', '<= 20')
    mond, noded, bare_noded = [100 * (cpu_s(pid) - old) / (time.monotonic() - begun) for pid, old in zip(pids, before)]
    stats = stats_percent(lab.root('node2'), here['noded']['pid'])
    figures.add('mond_percent', mond, '%')
    figures.add('noded_stats_percent', stats, '%')
    figures.add('mond_and_stats_percent', mond + stats, '%', '<= 1')
    figures.add('noded_percent_no_guests', bare_noded, '%')
    figures.add('noded_percent', noded, '%')
    figures.add('mond_rss_mb', resident_mb(here['mond']['pid']), 'MB', '<= 12', 1)


def in_a_lab(build, figures):
    with fettlelib.Lab(build, options=('--disks-mib', '2048')) as lab:
        figures.part('monitor', 300, guests, build, lab, figures)


def measure(build, figures):
    if figures.wants('monitor'):
        figures.whole('lab of monitoring', in_a_lab, build, figures)
