"""The internal protocol by hand, as whoever attacks speaks it: from the network of a node of the lab, with any certificate, in any role."""
import ctypes
import json
import os
import socket
import ssl
import threading

from e2e import fettlelib

END = b'\x03'
CLONE_NEWNET = 0x40000000


def config_of(lab, node):
    with open(os.path.join(lab.root(node), 'etc', 'node.json'), encoding='utf-8') as file:
        return json.load(file)


def id_of(lab, node):
    return config_of(lab, node)['node_uuid']


def announced(lab, node):
    """What that node was told last of a mastership, without its checksum."""
    with open(os.path.join(lab.root(node), 'var', 'node', 'state.json'), encoding='utf-8') as file:
        told = json.load(file)
    told.pop('check', None)
    return told


def pid_of(lab, daemon, node='node1'):
    """Of a daemon that runs."""
    return next(row['pid'] for found in lab.status()['nodes'] if found['name'] == node
                for row in found['daemons'] if row['name'] == daemon and row['state'] == 'running')


def network_socket(lab, node, kind=socket.SOCK_STREAM):
    """A socket that lives in a node's network: made by a thread that went there."""
    made = []
    def make():
        space = os.open(f'/run/netns/{lab.namespace(node)}', os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(space, CLONE_NEWNET) == 0:
            made.append(socket.socket(socket.AF_INET6 if fettlelib.SIX else socket.AF_INET, kind))
        os.close(space)
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


def tls(certificate=None):
    """How such a peer shakes hands: it trusts anybody, and shows a certificate (path of .crt, of .key), or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def frame(document):
    return json.dumps(document).encode() + END


def hello(node, role='job/5', versions=(1, 1)):
    return frame({'hello': {'versions': list(versions), 'from': f'{node}/{role}'}})


def exchange(connection, question, greets_as):
    """The answer to it: {"result"} or {"error"}, or the welcome that refuses all."""
    connection.settimeout(60)
    connection.sendall(hello(*greets_as.split('/', 1)) + frame(question))
    got = b''
    while chunk := connection.recv(1 << 16):
        got += chunk
        *whole, got = got.split(END)
        for part in map(json.loads, whole):
            if 'error' in part.get('welcome', {}):
                return part['welcome']
            if part.get('id') == question['id'] and ('result' in part or 'error' in part):  # the other side asks too, whether we live
                return part
    raise AssertionError(f'no answer to {question["method"]}')


def ask(lab, as_node, target, role, method, args, to='noded', root=None, stamp=None):
    """As that role of a node, with its certificate (of `root`, where it is kept elsewhere), of a daemon of another; `stamp`: the history
    and epoch in whose name, those that the master has announced unless it is said."""
    etc = os.path.join(root or lab.root(as_node), 'etc')
    with open(os.path.join(etc, 'node.json'), encoding='utf-8') as file:
        own = json.load(file)['node_uuid']
    stamp = stamp or announced(lab, lab.master)
    question = {'v': 1, 'history': stamp['history'], 'epoch': stamp['epoch'], 'id': 77, 'from': f'{own}/{role}',
                'to': f'{id_of(lab, target)}/{to}', 'method': method, 'args': args}
    with network_socket(lab, as_node) as plain:
        plain.settimeout(60)
        plain.connect((config_of(lab, target)['address'], config_of(lab, target)['port']))
        with tls((os.path.join(etc, 'node.crt'), os.path.join(etc, 'node.key'))).wrap_socket(plain) as link:
            return exchange(link, question, f'{own}/noded')
