#!/usr/bin/env python3
"""Too few master candidates: another node is promoted, and its copy, key and member of etcd follow; with either engine."""
import json
import os

import e2e
from e2e import fettlelib, title, wait_until

lab = None
NODES = ('node1', 'node2', 'node3', 'node4', 'node5')
OPTIONS = ('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '5')
PATIENCE = 120  # seconds; a shortage must have lasted half a minute
WRONG_INPUT = 2


def flags(node):
    """(whether it is a candidate, whether the watcher may make it one)"""
    rows = {row['name']: row for row in lab.json('node', 'list', '-o', 'name,master_candidate,master_capable')}
    return rows[node]['master_candidate'], rows[node]['master_capable']


def candidates():
    return [node for node in NODES if flags(node)[0]]


def said(text):
    return text in lab.cli('why', 'cluster')


def serial(node):
    meta = e2e.store_of(lab, node)
    return meta.get('serial'), meta.get('versions')


def follows(node):
    return serial(node) == serial(lab.master) != (None, None)


def has_key(node):
    return os.path.exists(os.path.join(lab.root(node), 'etc', 'ca.key'))


@title('/promotion/refused')
def test_refused():
    modify = ('cluster', 'modify', '--candidate-pool-size')
    e2e.expect_job_error(lab, 'candidate_pool_size: must be at least 1', 'OP_CLUSTER_SET_PARAMS', candidate_pool_size=0)
    e2e.expect_cli_error(lab, WRONG_INPUT, 'fettle: --candidate-pool-size: must be at least 1', *modify, '0')
    e2e.expect_cli_error(lab, WRONG_INPUT, 'fettle: --candidate-pool-size: must be at most 7', *modify, '8')
    e2e.expect_cli_error(lab, WRONG_INPUT, 'fettle: --candidate-pool-size: must be a whole number, not "three"', *modify, 'three')
    e2e.expect_cli_error(lab, WRONG_INPUT, 'fettle: --candidate-pool-size: must be at least 1', 'cluster', 'init', 'x',
                         '--candidate-pool-size', '0')
    code, _, err = lab.run('node', 'modify', 'node2', '--master-capable', 'often', check=False)
    assert code == WRONG_INPUT and 'fettle: --master-capable: must be yes or no, not "often" (job ' in err, err


@title('/promotion/demoted#ARP-71')
def test_demoted():
    for node in ('node4', 'node5'):
        lab.cli('node', 'modify', node, '--master-candidate', 'no', '--master-capable', 'yes')
    assert candidates() == ['node1', 'node2', 'node3'], candidates()
    lab.cli('cluster', 'modify', '--candidate-pool-size', '3')
    assert lab.json('cluster', 'info')['candidate_pool_size'] == 3
    lab.cli('node', 'modify', 'node2', '--master-candidate', 'no')
    assert flags('node2') == (False, False)
    wait_until('node4 is promoted', lambda: candidates() == ['node1', 'node3', 'node4'], PATIENCE)
    wait_until('its copy follows', lambda: follows('node4'), 30)
    wait_until('it has the key', lambda: has_key('node4'), 30)
    wait_until('that is on record', lambda: said('There are 3 usable master candidates, as there should be.'), 20)
    assert said('2 of 3 master candidates are usable (candidate_pool_size); node4 becomes one.')


@title('/promotion/power-cut#ARP-71')
def test_power_cut():
    lab.lab('power', 'node3', 'off')
    lab.cli('node', 'modify', 'node3', '--offline', 'yes', '--statement', 'test: it burned')
    wait_until('node5 is promoted', lambda: flags('node5')[0], PATIENCE)
    wait_until('its copy follows', lambda: follows('node5'), 30)
    lab.lab('power', 'node3', 'on')
    lab.cli('node', 'modify', 'node3', '--offline', 'no')
    wait_until('node3 follows again', lambda: follows('node3'), 60)
    assert candidates() == ['node1', 'node3', 'node4', 'node5'], 'the surplus is left alone'


@title('/promotion/nobody#ARP-71')
def test_nobody():
    for node in ('node3', 'node4'):
        lab.cli('node', 'modify', node, '--master-candidate', 'no')
    text = ('2 of 3 master candidates are usable (candidate_pool_size), and no other node can become one. Add a node, bring one '
            'back, or say that fewer will do: fettle cluster modify --candidate-pool-size 2.')
    wait_until('it is said', lambda: said(text), PATIENCE)
    assert said('node2 shall be none (master_capable is no)')
    lab.cli('node', 'modify', 'node2', '--master-capable', 'yes')
    wait_until('node2 is promoted', lambda: candidates() == ['node1', 'node2', 'node5'], PATIENCE)
    wait_until('its copy follows', lambda: follows('node2'), 30)


def members():
    command = f'{lab.fettle} --root {lab.root(lab.master)} cluster engine status --json; true'
    return json.loads(lab.exec(lab.master, 'sh', '-c', command))


def voters():
    """Nodes whose members are healthy, if all are."""
    status = members()
    return sorted(member['name'] for member in status['members']) if not status['advice'] else None


def wait_for(what, check, timeout):
    def seen():
        try:
            return check()
        except fettlelib.CommandFailed:
            return lab.find_master() and False
    wait_until(what, seen, timeout)


@title('/promotion/etcd#ARP-71,SAF-07')
def test_etcd():
    lab.cli('cluster', 'modify', '--candidate-pool-size', '3')
    for node in ('node3', 'node4'):
        lab.cli('node', 'modify', node, '--master-candidate', 'no')
    e2e.lab_engine(lab, 'etcd')
    wait_for('all members are well', lambda: voters() == ['node1', 'node2', 'node5'], 60)
    lab.cli('node', 'modify', 'node4', '--master-capable', 'yes')
    lab.lab('power', 'node5', 'off')
    wait_until('there is a master', lab.find_master, 60)
    lab.cli('node', 'modify', 'node5', '--offline', 'yes', '--statement', 'test: it burned')
    wait_for('node4 has its place', lambda: candidates() == ['node1', 'node2', 'node4'], PATIENCE)
    wait_for('that is on record', lambda: said('node4 becomes one in the place of node5, whose member of etcd counts for every '
                                               'majority until then.'), 30)
    assert flags('node5') == (False, True), 'no person has said that it shall be none'
    wait_for('the members are three again', lambda: voters() == ['node1', 'node2', 'node4'], 120)
    wait_for('its copy follows', lambda: follows('node4'), 30)
    other = next(node for node in ('node1', 'node2') if node != lab.master)
    lab.lab('power', other, 'off')  # the loss of one can be borne again
    wait_until('there is a master', lab.find_master, 60)
    lab.cli('tag', 'add', 'cluster', 'with-one-less')
    lab.lab('power', other, 'on')
    lab.lab('power', 'node5', 'on')
    wait_for('node5 is back', lambda: lab.run('node', 'modify', 'node5', '--offline', 'no', check=False)[0] == 0, 60)
    wait_for('all members are well', lambda: voters() == ['node1', 'node2', 'node4'], 120)
    assert candidates() == ['node1', 'node2', 'node4'], 'who returns is no candidate'
    e2e.check_logs(lab)


def main():
    global lab  # pylint: disable=global-statement
    with e2e.new_lab(nodes=5, options=OPTIONS) as lab:
        e2e.run(test_refused, test_demoted, test_power_cut, test_nobody, test_etcd)


if __name__ == '__main__':
    main()
