#!/usr/bin/env python3
"""The master IP in a lab: who carries it, by what other hosts see; failover, restarts, power cuts, bad input."""
import json
import re

import e2e
import test_candidates
from e2e import fettlelib, title, wait_until

lab = None
ADDRESS, OTHER = fettlelib.address(200), 'fd00:99::200'
MASTER_IP = f'{ADDRESS}/{fettlelib.PREFIX}'
NODES = ('node1', 'node2', 'node3')


def carriers(address=ADDRESS):
    """Nodes that have the address, by their kernels: {node: device}."""
    found = {}
    for node in NODES:
        try:
            links = json.loads(lab.exec(node, 'ip', '-json', 'address', 'show'))
        except Exception:  # without power  # pylint: disable=broad-except
            continue
        for link in links:
            if any(info['local'] == address for info in link['addr_info']):
                found[node] = link['ifname']
    return found


def mac(node):
    return json.loads(lab.exec(node, 'ip', '-json', 'link', 'show', 'dev', 'br0'))[0]['address']


def answers(node, address=ADDRESS):
    """Whether a host reaches it."""
    try:
        lab.exec(node, 'ping', '-n', '-c', '1', '-W', '1', address)
        return True
    except Exception:  # pylint: disable=broad-except
        return False


def neighbour(node, address=ADDRESS):
    """The card behind the address, as a host knows it."""
    entries = json.loads(lab.exec(node, 'ip', '-json', 'neigh', 'show', 'to', address) or '[]')
    return entries[0].get('lladdr') if entries else None


def carried_by(node, address=ADDRESS, seconds=15):
    wait_until(f'{node} alone carries {address}', lambda: carriers(address) == {node: 'br0'}, seconds)


def verify(*words):
    code, out, _ = lab.run(*(words or ('cluster', 'verify')), check=False)
    return code, [line for line in out.splitlines() if 'master IP' in line]


def refused(message, *flags):
    code, _, err = lab.run('cluster', 'modify', *flags, check=False)
    assert code and message in err, (code, err)


@title('/master-ip/bad-input')
def test_bad_input():
    dev = ('--master-netdev', 'br0')
    form = 'an address with the length of its prefix is needed, such as 192.0.2.10/24'
    refused(f'--master-ip: "{ADDRESS}": {form}', '--master-ip', ADDRESS, *dev)
    refused(f'--master-ip: "master/24": {form}', '--master-ip', 'master/24', *dev)
    refused(f'--master-ip: "{ADDRESS}/{fettlelib.HOST + 1}": the length of the prefix is a number from 1 to {fettlelib.HOST}', '--master-ip',
            f'{ADDRESS}/{fettlelib.HOST + 1}', *dev)
    refused('--master-ip: 127.0.0.5 is a loopback address', '--master-ip', '127.0.0.5/8', *dev)
    refused('--master-netdev: name the network device that is to carry the master IP', '--master-ip', MASTER_IP)
    refused('--master-ip: name the address that br0 is to carry on the master\'s node', *dev)
    refused('network device eth9 does not exist on this node', '--master-ip', MASTER_IP, '--master-netdev', 'eth9')
    refused(f'{fettlelib.address(2)} is an address of this node already, on br0; the master IP needs one that no host has', '--master-ip',
            f'{fettlelib.address(2)}/{fettlelib.PREFIX}', *dev)
    lab.do('OP_INSTANCE_CREATE', instance_name='routed', disk_template='diskless', pnode='node2', memory=8, start=False,
           nics=[{'mode': 'routed', 'ip': '10.99.0.222'}])
    refused('master_ip: 10.99.0.222 is the address of network card 0 of instance "routed"', '--master-ip', '10.99.0.222/24', *dev)
    lab.do('OP_INSTANCE_REMOVE', instance_name='routed')
    refused('nothing to change', *())
    assert carriers() == {} and 'master_ip ' not in lab.cli('cluster', 'info')


@title('/master-ip/carried-by-the-master')
def test_carried():
    lab.cli('cluster', 'modify', '--master-ip', MASTER_IP, '--master-netdev', 'br0')
    carried_by('node1')
    for node in ('node2', 'node3'):
        assert answers(node), node
    wait_until('info says so', lambda: re.search(rf'^  master_ip +{MASTER_IP} on br0, carried by node1$', lab.cli('cluster', 'info'), re.M))
    assert lab.json('cluster', 'info')['master_ip_nodes'] == ['node1']
    assert verify() == (0, []), verify()
    asked = ('confd', 'master', '0', '1', '2', '--json', '--candidates')
    wait_until('ConfD of each candidate knows', lambda: all(
        json.loads(lab.exec('node3', lab.fettle, '--root', lab.root('node1'), *asked, fettlelib.address(number)))['answer'] ==
        ['node1', ADDRESS, fettlelib.address(1)] for number in (1, 2)), 20)
    e2e.expect_job_error(lab, f'node other (12345678-0000-4000-8000-000000000001): primary_ip: {ADDRESS} is the master IP of the '
                         'cluster', 'OP_NODE_ADD', node_name='other',
                         primary_ip=ADDRESS, node_uuid='12345678-0000-4000-8000-000000000001')
    # The node's own address is still the one that it calls others from.
    route = json.loads(lab.exec('node1', 'ip', '-json', 'route', 'get', fettlelib.address(2)))[0]
    assert route['prefsrc'] == fettlelib.address(1), route


