"""`make demo-storage`: volume services die, or stand still, in the middle of their work; the others clean up, and nothing is left behind."""
import os
import time

from fettlelib import disk_of_its_own, standing_still, wait_until

BACKEND, DOWN_S, PATIENCE_S = 'dir1', 3, 180
NODES = ('node1', 'node2', 'node3')


class Story:
    """Three nodes that serve one directory, on a disk of its own that can be made to stand still: so that what breaks does so in mid-work."""

    kinds = {'volume': 'volumes', 'snapshot': 'snapshots'} # of which it makes some, and where on the back end they are

    def __init__(self, lab, timeline):
        self.lab, self.timeline, self.rows = lab, timeline, []
        self.place = os.path.join(lab.directory, 'shared', BACKEND)

    # --- what is on record, and what is there ---

    def find(self, kind, name):
        """None: it is gone."""
        fields = ['status', 'data', 'operation', 'worker', 'why']
        found = self.lab.query(kind, fields, ['=', 'name', name])
        return found[0] if found else None

    def states(self):
        return {row['host']: row['state'] for row in self.lab.query('storage_service', ['host', 'state'])}

    def left_behind(self):
        """Bytes of data that no record names."""
        named = {row['data'] for kind in self.kinds for row in self.lab.query(kind, ['data'])}
        found = [entry for folder in self.kinds.values() if os.path.isdir(os.path.join(self.place, folder))
                 for entry in os.scandir(os.path.join(self.place, folder))]
        return sum(entry.stat().st_blocks * 512 for entry in found if entry.name not in named)

    # --- what breaks ---

    def begin(self, kind, name, *words):
        """Asks for it while the directory stands still; who has it in hand is in the middle of it."""
        row = self.lab.json(kind, 'create', name, *words, '--no-wait')['worker']
        wait_until('it is known', lambda: self.lab.call('QueryClusterInfo')['serial'] >= row, PATIENCE_S)
        wait_until(f'{name} is in somebody\'s hands', lambda: (self.find(kind, name) or {}).get('worker'), PATIENCE_S)
        worker = self.find(kind, name)['worker']
        self.timeline.say(name, f'is being made by {worker}')
        return worker.split('@')[0]

    def breaks(self, kind, name, verb, *words):
        """Its worker is killed, or stopped; with whom, and when."""
        with standing_still(self.place):
            node = self.begin(kind, name, *words)
            self.lab.lab(verb, f'volumed@{node}')
        self.timeline.say(name, f'the volume service of {node} is {"killed" if verb == "kill" else "stopped"} in the middle of it')
        return node, time.monotonic()

    def settles(self, kind, name, broke, since, cleaner):
        wait_until(f'{name} is settled', lambda: not (self.find(kind, name) or {}).get('operation'), PATIENCE_S)
        took = time.monotonic() - since
        found = self.find(kind, name)
        self.timeline.say(name, f'is {found["status"]}: {found["why"]}')
        self.rows.append([name, broke, cleaner(), f'{took:.1f} s'])

    # --- the story ---

    def killed(self):
        node, since = self.breaks('volume', 'big', 'kill', '--size', '2', '--backend', BACKEND)
        self.settles('volume', 'big', f'killed in mid-create on {node}', since, lambda: f'{node}, at its next start')

    def cleaner_of(self, node):
        for row in self.lab.query('storage_service', ['host', 'cleanup'], ['=', 'host', f'{node}@{BACKEND}']):
            return row['cleanup'] or '-'
        return '-'

    def down(self, node):
        wait_until(f'{node} is down', lambda: self.states().get(f'{node}@{BACKEND}') == 'down', PATIENCE_S)
        self.timeline.say(node, f'has given no sign of life for {DOWN_S} s: its volume service is down')

    def revived(self, kind, name, node):
        """Who was stopped goes on: it is refused, and nothing changes."""
        before = self.find(kind, name)
        self.lab.lab('resume', f'volumed@{node}')
        log = os.path.join(self.lab.root(node), 'log', 'volumed.log')
        def refused():
            with open(log, encoding='utf-8', errors='replace') as file:
                return ': left alone: ' in file.read()
        wait_until(f'{node} is refused', refused, PATIENCE_S)
        wait_until(f'{node} is up', lambda: self.states().get(f'{node}@{BACKEND}') == 'up', PATIENCE_S)
        if self.find(kind, name) != before:
            raise AssertionError(f'{name} was {before}, and is {self.find(kind, name)}')
        self.timeline.say(node, f'goes on, is refused, and leaves {name} alone')

    def stopped(self):
        node, since = self.breaks('volume', 'large', 'pause', '--size', '2', '--backend', BACKEND)
        self.down(node)
        said = self.lab.cli('cleanup').splitlines()[0]
        self.timeline.say('operator:', f'fettle cleanup\n{" " * 22}{said}')
        by = said.rpartition(' by ')[2].split()[0]
        self.settles('volume', 'large', f'stopped in mid-create on {node}', since, lambda: f'{by}, asked by a person')
        self.revived('volume', 'large', node)

    def by_itself(self):
        self.lab.cli('cluster', 'modify', '--auto-cleanup-enabled', 'yes', '--auto-cleanup-checks', '1')
        self.timeline.say('operator:', 'fettle cluster modify --auto-cleanup-enabled yes')
        node, since = self.breaks('snapshot', 'before', 'pause', '--volume', 'data1')
        self.down(node)
        self.settles('snapshot', 'before', f'stopped in mid-copy on {node}', since, lambda: 'another one, by itself')
        self.lab.lab('resume', f'volumed@{node}')

    def nothing_left(self):
        for node in NODES:  # the sweep of its next start
            self.lab.lab('kill', f'volumed@{node}')
        wait_until('nothing is left that no record names', lambda: self.left_behind() == 0, PATIENCE_S)
        for row in self.rows:
            row.append(self.left_behind())


def play(lab, timeline, show_table):
    story = Story(lab, timeline)
    print(f'Three nodes whose volume services share one directory; one that is silent for {DOWN_S} s counts as down.')
    with disk_of_its_own(story.place, 256):
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', str(DOWN_S))
        # The disk is small, and what the story makes is blank.
        lab.cli('backend', 'add', BACKEND, '--nodes', ','.join(NODES), '--path', story.place, '--overcommit', '100000')
        wait_until('all serve it', lambda: [story.states().get(f'{node}@{BACKEND}') for node in NODES] == ['up'] * 3, PATIENCE_S)
        timeline.zero = time.monotonic()
        lab.cli('volume', 'create', 'data1', '--size', '1', '--backend', BACKEND)
        timeline.say('data1', 'is available')
        print('\nA service dies in the middle of its work, and starts again.')
        story.killed()
        print('\nA service stands still, for what the others can tell: dead.')
        story.stopped()
        print('\nThe same in the middle of a copy, and nobody asks.')
        story.by_itself()
        story.nothing_left()
        print()
        show_table(('resource', 'what broke', 'who cleaned', 'how long', 'bytes left behind'), story.rows)
        print('\nWhy large is what it is, in the cluster\'s own words (fettle why volume large):\n')
        print(lab.cli('why', 'volume', 'large').rstrip())
        for name in ('big', 'large', 'data1'):
            lab.cli('volume', 'delete', name, '--cascade')
        lab.cli('backend', 'remove', BACKEND)
    return sum(row[-1] for row in story.rows)
