"""What the tests of auto-repair share: instances, policies, and what the watcher says of its repairs.

A test sets `repairs.lab`. All is done as a person does it: by commands.
"""
import re
import shlex

import e2e
from e2e import fettlelib, wait_until

PREFIX = 'ganeti:watcher:autorepair:'
PATIENCE_S = 120
lab = None


def create(name, template='mirror', primary='node2', secondary='node3'):
    where = ('--snode', secondary) if template == 'mirror' else ()
    lab.cli('instance', 'create', name, '--disk-template', template, '--disk', 'size=8', '--memory', '8', '--os-type',
            'tick', '--pnode', primary, *where)
    uuid = e2e.uuid_of(lab, name)
    e2e.wait_counting(lab, name, uuid, primary)
    return uuid


def remove(name):
    lab.cli('instance', 'remove', name, '--shutdown-timeout', '0')


def policy(name, kind):
    assert lab.cli('repair', 'policy', 'instance', name, kind) == f'instance {name}: {kind}, by a tag of the instance\n'


def said(pattern, *args):
    """What a command prints must match; returns all of it."""
    text = lab.cli(*args)
    assert re.search(pattern, text, re.M), f'fettle {" ".join(args)} does not say "{pattern}":\n{text}'
    return text


def type_what_it_says(text, beginning, statement='test: the power was cut'):
    """Runs the command of a text that begins like this, word for word; "…" is for the person to fill in."""
    found = re.search(rf'fettle {re.escape(beginning)}.*$', text, re.M)
    assert found, f'no command "fettle {beginning}…" in:\n{text}'
    lab.cli(*[statement if word == '…' else word for word in shlex.split(found.group(0).rstrip('.'))[1:]])


def show(name):
    """What `repair history` says to look at, looked at."""
    text = lab.cli('repair', 'history', name)
    found = re.search(r'fettle repair show (\S+)', text)
    assert found, text
    return lab.cli('repair', 'show', found.group(1))


def planned(event, node, name):
    """What the plan has for an instance: {"from", "to", "operations", "type", …}; and it stands in its table."""
    text = lab.cli('plan', event, node)
    found = [move for move in lab.json('plan', event, node)['moves'] if move['instance'] == name]
    assert len(found) == 1, text
    move = found[0]
    row = rf'^{name} +{" . ".join(move["from"])} +{" . ".join(move["to"])} +{", ".join(move["operations"])} +{move["type"]} '
    assert re.search(row, text, re.M), text
    return move


def placed(name):
    row = lab.instance(name, 'pnode', 'snodes')
    return [row['pnode'], *(row['snodes'] or [])]


def tags(name, word):
    """The fields behind the prefix of an instance's tags that begin with a word: [[type, id, time, ...], ...]."""
    found = lab.instance(name, 'tags')['tags'] or []
    return [tag[len(PREFIX):].split(':')[1:] for tag in found if tag.startswith(PREFIX + word + ':')]


def result(name, wanted, timeout=PATIENCE_S):
    """Waits until a repair has ended like this; returns its (type, [jobs])."""
    def ended():
        return [(t[0], [int(job) for job in t[4].split('+') if job]) for t in tags(name, 'result') if t[3] == wanted]
    return wait_until(f'{name} has the result {wanted}', ended, timeout)[-1]


def opcodes(jobs):
    return [text.split('(')[0] for job in jobs for text in lab.call('QueryJobs', [job], ['summary'])[0][0]]


def cut(node):
    lab.lab('power', node, 'off')
    offline(node)


def offline(node):
    lab.cli('node', 'modify', node, '--offline', 'yes', '--statement', 'test: the power was cut')


def back(node):
    lab.lab('power', node, 'on')
    lab.cli('node', 'modify', node, '--offline', 'no')
    wait_until(f'{node} answers', lambda: lab.query('node', ['mfree'], ['=', 'name', node])[0]['mfree'] is not None, 60)


def passes(count=5):
    """Waits until the watcher has had time to look several times: it takes a tag away in each of them."""
    for number in range(count):
        tag = f'{PREFIX}suspend:{1 + number}'
        lab.cli('tag', 'add', 'instance', 'witness', tag)
        wait_until('the watcher has looked', lambda t=tag: t not in (lab.instance('witness', 'tags')['tags'] or []), 60)


def jobs_of(name):
    rows = lab.query('job', ['id', 'summary'])
    return [row['id'] for row in rows if any(f'({name})' in text for text in row['summary'])]


def check_counts(name, uuid):
    """Each count stands once on the consoles of all nodes: none was lost, and never did two copies run."""
    seen = set()
    for number in range(1, lab.nodes + 1):
        try:
            with open(lab.console_path(name, uuid, f'node{number}'), 'rb') as file:
                found = [int(n) for n in fettlelib.COUNT.findall(file.read())]
        except FileNotFoundError:
            continue
        twice = seen.intersection(found) or len(found) != len(set(found))
        assert not twice, f'{name} printed counts twice: {twice}'
        seen.update(found)
