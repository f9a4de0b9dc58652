"""`make demo-rest`: the demo's repair once more, watched from outside alone: decisions and metrics by curl, as any program has them."""
import json
import os
import re
import time

from fettlelib import run_command, wait_until

VICTIM, PATIENCE_S = 'node3', 60
STATEMENT = 'demo: the power was cut'
WATCHER, OPERATOR = ('watcher', 'reads'), ('operator', 'writes')  # users of REST, with their passwords
ON_RECORD = re.compile(r'^fettle_cluster_replicas\{state="in-sync"\} (\d+)$', re.MULTILINE)
OF_GUESTS = re.compile(r'^fettle_replica_in_sync\{.*\} (\d+)$', re.MULTILINE)
FIELDS = ('uuid', 'serial_no', 'subject_name', 'verdict', 'summary', 'policy', 'evidence')


class Outside:
    """What curl can reach: REST of the master, and monitoring of each node."""

    def __init__(self, lab):
        self.lab = lab
        self.master = self.find('rapid')['node1']
        self.monitors = self.find('mond')

    def find(self, name):
        """Where that daemon of each node is reached."""
        return {node['name']: daemon['port'] for node in self.lab.status()['nodes'] for daemon in node['daemons'] if daemon['name'] == name}

    @staticmethod
    def curl(*words):
        """What it prints; None: nobody answers there."""
        done = run_command(['curl', '-sS', '--fail-with-body', *words], PATIENCE_S)
        if done.returncode == 22:
            raise AssertionError(f'curl {" ".join(words)}: {done.stdout}')
        return None if done.returncode else done.stdout

    def address(self, path, user):
        authority = os.path.join(self.lab.root('node1'), 'etc', 'ca.crt')
        return '--cacert', authority, '-u', ':'.join(user), f'https://localhost:{self.master}{path}'

    def rest(self, path, *words, user=WATCHER):
        said = self.curl(*self.address(path, user), *words)
        if said is None:
            raise AssertionError(f'REST does not answer: {path}')
        return said

    def rows(self, kind, fields):
        """Of all that is on record of a kind: what was said of its fields."""
        said = json.loads(self.rest(f'/fettle/v1/query/{kind}?fields={",".join(fields)}'))
        return [{name: cell[1] for name, cell in zip(fields, row)} for row in said['data']]

    def on_record(self):
        found = ON_RECORD.search(self.rest('/metrics'))
        return int(found[1]) if found else 0

    def of_guests(self):
        """The same as the nodes that run the guests see it."""
        told = (self.curl(f'http://127.0.0.1:{port}/metrics') for port in self.monitors.values())
        return sum(int(number) for text in told if text for number in OF_GUESTS.findall(text))


class Watch:
    """Prints what is new, and keeps it."""

    def __init__(self, outside, timeline):
        self.outside, self.timeline = outside, timeline
        self.known = {row['uuid'] for row in outside.rows('decision', ['uuid'])}
        self.told = set()
        self.metrics = {'on record': [], 'of guests': []}

    def look(self):
        for row in sorted(self.outside.rows('decision', FIELDS), key=lambda one: one['serial_no']):
            if row['uuid'] in self.known:
                continue
            self.known.add(row['uuid'])
            self.told.add(row['uuid'])
            self.timeline.say(row['subject_name'], f'{row["verdict"]}:'.ljust(10) + row['summary'])
        for name, value in (('on record', self.outside.on_record()), ('of guests', self.outside.of_guests())):
            known = self.metrics[name]
            if known and known[-1] != value:
                self.timeline.say('metric:', f'replicas in sync, {name}: {known[-1]} -> {value}')
            known.append(value)

    def until(self, what, condition):
        def looked():
            self.look()
            return condition()
        wait_until(what, looked, PATIENCE_S, step=0.2)


def repaired(outside, names):
    """Whether the repair of each of these has ended well."""
    states = {row['instance']: row['state'] for row in outside.rows('repair', ['instance', 'state'])}
    return all(states.get(name) == 'success' for name in names)


def told_of(lab, names, before):
    """Decisions about them that are on record, and were not before."""
    return {row['uuid'] for row in lab.query('decision', ['uuid', 'subject_name']) if row['subject_name'] in names} - before


def play(lab, timeline, show_table, create, places):
    print('Three nodes, four instances with mirrored disks; a policy tag on the cluster allows failover.')
    lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
    create(lab, timeline)
    for (name, password), rights in ((WATCHER, []), (OPERATOR, ['--write'])):
        lab.cli('rapi', 'user', 'add', name, *rights, typed=password + '\n')
    outside = Outside(lab)
    names = [name for name, primary, secondary in places if VICTIM in (primary, secondary)]
    print('\nFrom here on everything that is shown comes from outside:')
    print('  curl --cacert ca.crt -u watcher https://localhost:…/fettle/v1/query/decision, …/metrics, and http://NODE:1815/metrics')
    watch = Watch(outside, timeline)
    watch.until('all replicas are in sync', lambda: watch.metrics['of guests'][-1] == watch.metrics['on record'][-1] == len(places))
    before = set(watch.known)
    watch.metrics = {name: values[-1:] for name, values in watch.metrics.items()}
    timeline.say('metric:', f'replicas in sync: {len(places)}')

    print(f'\nThe power of {VICTIM} is cut.')
    lab.lab('power', VICTIM, 'off')
    timeline.zero = time.monotonic()
    outside.rest(f'/2/nodes/{VICTIM}/modify', '-H', 'Content-Type: application/json', '-d', json.dumps({'offline': True, 'statement': STATEMENT}),
                 user=OPERATOR)
    timeline.say('operator:', f'curl -u operator …/2/nodes/{VICTIM}/modify -d \'{{"offline": true, "statement": "{STATEMENT}"}}\'')
    watch.until('everything is repaired', lambda: repaired(outside, names))
    watch.until('all replicas are in sync again', lambda: watch.metrics['of guests'][-1] == watch.metrics['on record'][-1] == len(places))

    print()
    show_table(('replicas that are in sync', 'before', 'during', 'after'),
               [(name, values[0], min(values), values[-1]) for name, values in watch.metrics.items()])
    missed = told_of(lab, names, before) - watch.told
    print()
    show_table(('what is told', 'how', 'on record', 'missed'),
               [('decisions', len(watch.told), len(told_of(lab, names, before)), len(missed))])
    return len(missed)