@title('/master-ip/verify-tells-of-a-doubled-one#ARP-70')
def test_verify():
    lab.exec('node1', 'ip', 'address', 'del', MASTER_IP, 'dev', 'br0')
    carried_by('node1')  # it comes back
    lab.exec('node3', 'ip', 'address', 'add', f'{ADDRESS}/{fettlelib.HOST}', 'dev', 'lo')
    code, lines = verify()
    assert code == 1 and lines == [f'node node3: has the master IP {ADDRESS} on lo, and is not the master; remove it there: '
                                   f'ip address del {MASTER_IP} dev lo'], lines
    assert verify('node', 'verify', 'node3') == (1, lines) and verify('node', 'verify', 'node1') == (0, [])
    assert lab.json('cluster', 'info')['master_ip_nodes'] == ['node1', 'node3']
    lab.exec('node3', 'ip', 'address', 'del', f'{ADDRESS}/{fettlelib.HOST}', 'dev', 'lo')
    wait_until('all is well', lambda: verify() == (0, []), 10)


@title('/master-ip/restarts')
def test_restarts():
    lab.lab('kill', 'noded@node1')
    wait_until('it is carried again', lambda: carriers() == {'node1': 'br0'}, 15)
    lab.lab('kill', 'wconfd@node1')
    carried_by('node1')
    lab.lab('power', 'node1', 'off')
    wait_until('nobody has it', lambda: carriers() == {}, 10)
    lab.lab('power', 'node1', 'on')
    lab.luxi_connection = None
    carried_by('node1', seconds=40)
    wait_until('it serves', serves, 30)
    assert answers('node2')


def serves():
    return lab.run('node', 'list', check=False)[0] == 0


@title('/master-ip/goes-with-the-master#SAF-05,SAF-07')
def test_failover():
    # Node1 was switched off a moment ago: the copies have to know of its new mastership.
    wait_until('copies are there', lambda: test_candidates.equal('node1', 'node2', 'node3') and
               len({test_candidates.store(node).get('epoch') for node in NODES}) == 1, 60)
    assert answers('node3') and neighbour('node3') == mac('node1')
    before = mac('node1')
    lab.lab('power', 'node1', 'off')
    lab.luxi_connection = None
    lab.master = 'node2'
    wait_until('the master is gone', lambda: 'answers' not in lab.run(*test_candidates.FAILOVER, check=False)[2], 20, step=0.5)
    assert not answers('node3')
    lab.run(*test_candidates.FAILOVER, '--to', 'node2', '--yes')
    wait_until('it serves', serves, 30)
    carried_by('node2')
    wait_until('node3 reaches it', lambda: answers('node3'), 30)
    assert neighbour('node3') == mac('node2') != before
    assert lab.json('cluster', 'info')['master_ip_nodes'] == ['node2']


@title('/master-ip/an-old-master-gives-it-up#SAF-05')
def test_returns():
    # It comes back with what it had: its node daemon remembers, and hears who is the master now.
    lab.lab('power', 'node1', 'on')
    wait_until('it is back', lambda: lab.exec('node1', 'true') is not None, 20)
    lab.exec('node1', 'ip', 'address', 'add', *fettlelib.address_words(ADDRESS), 'dev', 'br0')
    carried_by('node2', seconds=30)
    wait_until('node3 sees the right one', lambda: answers('node3') and neighbour('node3') == mac('node2'), 20)


@title('/master-ip/cut-off#SAF-08')
def test_cut_off():
    # With the engine sqlite a master that is cut off stays master on its side, and its address stays with it.
    lab.lab('link', 'node2', 'down')
    e2e.wait_until('the others do not reach it', lambda: not answers('node3'), 10)
    assert carriers() == {'node2': 'br0'}, carriers()
    lab.lab('link', 'node2', 'up')
    wait_until('they reach it again', lambda: answers('node3'), 20)
    carried_by('node2')


@title('/master-ip/another-one')
def test_changed():
    wait_until('it serves', serves, 30)
    lab.cli('cluster', 'modify', '--master-ip', f'{OTHER.upper()}/64')
    carried_by('node2', OTHER)
    assert carriers() == {}, carriers()
    lab.exec('node3', 'ip', 'address', 'add', 'fd00:99::3/64', 'dev', 'br0', 'nodad')
    wait_until('node3 reaches it', lambda: answers('node3', OTHER), 15)
    assert lab.json('cluster', 'info')['master_ip'] == OTHER
    lab.cli('cluster', 'modify', '--master-ip', 'none')
    wait_until('nobody has it', lambda: carriers(OTHER) == {}, 15)
    assert 'master_ip ' not in lab.cli('cluster', 'info')
    refused('without a master IP there is no device for it', '--master-ip', 'none', '--master-netdev', 'br0')
    e2e.check_logs(lab)


def main():
    global lab  # pylint: disable=global-statement
    with e2e.new_lab(options=('--watcher-interval-ms', '500', '--candidates', '3')) as lab:
        test_candidates.lab = lab
        e2e.run(test_bad_input, test_carried, test_verify, test_restarts, test_failover, test_returns, test_cut_off, test_changed)


if __name__ == '__main__':
    main()
