"""How long the cluster has no master: with the engine etcd the master's power is cut, and the next one takes jobs."""
import os
import time

import fettlelib

NODES = ('node1', 'node2', 'node3')
DELAY = {'OP_ID': 'OP_TEST_DELAY', 'duration': 0}
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


def cuts(lab, figures, runs):
    times = [cut_once(lab) for _ in range(runs)]
    figures.add('master_failover_s', times, 's', '<= 8')
    figures.add('master_failover_worst_s', max(times), 's')


def measure(build, figures, runs):
    with fettlelib.Lab(build, options=OPTIONS) as lab:
        cuts(lab, figures, runs)
