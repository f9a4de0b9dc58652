"""With the engine etcd: how long the cluster has no master when the master's power is cut, until the next one takes jobs, and
what a lock and a commit cost (bench_etcd.py), with 10,000 instances."""
import os
import time

import fettlelib

NODES = ('node1', 'node2', 'node3')
DELAY = {'OP_ID': 'OP_TEST_DELAY', 'duration': 0}
INSTANCES = 10000
OPTIONS = ('--candidates', '3', '--engine', 'etcd')


def submit(lab, node):
    """Whether luxid of a node has taken a job."""
    try:
        luxi = fettlelib.Luxi(os.path.join(lab.root(node), 'run', 'luxid.sock'), timeout=5)
    except OSError:
        return False
    try:
        return bool(luxi.call('SubmitJob', [DELAY]))
    except (OSError, fettlelib.LuxiError, ConnectionError):
        return False
    finally:
        luxi.close()


def master_of(lab):
    return fettlelib.wait_until('somebody is master', lambda: next((n for n in NODES if submit(lab, n)), None), 60)


def all_follow(lab):
    """Whether no node is waited for, and every copy is there."""
    code, out, _ = lab.run('cluster', 'info', check=False)
    return code == 0 and 'nodes_pending          -' in out and 'has not been heard of' not in out and 'out of reach' not in out


def cut_once(lab):
    """Seconds from the cut of the master's power to the first job that another node has accepted."""
    old = lab.master = master_of(lab)
    lab.luxi_connection = None
    fettlelib.wait_until('all follow', lambda: all_follow(lab), 60, step=0.5)
    begun = time.monotonic()
    lab.lab('power', old, 'off')
    fettlelib.wait_until('a job is taken', lambda: any(submit(lab, n) for n in NODES if n != old), 60, step=0.02)
    took = time.monotonic() - begun
    lab.master = master_of(lab)
    lab.lab('power', old, 'on')
    fettlelib.wait_until('it is back', lambda: all_follow(lab), 60, step=0.5)
    return took


def cuts(lab, figures, runs, suffix, goal):
    times = [cut_once(lab) for _ in range(runs)]
    figures.add('master_failover_s' + suffix, times, 's', goal)
    figures.add('master_failover_worst_s' + suffix, max(times), 's', goal)


def bench_etcd(lab, instances):
    out = lab.exec(lab.master, 'python3', os.path.join(os.path.dirname(os.path.abspath(__file__)), 'bench_etcd.py'),
                   lab.root(lab.master), str(instances), timeout=300)
    return {name: float(value) for name, value in (line.split() for line in out.splitlines())}


def commits(lab, figures):
    """Fills the cluster first."""
    lab.master = master_of(lab)
    lab.luxi_connection = None
    lab.do('OP_INSTANCE_CREATE', instance_name='pattern', disk_template='diskless', memory=1, pnode='node1', start=False)
    fettlelib.wait_until('all follow', lambda: all_follow(lab), 60, step=0.5)
    one, values = bench_etcd(lab, 1), bench_etcd(lab, INSTANCES)
    for name, value in values.items():
        goal = f'<= {2 * values["floor_etcd_txn_ms"]:.2f}' if name == 'config_commit_etcd_ms' else ''
        figures.add(name, value, '1/s' if name.endswith('_per_s') else 'ms', goal)
    figures.add('config_commit_etcd_ms_1', one['config_commit_etcd_ms'], 'ms')
    figures.add('config_commit_etcd_ms_times_one', values['config_commit_etcd_ms'] / one['config_commit_etcd_ms'], 'times',
                '<= 1.6')


def locks(lab, figures):
    lab.master = master_of(lab)
    for name, value in bench_etcd(lab, 0).items():
        share = name.endswith('_of_floor')
        figures.add(name, value, 'share' if share else '1/s', '>= 0.5' if share else '', digits=2 if share else 0)


def with_many(lab, figures):
    commits(lab, figures)
    cuts(lab, figures, 3, '_10000', '')


def measure(build, figures, runs):
    if not figures.wants('cuts', 'locks_etcd', 'etcd_10000'):
        return
    with fettlelib.Lab(build, options=OPTIONS) as lab:
        figures.part('cuts', 240, cuts, lab, figures, runs, '', '<= 8')
        figures.part('locks_etcd', 60, locks, lab, figures)
        figures.part('etcd_10000', 300, with_many, lab, figures)
